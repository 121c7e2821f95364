/**
 * Runs a command's effect as this process: signals reach it, its failure becomes one line, its end closes everything.
 *
 * A first SIGINT is the command's (`onInterrupt`, or the end of the effect), a second one ends the process after what was
 * started has been taken down; SIGTERM and SIGHUP end the effect at once. Closing marks nothing: what was running can be
 * continued.
 */
import { SessionInUse } from "@bezel/core/storage"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { writeSync } from "node:fs"
import type { Environment } from "../arguments/command.ts"
import { Exit as CommandExit, exitCode, isExit, signalCode } from "../exit.ts"
import { telemetryIsLikely } from "../plugin-hint.ts"
import { consoleToStderr } from "./console.ts"
import { goneCode } from "./gone.ts"
import { pluginOf } from "./plugin-faults.ts"

/** How long finalizers may take once the process has to end. */
const closingLimitMillis = 5_000

export interface ProcessOptions {
  /** With it, spans are made and exported if the user's settings say where to. */
  readonly environment?: Environment
  /** What a first SIGINT does; without it the effect is interrupted. */
  readonly onInterrupt?: () => void
  /** A signal is how this command ends: with the code of success, once everything is closed or this time is over. */
  readonly endsBySignal?: { readonly closingMillis: number }
}

/** The effect's value, or the code of the signal that ended it. Failures that are no `Exit` of the command become one. */
export async function runProcess(
  effect: Effect.Effect<number, unknown>,
  options: ProcessOptions = {}
): Promise<number> {
  consoleToStderr()
  const { environment } = options
  const told = Effect.catch(effect, whereInUse)
  const work = environment !== undefined && telemetryIsLikely(environment.set)
    ? (await import("./tracing.ts")).traced(told, environment)
    // Nobody exports spans, so none are made; each would cost a stack trace.
    : Effect.withTracerEnabled(told, false)
  const fiber = Effect.runFork(work)
  // A fiber that waits for another holds nothing that Node would stay alive for.
  const alive = setInterval(() => {}, 2 ** 30)
  let ending: number | null = null
  let interrupts = 0
  const end = (code: number) => {
    ending = options.endsBySignal === undefined ? code : exitCode.answered
    setTimeout(() => process.exit(code), options.endsBySignal?.closingMillis ?? closingLimitMillis).unref()
    Effect.runFork(Fiber.interrupt(fiber))
  }
  const onSignal = (signal: keyof typeof signalCode) => () => {
    if (ending !== null && signal !== "SIGINT") return
    if (signal === "SIGINT" && interrupts++ === 0 && options.onInterrupt !== undefined) return options.onInterrupt()
    if (ending === null) end(signalCode[signal])
  }
  const handlers = { SIGINT: onSignal("SIGINT"), SIGTERM: onSignal("SIGTERM"), SIGHUP: onSignal("SIGHUP") }
  // Whoever reads the output has gone away: what the signal would do that may not have been sent, in order. Output that
  // cannot be written for another reason is lost just so, and ends what runs in the same order.
  const onGone = (error: NodeJS.ErrnoException) => {
    if (ending === null) end(goneCode(error, process.stdout) ?? exitCode.failed)
  }
  // Code of others may end the process; then the command has not done what was asked, whatever code that code gave.
  const onExit = (code: number) => {
    const plugin = pluginOf(new Error("ended"))
    if (ending !== null || (plugin === null && code !== 0)) return
    const who = plugin === null ? "something" : `the plugin ${plugin}`
    writeSync(2, `bezel: ${who} ended the process (process.exit) before the command was done\n`)
    if (code === 0) process.exitCode = exitCode.failed
  }
  process.on("exit", onExit)
  process.stdout.on("error", onGone)
  process.on("SIGINT", handlers.SIGINT).on("SIGTERM", handlers.SIGTERM).on("SIGHUP", handlers.SIGHUP)
  try {
    const exit = await Effect.runPromise(Fiber.await(fiber))
    if (ending !== null) return ending
    if (Exit.isSuccess(exit)) return exit.value
    throw commandExit(exit.cause)
  } finally {
    clearInterval(alive)
    process.off("exit", onExit)
    process.stdout.off("error", onGone)
    process.off("SIGINT", handlers.SIGINT).off("SIGTERM", handlers.SIGTERM).off("SIGHUP", handlers.SIGHUP)
  }
}

/** A session that cannot be had may be open in a server, which is then named. */
const whereInUse = (error: unknown): Effect.Effect<never, unknown> =>
  error instanceof SessionInUse
    ? Effect.flatMap(Effect.promise(() => import("./session-in-use.ts")), ({ tellWhere }) => tellWhere(error))
    : Effect.fail(error)

/** Settings that are wrong end with the code of usage; what else fails, with 1. */
const usageTags: ReadonlySet<string> = new Set([
  "SettingsError",
  "LocationUnavailable",
  "ManifestError",
  "UnknownSession",
  "InvalidCursor",
  "AddressUnavailable",
  "ServerClaimed",
  "TokenError",
  "WrongReach"
])

function commandExit(cause: Cause.Cause<unknown>): CommandExit {
  const error = Cause.squash(cause)
  if (isExit(error)) return error
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : ""
  const message = error instanceof Error && error.message !== "" ? error.message : String(error)
  return new CommandExit(usageTags.has(tag) ? exitCode.usage : exitCode.failed, message.replace(/\s*\n\s*/g, " "))
}
