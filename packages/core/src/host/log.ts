/** The log as one facet writes it: structured, and under the names of its plugin and its host, from whatever fiber. */
import * as Effect from "effect/Effect"

/** More of what a line says, by name. Secrets stay `Redacted`. */
export type LogFields = { readonly [name: string]: unknown }

type Write = (message: string, fields?: LogFields) => Effect.Effect<void>

/** One line each. Where it goes is the host's: the `bezel` command writes to files in the state folder. */
export interface PluginLog {
  readonly debug: Write
  readonly info: Write
  readonly warning: Write
  readonly error: Write
}

/** `place` is what else every line of the facet has: its location. */
export const makePluginLog = (plugin: string, host: string, place: LogFields = {}): PluginLog => {
  const writing = (log: (message: string) => Effect.Effect<void>): Write => (message, fields = {}) =>
    Effect.annotateLogs(log(message), { ...fields, ...place, plugin, host })
  return {
    debug: writing((message) => Effect.logDebug(message)),
    info: writing((message) => Effect.logInfo(message)),
    warning: writing((message) => Effect.logWarning(message)),
    error: writing((message) => Effect.logError(message))
  }
}
