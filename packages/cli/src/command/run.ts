/** `bezel run`: one prompt without a screen. Arguments in, the streams and the exit code out; the work is in `run/`. */
import { type ModelRef, parseModelRef } from "@bezel/core/model"
import type { McpConnectionsShape } from "@bezel/plugins/mcp/contract"
import { parseRule, type PermissionGateShape } from "@bezel/plugins/permissions"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Environment, Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { Exit, exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { folderNotices, settingsNotices } from "../host/notices.ts"
import { runProcess } from "../host/process.ts"
import { expandCalled } from "../run/called.ts"
import { JsonLines } from "../run/json-lines.ts"
import type { RunOutput, RunResult } from "../run/output.ts"
import { Plain } from "../run/plain.ts"
import { readPrompt } from "../run/prompt.ts"
import { type RunRequest, runTurn, type Stop } from "../run/turn.ts"

interface RunOptions {
  readonly [key: string]: Option<unknown>
  readonly model: Option<string | null>
  readonly agent: Option<string | null>
  readonly session: Option<string | null>
  readonly continue: Option<boolean>
  readonly fork: Option<string | null>
  readonly dir: Option<string | null>
  readonly title: Option<string | null>
  readonly file: Option<ReadonlyArray<string>>
  readonly system: Option<string | null>
  readonly json: Option<boolean>
  readonly allow: Option<ReadonlyArray<string>>
  readonly deny: Option<ReadonlyArray<string>>
  readonly yes: Option<boolean>
  readonly maxSteps: Option<number | null>
  readonly maxCost: Option<number | null>
  readonly timeout: Option<number | null>
  readonly trust: Option<boolean>
}

const usage = (message: string) => new Exit(exitCode.usage, message)

export const run: Execute<RunOptions> = async (options, words, environment) => {
  for (const rule of [...options.allow, ...options.deny]) {
    const read = parseRule(rule)
    if (Result.isFailure(read)) throw usage(read.failure)
  }
  const request: RunRequest = {
    prompt: await readPrompt(words, options.file),
    session: sessionOf(options.session, options.continue || options.fork !== null),
    fork: options.fork,
    model: modelOf(options.model),
    agent: options.agent,
    called: { agent: null, model: null },
    title: options.title
  }
  const output = outputOf(options.json, environment)
  // What is wrong with plugins and with files of the project is told while they start; later it is for the log.
  let starting = true
  const layer = locationsLayer({
    environment,
    onWarning: (message) => {
      if (starting) output.warning(message)
    },
    trust: options.trust,
    plugins: {
      permissions: { yes: options.yes, allow: options.allow, deny: options.deny },
      limits: {
        ...(options.maxSteps === null ? {} : { maxSteps: options.maxSteps }),
        ...(options.maxCost === null ? {} : { maxCostUSD: options.maxCost })
      },
      context: options.system === null ? {} : { system: options.system }
    }
  })
  const stop = Deferred.makeUnsafe<Stop>()
  const ask = (why: Stop) => Effect.runFork(Deferred.succeed(stop, why))
  const timer = options.timeout === null ? null : setTimeout(() => ask("timeout"), options.timeout * 1_000)
  const spinner = output instanceof Plain && process.stderr.isTTY ? setInterval(() => output.tick(), 100) : null
  try {
    return await runProcess(
      Effect.gen(function*() {
        const place = yield* openLocation(options.dir ?? currentFolder())
        starting = false
        yield* checkRules(place.permissions, options, output)
        for (const notice of settingsNotices(place.settings)) output.notice(notice)
        const stopped = Effect.as(Deferred.await(stop), [])
        for (const warning of yield* Effect.raceFirst(serverWarnings(place.mcp), stopped)) output.warning(warning)
        if (!options.trust) {
          for (const notice of yield* folderNotices(place.location.directory)) output.notice(notice)
        }
        const called = yield* expandCalled(place, request, output)
        const end = yield* runTurn(place, called, output, stop)
        return end.code
      }).pipe(
        Effect.scoped,
        Effect.provide(layer),
        // Whoever reads the JSON gets a last line also where no turn came about.
        Effect.tapError((error) => options.json ? Effect.sync(() => output.result(noTurn(error), null)) : Effect.void)
      ),
      { environment, onInterrupt: () => ask("interrupted") }
    )
  } finally {
    if (timer !== null) clearTimeout(timer)
    if (spinner !== null) clearInterval(spinner)
  }
}

const noTurn = (error: unknown): RunResult => ({
  status: "unanswered",
  reason: "error",
  message: error instanceof Error ? error.message : String(error),
  text: "",
  sessionID: null
})

/** A rule for something that is not there does nothing; who wrote it wants to know before anything runs. */
const checkRules = (
  gate: Pick<PermissionGateShape, "unknown">,
  options: { readonly allow: ReadonlyArray<string>; readonly deny: ReadonlyArray<string> },
  output: RunOutput
) =>
  Effect.gen(function*() {
    for (const name of ["allow", "deny"] as const) {
      for (const rule of options[name]) {
        const read = parseRule(rule)
        const unknown = Result.isSuccess(read) ? yield* gate.unknown([read.success.access]) : []
        for (const { certain, message } of unknown) {
          if (certain) return yield* Effect.fail(usage(`--${name} ${rule}: ${message}`))
          output.warning(`--${name} ${rule} may have no effect: ${message}`)
        }
      }
    }
  })

function sessionOf(id: string | null, latest: boolean): RunRequest["session"] {
  if (id !== null) return { type: "id", id }
  return latest ? { type: "latest" } : { type: "new" }
}

function modelOf(name: string | null): ModelRef | null {
  if (name === null) return null
  const ref = parseModelRef(name)
  if ("error" in ref) throw usage(`--model: ${ref.error}`)
  return ref
}

function outputOf(json: boolean, environment: Environment): RunOutput {
  const stdout = (text: string) => {
    process.stdout.write(text)
  }
  if (json) return new JsonLines(stdout)
  return new Plain({
    stdout,
    stderr: (text) => {
      process.stderr.write(text)
    },
    stdoutIsTerminal: process.stdout.isTTY,
    stderrIsTerminal: process.stderr.isTTY,
    color: environment.color,
    columns: process.stderr.columns ?? 100
  })
}

/** Nobody can look at servers during a run, so it begins once they are there or have failed, and says which have. */
const serverWarnings = ({ list, settled }: McpConnectionsShape) =>
  Effect.map(
    Effect.andThen(settled, list),
    (servers) =>
      servers.filter(({ status }) => status !== "ready" && status !== "disabled").map(({ error, name }) =>
        `the MCP server ${name} is not connected, so its tools are not offered: ${error ?? "it did not say why"}`
      )
  )
