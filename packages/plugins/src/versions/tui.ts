/**
 * Tells a person of plugins and contracts that the hosts they talk through have in different versions: this terminal and the
 * session's host, and that host and its coordinator. Each is told once. Such plugins still run: their services say themselves
 * what they cannot decode.
 */
import { type Mismatch, mismatchText, Plugins } from "@bezel/core/host/contract"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

type Context = Pick<TuiContext, "connection" | "onActivate" | "use"> & {
  readonly ui: Pick<TuiContext["ui"], "notify">
}

export const tui = Effect.fn("versions/tui")(function*(ctx: Context) {
  const host = yield* ctx.use(Plugins)
  const told = new Set<string>()
  const tell = (sentence: (mismatch: Mismatch) => string) => (mismatches: ReadonlyArray<Mismatch>) =>
    Effect.forEach(mismatches, (mismatch) => {
      const text = sentence(mismatch)
      if (told.has(text)) return Effect.void
      told.add(text)
      return ctx.ui.notify(text, "warning")
    }, { discard: true })
  const tellOwn = tell((mismatch) => mismatchText(mismatch, "the session's host"))
  const tellUpstream = tell((mismatch) => `Session's host: ${mismatchText(mismatch, "the coordinator")}`)
  yield* ctx.onActivate(Effect.gen(function*() {
    yield* Effect.forkScoped(Stream.runForEach(ctx.connection.changes, ({ mismatches = [] }) => tellOwn(mismatches)))
    yield* Effect.forkScoped(Stream.runForEach(host.upstream.changes, tellUpstream))
  }))
})
