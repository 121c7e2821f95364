/**
 * Whose code runs for which session right now.
 *
 * Everything of a plugin that a session runs (a tool, a hook, a section, a model's stream) goes through `run`. So a host that
 * exchanges a plugin knows which sessions are in the middle of its code, and nothing of it begins while it is exchanged: what
 * comes in that time waits and then runs whatever is there. Code that runs for no session is not followed.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** Which session the current fiber works for; `null` outside of one. */
export const CurrentSession = Context.Reference<string | null>("@bezel/core/session/CurrentSession", {
  defaultValue: () => null
})

export interface PluginCode {
  /** Runs code of a plugin. What is to run is asked for when it may begin. */
  readonly run: <A, E, R>(plugin: string, code: () => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly stream: <A, E, R>(plugin: string, code: () => Stream.Stream<A, E, R>) => Stream.Stream<A, E, R>
  /** True while the session runs code of one of the plugins. */
  readonly isRunning: (sessionID: string, plugins: ReadonlyArray<string>) => boolean
  /** Lets no code of the plugins begin until the scope ends. */
  readonly pause: (plugins: ReadonlyArray<string>) => Effect.Effect<void, never, Scope.Scope>
}

export const makePluginCode = (): PluginCode => {
  /** How many pieces of a plugin's code run, by session, then by plugin. */
  const running = new Map<string, Map<string, number>>()
  const paused = new Map<string, Latch.Latch>()

  const count = (sessionID: string, plugin: string, by: 1 | -1) => {
    const plugins = running.get(sessionID) ?? new Map<string, number>()
    const next = (plugins.get(plugin) ?? 0) + by
    if (next === 0) plugins.delete(plugin)
    else plugins.set(plugin, next)
    if (plugins.size === 0) running.delete(sessionID)
    else running.set(sessionID, plugins)
  }

  /** Waits until the code may begin, counts it from that moment, and hands on what ends the counting. */
  const entered = <A, E, R>(
    plugin: string,
    then: (
      leave: Effect.Effect<void>,
      restore: <B, E2, R2>(effect: Effect.Effect<B, E2, R2>) => Effect.Effect<B, E2, R2>
    ) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.flatMap(CurrentSession, (sessionID) =>
      Effect.uninterruptibleMask((restore) => {
        const begin: Effect.Effect<A, E, R> = Effect.suspend(() => {
          if (sessionID === null) return then(Effect.void, restore)
          const gate = paused.get(plugin)
          if (gate !== undefined) return Effect.andThen(restore(gate.await), begin)
          count(sessionID, plugin, 1)
          return then(Effect.sync(() => count(sessionID, plugin, -1)), restore)
        })
        return begin
      }))

  return {
    run: (plugin, code) => entered(plugin, (leave, restore) => Effect.ensuring(restore(Effect.suspend(code)), leave)),
    stream: (plugin, code) =>
      Stream.unwrap(
        Effect.as(entered(plugin, (leave) => Effect.addFinalizer(() => leave)), Stream.suspend(code))
      ),
    isRunning: (sessionID, plugins) => {
      const now = running.get(sessionID)
      return now !== undefined && plugins.some((plugin) => now.has(plugin))
    },
    pause: (plugins) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          const gate = Latch.makeUnsafe(false)
          for (const plugin of plugins) paused.set(plugin, gate)
          return gate
        }),
        (gate) =>
          Effect.sync(() => {
            for (const plugin of plugins) if (paused.get(plugin) === gate) paused.delete(plugin)
            gate.openUnsafe()
          })
      ))
  }
}
