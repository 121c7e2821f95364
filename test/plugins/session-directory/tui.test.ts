/** The sessions of a place in a terminal, over a coordinator with everything in one process. */
import { makePresentation, Plugin } from "@bezel/core/host"
import { SessionStore } from "@bezel/core/session"
import { scriptedModel, temporaryDirectory, testGlobals, testSessions } from "@bezel/core/testing"
import { sessionDirectoryPlugin } from "@bezel/plugins/session-directory"
import { inlineLocations, Placement } from "@bezel/server"
import { text } from "@bezel/tui"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { tui } from "../../../packages/plugins/src/session-directory/tui.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"

const open = (...titles: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const sessions = yield* testSessions
    const globals = testGlobals([sessionDirectoryPlugin], { sessions, model: scriptedModel([]) })
    const map = inlineLocations({
      plugins: () => Effect.succeed(Plugin.sources("coordinator", [sessionDirectoryPlugin]))
    })
    const context = yield* Layer.build(Placement.inline.pipe(Layer.provide(map), Layer.provide(globals)))
    const host = yield* Context.get(context, Placement).place(yield* temporaryDirectory)
    const store = Context.get(sessions, SessionStore)
    const shown = yield* store.create({ location: host.location, title: "the one that is shown" })
    for (const title of titles) yield* store.create({ location: host.location, title })
    const connection = yield* host.connect({ label: "test" })
    yield* connection.select(shown.id)
    const screen = yield* testTerminal({
      presentation: yield* makePresentation({ connection, location: host.location }),
      plugins: Plugin.sources("tui", [
        Plugin.define({ id: "bezel.session-directory", tui }),
        Plugin.define({
          id: "test.screen",
          tui: (ctx) =>
            Effect.gen(function*() {
              const editor = yield* ctx.ui.editor({ onSubmit: () => Effect.void })
              yield* ctx.screens.register("chat", {
                title: "Test",
                open: Effect.succeed({ editor, body: () => [text("the body")] })
              })
            })
        })
      ])
    })
    yield* screen.until("the body")
    const titlesNow = Effect.map(
      store.list({ location: host.location, limit: 100 }),
      (list) => list.sessions.map(({ title }) => title).sort()
    )
    return { ...screen, titlesNow }
  })

describe("/sessions", () => {
  it.live("narrows its list by what is typed, and shows all again", () =>
    Effect.gen(function*() {
      const { text: shown, type, until } = yield* open("fix the cart", "write docs", "cart totals")
      yield* type("/sessions\r")
      yield* until(/ctrl\+r rename · ctrl\+x remove · type to search\n/)
      yield* type("cart")
      yield* until(/\n\/ cart\n› 1\. (fix the cart|cart totals)/)
      expect(yield* shown).not.toContain("write docs")
      yield* type(" fix")
      yield* until(/\n\/ cart fix\n› 1\. fix the cart {2}just now\n/)
      yield* type("es")
      yield* until("nothing has these words")
      yield* type("\x7f\x7f")
      yield* until(/\/ cart fix\n› 1\. fix the cart/)
      yield* type("\x1b")
      yield* until("write docs")
    }).pipe(Effect.scoped))

  it.live("renames a session of the list, and goes on with the list", () =>
    Effect.gen(function*() {
      const { titlesNow, type, until } = yield* open("fix the cart")
      yield* type("/sessions\r")
      yield* until("type to search")
      yield* type("fix")
      yield* until("/ fix")
      yield* type("\x12")
      yield* until("What is fix the cart called?")
      yield* type("a better name\r")
      yield* until(/Sessions[\s\S]*a better name/)
      expect(yield* titlesNow).toEqual(["a better name", "the one that is shown"])
    }).pipe(Effect.scoped))

  it.live("removes a session once that is confirmed, and never the one that is shown", () =>
    Effect.gen(function*() {
      const { titlesNow, type, until } = yield* open("fix the cart", "write docs")
      yield* type("/sessions\r")
      yield* until("type to search")
      yield* type("fix")
      yield* until("/ fix")
      yield* type("\x18")
      yield* until(/Remove fix the cart\?\n {2}What was said in it is deleted for good\.\n› 1\. Remove it/)
      yield* type("2")
      yield* until(/Sessions[\s\S]*fix the cart/)
      expect(yield* titlesNow).toContain("fix the cart")
      yield* type("fix")
      yield* until("/ fix")
      yield* type("\x18")
      yield* until("1. Remove it")
      yield* type("1")
      yield* until("fix the cart is removed.")
      yield* until(/Sessions\n› 1\./)
      expect(yield* titlesNow).toEqual(["the one that is shown", "write docs"])
      yield* type("shown")
      yield* until("/ shown")
      yield* type("\x18")
      yield* until("This session is shown here; show another one before you remove it.")
      expect(yield* titlesNow).toEqual(["the one that is shown", "write docs"])
    }).pipe(Effect.scoped))
})
