/**
 * The `bash` tool: one command line, its output as it comes, its exit code.
 *
 * What a command leaves in the background runs on after the call and is named in the result; it ends with the session.
 * The time limit and an abort end everything that the command has started. Where a command ends, the next one of its
 * conversation begins. With `background` it is a job instead: see `jobs`.
 */
import { tool, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BashDetails, ToolsOptions } from "./contract.ts"
import type { Directories } from "./directories.ts"
import type { StartJob } from "./jobs.ts"
import { checkPath, resolvePath } from "./paths.ts"
import type { CommandProcesses } from "./process-tree.ts"
import { findProcesses, killProcesses } from "./process-tree.ts"
import { type Confine, runShell } from "./shell.ts"

const DEFAULT_TIMEOUT_SECONDS = 120
const MAX_TIMEOUT_SECONDS = 3_600

/** Processes that calls have left running, by session. */
export interface BackgroundProcesses {
  readonly add: (sessionID: string, processes: CommandProcesses) => void
  /** Ends what a session left running. */
  readonly end: (sessionID: string) => Effect.Effect<void>
  readonly endAll: Effect.Effect<void>
}

export const makeBackgroundProcesses = (): BackgroundProcesses => {
  let left: ReadonlyArray<{ readonly sessionID: string; readonly processes: CommandProcesses }> = []
  const endThose = (ours: (sessionID: string) => boolean) =>
    Effect.suspend(() => {
      const ending = left.filter(({ sessionID }) => ours(sessionID))
      left = left.filter(({ sessionID }) => !ours(sessionID))
      return Effect.forEach(ending, ({ processes }) => killProcesses(processes), {
        concurrency: "unbounded",
        discard: true
      })
    })
  return {
    add: (sessionID, processes) => {
      // What has ended meanwhile is forgotten, so that its process ids are not mistaken for somebody else's.
      left = [...left.filter((entry) => findProcesses(entry.processes).length > 0), { sessionID, processes }]
    },
    end: (sessionID) => endThose((other) => other === sessionID),
    endAll: endThose(() => true)
  }
}

/** As a shell takes it word for word; what permission rules see of a command elsewhere begins with it. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** What commands share beyond one call. */
export interface Shells {
  readonly background: BackgroundProcesses
  readonly directories: Directories
  readonly startJob: StartJob
  readonly confine: Confine
  /** What confined commands have made that needs to be told. */
  readonly made: Effect.Effect<ReadonlyArray<string>>
}

export const bashTool = (
  location: string,
  { background, confine, directories, made, startJob }: Shells,
  options: ToolsOptions
) => {
  const longest = options.bashMaxTimeoutSeconds ?? MAX_TIMEOUT_SECONDS
  const usual = Math.min(options.bashTimeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS, longest)
  return tool({
    description: `Runs a command line with bash and gives its output (stdout and stderr together) and exit code. ` +
      `It runs where the last one ended (cd lasts), at first in the workspace directory. ` +
      `There is no terminal and no input: pass what a program would ask for as arguments. It ends after ${usual} seconds unless timeout says otherwise. ` +
      `For what runs long (servers, watchers) use background: it gives a job at once, whose end you are told, ` +
      `and job_output and job_stop are for it. A process started with & ends with the session.`,
    input: Schema.Struct({
      command: Schema.String.annotate({ description: "The command line." }),
      timeout: Schema.optionalKey(
        Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(longest)).annotate({
          description:
            `Seconds after which the command and all that it started are ended. Default ${usual}, at most ${longest}.`
        })
      ),
      directory: Schema.optionalKey(
        Schema.String.annotate({
          description:
            "Directory to run in, relative to the workspace or absolute. Default: where the last command ended."
        })
      ),
      background: Schema.optionalKey(
        Schema.Boolean.annotate({
          description: "Run it as a job in the background, without a time limit. Default false."
        })
      ),
      description: Schema.optionalKey(
        Schema.String.annotate({ description: "What the command is for, in a few words, for the person who watches." })
      )
    }),
    bounds: { keep: "both" },
    permission: ({ command, directory }) => {
      const place = directory === undefined ? location : resolvePath(location, directory)
      return { access: "bash", subjects: [place === location ? command : `cd ${quoted(place)} && ${command}`] }
    },
    execute: Effect.fn("tools.bash")(function*(input, call) {
      if (input.directory !== undefined) yield* checkPath(input.directory)
      const directory = input.directory === undefined ? location : resolvePath(location, input.directory)
      if (input.background === true) return yield* startJob(input.command, directory, call)
      const seconds = input.timeout ?? usual
      const started = performance.now()
      let newline = true
      let printed = false
      const ran = yield* runShell({
        command: input.command,
        directory,
        timeoutMs: seconds * 1_000,
        environment: { BEZEL_SESSION_ID: call.sessionID },
        confine,
        onOutput: (chunk) => {
          newline = chunk.at(-1) === 10
          printed = true
          return call.stream(chunk)
        }
      })
      const nextDirectory = ran.directory ?? directory
      if (nextDirectory !== directory || input.directory !== undefined) yield* directories.set(call, nextDirectory)
      if (ran.background.length > 0) background.add(call.sessionID, ran.processes)
      const details: BashDetails = {
        command: input.command,
        directory,
        nextDirectory,
        description: input.description ?? null,
        exitCode: ran.timedOut ? null : ran.exitCode,
        signal: ran.signal,
        timedOut: ran.timedOut,
        durationMs: Math.round(performance.now() - started),
        background: ran.background.map(({ command, pid }) => ({ pid, command }))
      }
      const remark = [remarkOf(details, seconds), ...(yield* made).map((sentence) => `[${sentence}]`)].join("\n")
      yield* call.stream((printed ? newline ? "" : "\n" : "(no output)\n") + remark)
      return toolResult({ details, isError: details.exitCode !== 0 })
    })
  })
}

const remarkOf = (details: BashDetails, seconds: number): string => {
  const end = details.timedOut
    ? `timed out after ${seconds} seconds; the command and all that it started were ended`
    : details.signal !== null
    ? `ended by ${details.signal}`
    : `exit code ${details.exitCode}`
  const left = details.background.slice(0, 10).map(({ command, pid }) => `${pid} ${command.slice(0, 80)}`)
  const more = details.background.length > left.length ? `, and ${details.background.length - left.length} more` : ""
  const moved = details.nextDirectory === details.directory
    ? ""
    : `; the working directory is now ${details.nextDirectory}`
  return left.length === 0
    ? `[${end}${moved}]`
    : `[${end}${moved}; still running in the background: ${left.join("; ")}${more}]`
}
