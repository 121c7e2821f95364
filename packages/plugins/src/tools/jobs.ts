/**
 * Commands in the background: `bash` with `background` starts one, `job_output` and `job_stop` are for it.
 *
 * A job is a durable task of its conversation, of the host's own kind: it outlives the call, the turn and the process, the model
 * is told when it ends, and a session that is opened again finds it. A conversation sees its own jobs only.
 */
import type { Conversation } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import type { OpenSession } from "@bezel/core/session"
import { tool, type ToolCall, ToolFailure, type ToolResult, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type JobDetails, JobStatus } from "./contract.ts"
import { type Confine, quiet, shellWords } from "./shell.ts"

export type StartJob = (command: string, directory: string, call: ToolCall) => Effect.Effect<ToolResult, ToolFailure>

export const startJob = (job: SessionContext["job"], confine: Confine): StartJob => (command, directory, call) =>
  Effect.gen(function*() {
    const ref = yield* call.task(job, {
      command: yield* confine(shellWords(command)),
      title: command,
      directory,
      env: { ...quiet, BEZEL_SESSION_ID: call.sessionID },
      notBefore: null,
      every: null,
      notice: true
    }, { background: true })
    const details: JobDetails = { job: ref.id, command, state: "running", exitCode: null }
    return toolResult({
      content:
        `Started as job ${ref.id}. You are told when it ends; job_output shows what it printed, job_stop ends it.`,
      details
    })
  })

const JobEnd = Schema.Struct({
  state: Schema.Literals(["exited", "unknown"]),
  code: Schema.NullOr(Schema.Int),
  signal: Schema.NullOr(Schema.String),
  output: Schema.String
})

/** The line that was given, without the shell around it. */
export const commandOf = (words: ReadonlyArray<string>): string => words.at(-1) ?? ""

const jobKind = "bezel.job"

const shownOutput = (output: string): string => output === "" ? "(no output)" : output

/** The sessions that are open here, by id. */
type Open = ReadonlyMap<string, OpenSession>

const conversationOf = (open: Open, call: ToolCall): Effect.Effect<Conversation, ToolFailure> =>
  Effect.flatMap(
    Effect.orElseSucceed(
      open.get(call.sessionID)?.conversation(call.conversationID) ?? Effect.succeed(null),
      () => null
    ),
    (found) =>
      found === null
        ? Effect.fail(new ToolFailure({ message: "This conversation is not open any more." }))
        : Effect.succeed(found)
  )

const Input = Schema.Struct({ job: Schema.String.annotate({ description: "Id of the job, as bash gave it." }) })

/** The live jobs of a conversation, by id. */
const jobsOf = (conversation: Conversation) =>
  Effect.map(conversation.snapshot, ({ view }) =>
    new Map(
      Object.entries(view.tasks).flatMap(([id, { kind, status }]) => {
        const job = kind === jobKind ? Schema.decodeUnknownOption(JobStatus)(status) : Option.none()
        return Option.isSome(job) ? [[id, job.value] as const] : []
      })
    ))

const unknownJob = (id: string, live: Iterable<string>) => {
  const ids = [...live].join(", ")
  return new ToolFailure({
    message: `There is no job ${JSON.stringify(id.slice(0, 80))} of this conversation${
      ids === "" ? "" : `; running are ${ids}`
    }.`
  })
}

/** How a job that is not live any more has ended. */
const ended = (conversation: Conversation, id: string, live: Iterable<string>) =>
  Effect.gen(function*() {
    const outcome = yield* Effect.mapError(
      conversation.waitForTask({ id, kind: jobKind }),
      () => unknownJob(id, live)
    )
    const end = Schema.decodeUnknownOption(JobEnd)(outcome.result)
    if (outcome.status === "completed" && Option.isSome(end)) {
      const { code, output, signal, state } = end.value
      const how = state === "unknown"
        ? "is gone, and nobody can say how it ended"
        : signal !== null
        ? `was ended by ${signal}`
        : `has ended with exit code ${code}`
      return { text: `The job ${id} ${how}.\n${shownOutput(output)}`, state, exitCode: code }
    }
    return outcome.status === "completed"
      ? yield* unknownJob(id, live)
      : {
        text: `The job ${id} ${outcome.status === "aborted" ? "was stopped" : "could not be run"}.`,
        state: outcome.status === "aborted" ? "stopped" as const : "failed" as const,
        exitCode: null
      }
  })

const jobPermission = { permission: () => ({ access: "job", subjects: [] }) }

const asFailure = (error: { readonly message: string }) => new ToolFailure({ message: error.message })

export const jobOutputTool = (open: Open) =>
  tool({
    description: "Shows whether a background job runs, and the end of what it printed (4,000 characters).",
    input: Input,
    replay: "safe",
    ...jobPermission,
    execute: Effect.fn("tools.job_output")(function*({ job }, call) {
      const conversation = yield* conversationOf(open, call)
      const live = yield* Effect.mapError(jobsOf(conversation), asFailure)
      const running = live.get(job)
      if (running !== undefined) {
        const details: JobDetails = { job, command: commandOf(running.command), state: "running", exitCode: null }
        return toolResult({ content: `The job ${job} is running.\n${shownOutput(running.output)}`, details })
      }
      const { exitCode, state, text } = yield* ended(conversation, job, live.keys())
      return toolResult({ content: text, details: { job, command: "", state, exitCode } satisfies JobDetails })
    })
  })

export const jobStopTool = (open: Open) =>
  tool({
    description: "Ends a background job and all that it has started.",
    input: Input,
    ...jobPermission,
    execute: Effect.fn("tools.job_stop")(function*({ job }, call) {
      const conversation = yield* conversationOf(open, call)
      const live = yield* Effect.mapError(jobsOf(conversation), asFailure)
      const running = live.get(job)
      if (running === undefined) {
        const { exitCode, state, text } = yield* ended(conversation, job, live.keys())
        return toolResult({ content: text, details: { job, command: "", state, exitCode } satisfies JobDetails })
      }
      yield* Effect.mapError(conversation.abortTask({ id: job, kind: jobKind }), asFailure)
      const details: JobDetails = { job, command: commandOf(running.command), state: "stopped", exitCode: null }
      return toolResult({
        content: `Stopped the job ${job}. Its last output:\n${shownOutput(running.output)}`,
        details
      })
    })
  })
