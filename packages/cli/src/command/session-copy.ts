/** `bezel session import | fork | compact`: sessions made of others, and their history made shorter. */
import { resolveLocation } from "@bezel/core/location"
import { importSession, SessionStore } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import { closeSync, openSync, readSync } from "node:fs"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { Exit, exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { globalLayer } from "../host/global.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { runProcess } from "../host/process.ts"
import { forkSession } from "../run/fork.ts"

type Text = Option<string | null>

const usage = (message: string) => new Exit(exitCode.usage, message)

/** Well below what fits a string, and more than any session that could be opened again. */
const maxImportMiB = 256

/** A file that never ends (a device, a pipe) would otherwise fill the memory. */
const readBounded = (file: string): string => {
  const descriptor = file === "-" ? 0 : openSync(file, "r")
  try {
    const chunks: Array<Buffer> = []
    for (let size = 0; size <= maxImportMiB * 1024 * 1024;) {
      const chunk = Buffer.allocUnsafe(1024 * 1024)
      const read = readSync(descriptor, chunk)
      if (read === 0) return Buffer.concat(chunks).toString("utf8")
      chunks.push(chunk.subarray(0, read))
      size += read
    }
  } finally {
    if (descriptor !== 0) closeSync(descriptor)
  }
  throw new Error(`it is larger than ${maxImportMiB} MiB`)
}

const readJson = (file: string): Effect.Effect<unknown, Exit> => {
  const name = file === "-" ? "stdin" : file
  const reason = (error: unknown): string =>
    !(error instanceof Error)
      ? String(error)
      : "code" in error && error.code === "ENOENT"
      ? "it does not exist"
      : error.message
  return Effect.try({
    try: () => readBounded(file),
    catch: (error) => usage(`${name} cannot be read: ${reason(error)}`)
  }).pipe(Effect.flatMap((text) =>
    Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: (error) => usage(`${name} cannot be read as JSON: ${reason(error)}`)
    })
  ))
}

/** Takes in what `session export` printed, as a session of this folder; prints its id. */
export const sessionImport: Execute<{ readonly dir: Text }> = (options, [file = "-"], environment) =>
  runProcess(
    Effect.gen(function*() {
      const location = yield* resolveLocation(options.dir ?? currentFolder())
      const record = yield* importSession(yield* readJson(file), { location })
      process.stdout.write(`${record.id}\n`)
      return exitCode.answered
    }).pipe(Effect.scoped, Effect.provide(globalLayer({ environment, trust: false })))
  )

/** A new session that is a copy of another up to an entry, the newest by default; prints its id. */
export const sessionFork: Execute<{ readonly at: Text }> = (options, [id = ""], environment) =>
  runProcess(
    Effect.gen(function*() {
      const { location } = yield* Effect.flatMap(SessionStore, (store) => store.get(id))
      const record = yield* forkSession(id, options.at ?? "latest", location)
      process.stdout.write(`${record.id}\n`)
      return exitCode.answered
    }).pipe(Effect.scoped, Effect.provide(globalLayer({ environment, trust: false })))
  )

/** Summarizes the older part of a session now, with the session's own model. */
export const sessionCompact: Execute<{ readonly instructions: Text; readonly trust: Option<boolean> }> = (
  options,
  [id = ""],
  environment
) =>
  runProcess(
    Effect.gen(function*() {
      const record = yield* Effect.flatMap(SessionStore, (store) => store.get(id))
      const { runtime } = yield* openLocation(record.location.directory)
      const { main } = yield* runtime.open(id)
      const ended = yield* Effect.flatMap(main.collapse(options.instructions ?? undefined), main.waitForTask)
      if (ended.status === "completed") return exitCode.answered
      return yield* Effect.fail(new Exit(exitCode.failed, `the session was not summarized: ${reasonOf(ended.failure)}`))
    }).pipe(Effect.scoped, Effect.provide(locationsLayer({ environment, trust: options.trust, plugins: {} })))
  )

const reasonOf = (failure: unknown): string => {
  const message: unknown = failure !== null && typeof failure === "object" ? Reflect.get(failure, "message") : null
  return typeof message === "string" ? message : "it was interrupted"
}
