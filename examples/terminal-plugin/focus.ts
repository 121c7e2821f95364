/**
 * A plugin for the terminal alone, as somebody outside of this repository writes it: `/focus MINUTES` counts down above the
 * editor, calls of `read` say less, and there is a theme with few colours. What it adds belongs to it, and goes when it is
 * taken out or loaded anew; so does the countdown.
 */
import { Plugin } from "@bezel/core/host"
import { span, text, type Theme, type ToolRenderer, type TuiContext } from "@bezel/tui"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

const quietRead: ToolRenderer = {
  title: ({ args }) => {
    const path: unknown = typeof args === "object" && args !== null ? Reflect.get(args, "path") : null
    return [span(typeof path === "string" ? path : "a file", { color: "muted" })]
  },
  body: () => []
}

const theme: Theme = { colors: { accent: 6, user: 6, muted: 8, border: 8, error: 1 } }

const tui = Effect.fn("focus/tui")(function*(ctx: TuiContext) {
  let left = 0
  let counting: Fiber.Fiber<void> | null = null

  const count = Effect.gen(function*() {
    const until = (yield* Clock.currentTimeMillis) + left * 1000
    while (left > 0) {
      yield* Effect.sleep("1 second")
      left = Math.max(0, Math.round((until - (yield* Clock.currentTimeMillis)) / 1000))
      ctx.ui.redraw()
    }
    yield* ctx.ui.notify("Time for a break.")
  })

  yield* ctx.commands.register("focus.start", {
    slash: "focus",
    argument: "MINUTES",
    description: "Count down above the editor; 0 stops",
    run: (minutes) =>
      Effect.gen(function*() {
        const wanted = Number(minutes)
        if (!(wanted >= 0 && wanted <= 600) || minutes === "") {
          return yield* ctx.ui.notify("Say how many minutes, at most 600: /focus 25", "warning")
        }
        if (counting !== null) yield* Fiber.interrupt(counting)
        left = Math.round(wanted * 60)
        counting = left === 0 ? null : yield* ctx.own(Effect.forkScoped(count))
        ctx.ui.redraw()
      })
  })
  yield* ctx.keybindings.bind("f6", { command: "focus.start", argument: "25" })
  yield* ctx.toolRenderers.register("read", quietRead)
  yield* ctx.themes.register("focus", theme)
  yield* ctx.slots.add("chat.aboveEditor", {
    order: 90,
    render: () =>
      left === 0
        ? []
        : [text(span(`Focus ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`, { color: "accent" }))]
  })
})

export default Plugin.define({ id: "example.focus", version: "1.0.0", tui })
