/**
 * The sessions of a location while the code of plugins is exchanged.
 *
 * Nothing begins in any of them meanwhile. Those that are in the middle of that code are suspended before and opened again
 * afterwards, when ordinary recovery runs under the new code; the others only wait, and what they have under way goes on.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Harness } from "../harness/index.ts"
import type { Held, Live } from "./live.ts"
import type { PluginCode } from "./plugin-code.ts"

export interface ExchangedSessions {
  readonly open: ReadonlyMap<string, Live>
  readonly held: ReadonlyMap<string, Held>
  readonly code: PluginCode
  /** The kinds of task that the plugins have declared. */
  readonly kindsOf: (plugins: ReadonlyArray<string>) => ReadonlyArray<string>
}

export interface Exchanges {
  /** Holds a harness that is opened while an exchange is under way. */
  readonly join: (harness: Harness) => Effect.Effect<void>
  /** One at a time. */
  readonly run: <A, E, R>(plugins: ReadonlyArray<string>, exchange: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const makeExchanges = ({ code, held, kindsOf, open }: ExchangedSessions): Exchanges => {
  /** Lasts as long as the exchange: what is held for it is released when it closes. */
  let current: Scope.Scope | null = null

  const suspend = (plugins: ReadonlyArray<string>, kinds: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const suspended: Array<Held> = []
      for (const [sessionID, live] of open) {
        const entry = held.get(sessionID)
        const running = yield* live.harness.running
        const isConcerned = code.isRunning(sessionID, plugins) || kinds.some((kind) => running.has(kind))
        if (!isConcerned || entry?.now() !== live) continue
        suspended.push(entry)
        yield* entry.suspend(({ harness }) => harness.suspend)
      }
      return suspended
    })

  const reopen = (entry: Held) =>
    Effect.catch(
      entry.reopen,
      (error) => Effect.logError(`The session ${entry.session.identity.sessionID} could not be opened again.`, error)
    )

  return {
    join: (harness) => Effect.suspend(() => current === null ? Effect.void : Scope.provide(harness.hold, current)),
    run: (plugins, exchange) =>
      Effect.scoped(Effect.gen(function*() {
        current = yield* Effect.scope
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            current = null
          })
        )
        yield* code.pause(plugins)
        yield* Effect.forEach([...open.values()], ({ harness }) => harness.hold, { discard: true })
        const suspended = yield* suspend(plugins, kindsOf(plugins))
        return yield* Effect.ensuring(exchange, Effect.forEach(suspended, reopen, { discard: true }))
      }))
  }
}
