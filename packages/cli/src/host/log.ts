/**
 * The log: JSON lines in `log/bezel.jsonl` of the state folder, for whoever looks for the reason of something.
 *
 * Nothing of it reaches stdout or stderr. Lines are appended whole; when the file is over 4 MiB it becomes `bezel.1.jsonl` and
 * a new one begins, so a log takes at most twice that. A folder that cannot be written turns logging off, not the program.
 */
import { privateFolder } from "@bezel/core/location"
import { AppPaths } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { appendFileSync, renameSync, statSync } from "node:fs"
import { join } from "node:path"

const rotateBytes = 4 * 1024 * 1024

/** Appends lines to a file below a folder, which is made when the first line comes. */
export function lineWriter(folder: string): (line: string) => void {
  const file = join(folder, "bezel.jsonl")
  let size = -1
  let off = false
  return (line) => {
    if (off) return
    try {
      if (size < 0) {
        privateFolder(folder)
        size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
      }
      if (size > rotateBytes) {
        renameSync(file, join(folder, "bezel.1.jsonl"))
        size = 0
      }
      appendFileSync(file, `${line}\n`, { mode: 0o600 })
      size += Buffer.byteLength(line) + 1
    } catch {
      off = true
    }
  }
}

export interface LogOptions {
  /** Debug messages are logged too. */
  readonly verbose: boolean
  /** Is told each warning and error beside the log. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** The text of a log entry; what comes behind it, such as a cause, is for the log alone. */
const textOf = (message: unknown): string => String(Array.isArray(message) ? message[0] : message)

/** Replaces Effect's own logger. */
export const logLayer = (options: LogOptions): Layer.Layer<never, never, AppPaths> =>
  Layer.unwrap(Effect.gen(function*() {
    const paths = yield* AppPaths
    const write = lineWriter(join(paths.state, "log"))
    const logger = Logger.make((entry) => {
      write(Logger.formatJson.log(entry))
      if (LogLevel.isGreaterThanOrEqualTo(entry.logLevel, "Warn")) options.onWarning?.(textOf(entry.message))
    })
    return Layer.merge(
      Logger.layer([logger]),
      Layer.succeed(References.MinimumLogLevel, options.verbose ? "Debug" : "Info")
    )
  }))
