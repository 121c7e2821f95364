/**
 * The `bezel.job` kind: an OS process owned by a task, made of what every extension has.
 *
 *   initial ─▶ waiting (until its time) ─▶ starting (key stored first) ─▶ running ─▶ done
 *                 ▲                                                        │ `every`
 *                 └────────────────────────────────────────────────────────┘
 *
 * It survives suspend and reopen, and with a file-backed process host also a restart. When it cannot be told how a process
 * ended, the result says `unknown`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type CustomTaskKind, noticeKind, TaskKind, type TaskTransaction } from "../harness/index.ts"
import type { ProcessHost, ProcessHostError, ProcessSpec, ProcessStatus } from "./process-host.ts"
import { sleepUntil } from "./sleep-until.ts"

export const JobInput = Schema.Struct({
  command: Schema.NonEmptyArray(Schema.String),
  /** What the model is told has ended; the words of `command` unless said. */
  title: Schema.optionalKey(Schema.String),
  directory: Schema.String,
  env: Schema.Record(Schema.String, Schema.String),
  /** Milliseconds since the epoch before which it does not start. */
  notBefore: Schema.NullOr(Schema.Finite),
  /** Runs it again this many milliseconds after it has ended, until it is aborted. */
  every: Schema.NullOr(Schema.Finite),
  /** Tells the model how each run ended, and asks it for an answer to that. */
  notice: Schema.Boolean
})
export type JobInput = typeof JobInput.Type

const JobCheckpoint = Schema.Union([
  Schema.Struct({ phase: Schema.Literal("waiting"), run: Schema.Int, until: Schema.Finite }),
  Schema.Struct({ phase: Schema.Literal("starting"), run: Schema.Int, key: Schema.String }),
  Schema.Struct({ phase: Schema.Literal("running"), run: Schema.Int, key: Schema.String })
])
type JobCheckpoint = typeof JobCheckpoint.Type

const JobSlot = Schema.Struct({ output: Schema.mutableKey(Schema.String) })

const JobResult = Schema.Struct({
  state: Schema.Literals(["exited", "unknown"]),
  code: Schema.NullOr(Schema.Int),
  signal: Schema.NullOr(Schema.String),
  output: Schema.String
})

const shownCharacters = 4_000
const pollMillis = 250

/** The name that tasks of this kind are stored under. */
export const jobKindName = "bezel.job"

export const makeJobKind = (host: ProcessHost): CustomTaskKind<JobInput> => {
  type Transaction = TaskTransaction<JobCheckpoint, typeof JobSlot.Type>

  const ended = (id: string, input: JobInput, status: ProcessStatus, output: string, run: number, now: number) => {
    const result = {
      state: status.state === "exited" ? "exited" : "unknown",
      code: status.state === "exited" ? status.code : null,
      signal: status.state === "exited" ? status.signal : null,
      output
    } as const
    const notify = (tx: Transaction): void => {
      tx.slot.output = output
      if (!input.notice) return
      const text = `The job ${id} (${input.title ?? input.command.join(" ")}) ${howEnded(status)}.${
        output === "" ? "" : ` Its last output:\n${output}`
      }`
      tx.write(noticeKind, { model: [{ role: "user", content: [{ type: "text", text }] }], wake: true })
    }
    const { every } = input
    if (every !== null) {
      return {
        next: (tx: Transaction): JobCheckpoint => {
          notify(tx)
          return { phase: "waiting", run: run + 1, until: now + Math.max(every, pollMillis) }
        }
      }
    }
    return {
      done: (tx: Transaction) => {
        notify(tx)
        return { status: "completed", result } as const
      }
    }
  }

  return TaskKind.make(jobKindName, {
    input: JobInput,
    checkpoint: JobCheckpoint,
    slot: { schema: JobSlot, initial: { output: "" } },
    result: JobResult,
    failure: Schema.Struct({ message: Schema.String }),
    initial: (task) =>
      Effect.succeed({ next: { phase: "waiting", run: 1, until: task.input.notBefore ?? 0 } as const }),
    phases: {
      waiting: (task, api) =>
        Effect.gen(function*() {
          const { run, until } = task.checkpoint
          const { every } = task.input
          yield* sleepUntil(until, run === 1 || every === null ? Infinity : Math.max(every, pollMillis))
          return { next: { phase: "starting", run, key: `${api.sessionID}.${task.id}.${run}` } as const }
        }),
      starting: (task) => {
        const { key, run } = task.checkpoint
        return Effect.match(host.start(key, specOf(task.input)), {
          onFailure: (error: ProcessHostError) => ({
            done: () => ({ status: "failed", failure: { message: error.message } } as const)
          }),
          onSuccess: () => ({ next: { phase: "running", run, key } as const })
        })
      },
      running: (task, api) =>
        Effect.gen(function*() {
          const { key, run } = task.checkpoint
          let shown = task.slot.output
          while (true) {
            const status = yield* host.status(key)
            const output = yield* host.output(key, shownCharacters)
            if (status.state !== "running") {
              return ended(task.id, task.input, status, output, run, yield* Clock.currentTimeMillis)
            }
            if (output !== shown) {
              shown = output
              yield* api.commit((tx) => {
                tx.slot.output = output
              })
            }
            yield* Effect.sleep(pollMillis)
          }
        })
    },
    abort: (task) =>
      task.checkpoint !== null && "key" in task.checkpoint ? host.kill(task.checkpoint.key) : Effect.void,
    describe: (task) => ({
      command: [...task.input.command],
      stage: task.checkpoint?.phase ?? "waiting",
      run: task.checkpoint?.run ?? 1,
      output: task.slot.output
    })
  })
}

const specOf = (input: JobInput): ProcessSpec => ({
  command: input.command,
  directory: input.directory,
  env: input.env
})

const howEnded = (status: ProcessStatus): string => {
  if (status.state !== "exited") return "is gone, and nobody can say how it ended"
  if (status.signal !== null) return `was ended by ${status.signal}`
  return status.code === 0 ? "finished" : `failed with exit code ${status.code}`
}
