/**
 * Compares the plugins of the terminal with those of the session host, whenever the two connect, and tells a person of those
 * whose versions differ. Such plugins still run: their services say themselves what they cannot decode.
 */
import { Plugins } from "@bezel/core/host/contract"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { mismatchText, versionMismatches } from "./compare.ts"

type Context = Pick<TuiContext, "connection" | "onActivate" | "plugins" | "use"> & {
  readonly ui: Pick<TuiContext["ui"], "notify">
}

export const tui = Effect.fn("versions/tui")(function*(ctx: Context) {
  const host = yield* ctx.use(Plugins)
  const compare = Effect.gen(function*() {
    const mismatches = versionMismatches(yield* ctx.plugins, yield* host.list())
    if (mismatches.length === 0) return
    const text = mismatchText(mismatches)
    yield* Effect.logWarning(text)
    yield* ctx.ui.notify(text, "warning")
  }).pipe(Effect.ignore)
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
    ctx.connection.changes.pipe(
      Stream.map(({ status }) => status),
      Stream.changes,
      Stream.filter((status) => status === "connected"),
      Stream.runForEach(() => compare)
    )
  )))
})
