import { Plugin, type PresentationHalf } from "@bezel/core/host"
import type { Facet, PluginSource } from "@bezel/core/kernel"
import { text, type TuiContext } from "@bezel/tui"
import { it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { describe, expect } from "vitest"
import focus from "../../examples/terminal-plugin/focus.ts"
import { testTerminal } from "../tui/memory-terminal.ts"
import { makeStubSession } from "../tui/stub-session.ts"

/** A terminal with the plugin, whose code can be put in another's place, as a file's is. */
const open = Effect.gen(function*() {
  const session = yield* makeStubSession(() => Effect.void)
  const started = yield* Deferred.make<TuiContext>()
  const base = Plugin.define({
    id: "test.base",
    tui: (ctx: TuiContext) =>
      Effect.gen(function*() {
        const editor = yield* ctx.ui.editor({ onSubmit: () => Effect.void })
        yield* ctx.screens.register("chat", {
          title: "Test",
          open: Effect.succeed({ editor, body: () => [text("the body"), ...ctx.slots.render("chat.aboveEditor")] })
        })
        yield* ctx.onActivate(Effect.asVoid(Deferred.succeed(started, ctx)))
      })
  })
  const sources = Plugin.sources("tui", [base, focus])
  let code: Facet<TuiContext> | undefined = yield* (sources[1]?.load ?? Effect.succeed(undefined))
  const original = code
  const presentation: PresentationHalf<never> = {
    ...session.presentation,
    makeContext: (facet, kernel) => ({
      ...session.presentation.makeContext(facet, kernel),
      reload: (plugins) => kernel.reload(plugins === undefined ? {} : { plugins })
    })
  }
  const screen = yield* testTerminal({
    presentation,
    plugins: sources.map((source, index): PluginSource<TuiContext> =>
      index === 0
        ? source
        : { ...source, reload: Effect.sync(() => ({ entry: source.entry, facet: code })) }
    )
  })
  yield* screen.until("the body")
  const ctx = yield* Deferred.await(started)
  const counts = Effect.gen(function*() {
    const all = [
      ...(yield* ctx.commands.list),
      ...(yield* ctx.keybindings.list),
      ...(yield* ctx.toolRenderers.list),
      ...(yield* ctx.themes.list)
    ]
    return {
      own: all.filter(({ plugin }) => plugin === "example.focus").length,
      hidden: [...(yield* ctx.commands.list), ...(yield* ctx.toolRenderers.list), ...(yield* ctx.themes.list)]
        .flatMap(({ hides }) => hides).length
    }
  })
  return {
    counts,
    ctx,
    screen,
    reload: ctx.reload(["example.focus"]),
    takeOut: () => {
      code = () => Effect.void
    },
    putBack: () => {
      code = original
    }
  }
})

const shown = (screen: string, words: string) => screen.split(words).length - 1

describe("the example of a terminal plugin", () => {
  it.live("adds a command, a key, a renderer, a place on the screen and a theme", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open
      yield* screen.type("/focus 2\r")
      yield* screen.until(/Focus [12]:\d\d/)
      yield* screen.type("\x1b[17~")
      yield* screen.until(/Focus 2[45]:\d\d/)
      yield* screen.type("/focus soon\r")
      yield* screen.until("Say how many minutes")
      expect(yield* ctx.themes.select("focus")).toBe(true)
      const card = ctx.toolRenderers.render({
        callID: "c",
        name: "read",
        args: { path: "a.ts" },
        argsText: "",
        status: "completed",
        output: "many lines",
        progress: null,
        details: null,
        isError: false
      }, { expanded: true })
      expect(JSON.stringify(card)).not.toContain("many lines")
    }))

  it.live("leaves nothing of itself behind, loaded anew ten times and taken out", () =>
    Effect.gen(function*() {
      const { counts, ctx, putBack, reload, screen, takeOut } = yield* open
      expect(yield* counts).toEqual({ own: 4, hidden: 0 })
      for (let time = 0; time < 10; time++) {
        yield* screen.type("/focus 90\r")
        yield* screen.until(/Focus (90:00|89:5\d)/)
        expect(yield* reload).toEqual(["example.focus"])
        // The countdown of the code before is gone, and the place is there once.
        yield* screen.until(/^(?![\s\S]*Focus \d)/)
        expect(yield* counts).toEqual({ own: 4, hidden: 0 })
      }
      yield* screen.type("/focus 90\r")
      yield* screen.until("Focus 90:00")
      expect(shown(yield* screen.text, "Focus ")).toBe(1)
      expect(yield* ctx.themes.select("focus")).toBe(true)
      takeOut()
      yield* reload
      yield* screen.until(/^(?![\s\S]*Focus \d)/)
      expect(yield* counts).toEqual({ own: 0, hidden: 0 })
      expect(yield* ctx.commands.run("focus.start", "1")).toBe(false)
      expect(yield* ctx.themes.names).not.toContain("focus")
      yield* screen.type("/focus 1\r")
      yield* screen.until("There is no command /focus.")
      putBack()
      yield* reload
      expect(yield* counts).toEqual({ own: 4, hidden: 0 })
    }))
})
