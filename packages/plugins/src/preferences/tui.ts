/** The terminal facet of preferences: the user's own themes, and `/theme` to choose one and keep it. */
import type { Theme, TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Preferences } from "./contract.ts"

/** The terminal facet. */
export const tui = Effect.fn("preferences/tui")(function*(ctx: TuiContext) {
  const preferences = yield* ctx.use(Preferences)

  const load = Effect.gen(function*() {
    const { problems, themes } = yield* preferences.themes()
    for (const { colors, id } of themes) {
      const theme: Theme = { colors }
      yield* ctx.themes.register(id, theme)
    }
    for (const problem of problems) yield* ctx.ui.notify(problem, "warning")
  })
  const onceConnected = Stream.runHead(Stream.filter(ctx.connection.changes, ({ status }) => status === "connected"))
  yield* ctx.onActivate(
    Effect.catch(load, () => Effect.asVoid(Effect.forkScoped(Effect.ignore(Effect.andThen(onceConnected, load)))))
  )

  yield* ctx.commands.register("theme.choose", {
    slash: "theme",
    argument: "[NAME]",
    description: "Choose the colours, and keep the choice",
    run: (wish) =>
      Effect.gen(function*() {
        const names = yield* ctx.themes.names
        const name = wish.trim() !== "" ? wish.trim() : yield* ctx.ui.select({
          title: "Theme",
          options: names.map((value) => ({ value, label: value }))
        })
        if (name === null) return
        if (!(yield* ctx.themes.select(name))) {
          return yield* ctx.ui.notify(`There is no theme ${name}; there are ${names.join(", ")}.`, "error")
        }
        yield* preferences.set({ theme: name })
      })
  })
})
