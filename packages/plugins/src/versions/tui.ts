/**
 * Tells a person of plugins and contracts that the hosts they talk through have in different versions: this terminal and the
 * session's host, and that host and its coordinator. Each is told once. Such plugins still run: their services say themselves
 * what they cannot decode.
 */
import { type Mismatch, mismatchTexts, Plugins } from "@bezel/core/host/contract"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

type Context = Pick<TuiContext, "connection" | "onActivate" | "use"> & {
  readonly ui: Pick<TuiContext["ui"], "notify">
}

export const tui = Effect.fn("versions/tui")(function*(ctx: Context) {
  const host = yield* ctx.use(Plugins)
  const told = new Set<string>()
  const tell = (peer: string, before = "") => (mismatches: ReadonlyArray<Mismatch>) =>
    Effect.forEach(mismatchTexts(mismatches, peer), (sentence) => {
      const text = `${before}${sentence}`
      if (told.has(text)) return Effect.void
      told.add(text)
      return ctx.ui.notify(text, "warning")
    }, { discard: true })
  const tellOwn = tell("the session's host")
  const tellUpstream = tell("the coordinator", "Session's host: ")
  yield* ctx.onActivate(Effect.gen(function*() {
    yield* Effect.forkScoped(Stream.runForEach(ctx.connection.changes, ({ mismatches = [] }) => tellOwn(mismatches)))
    yield* Effect.forkScoped(Stream.runForEach(host.upstream.changes, tellUpstream))
  }))
})
