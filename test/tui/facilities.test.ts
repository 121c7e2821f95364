/** What facets get of the terminal, on a terminal in memory. */
import { Plugin } from "@bezel/core/host"
import { span, text, type TuiContext } from "@bezel/tui"
import { it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { describe, expect } from "vitest"
import { eventually } from "../eventually.ts"
import { testTerminal } from "./memory-terminal.ts"
import { makeStubSession } from "./stub-session.ts"

type Setup = (ctx: TuiContext) => Effect.Effect<void, unknown, Scope.Scope>

/** A screen with an editor that remembers what was sent, and the facet under test. */
const open = (...facets: ReadonlyArray<Setup>) =>
  Effect.gen(function*() {
    const session = yield* makeStubSession(() => Effect.void)
    const sent: Array<string> = []
    const contexts: Array<TuiContext> = []
    const started = yield* Deferred.make<void>()
    const base = Plugin.define({
      id: "test.base",
      tui: (ctx) =>
        Effect.gen(function*() {
          contexts.push(ctx)
          const editor = yield* ctx.ui.editor({ onSubmit: (words) => Effect.sync(() => sent.push(words)) })
          yield* ctx.screens.register("chat", {
            title: "Test",
            open: Effect.succeed({ editor, body: () => [text("the body"), ...ctx.slots.render("place")] })
          })
          yield* ctx.onActivate(Effect.asVoid(Deferred.succeed(started, undefined)))
        })
    })
    const screen = yield* testTerminal({
      presentation: session.presentation,
      plugins: Plugin.sources("tui", [
        base,
        ...facets.map((tui, index) => Plugin.define({ id: `test.facet${index}`, tui }))
      ])
    })
    yield* screen.until("the body")
    yield* Deferred.await(started)
    const [ctx] = contexts
    if (ctx === undefined) return yield* Effect.die(new Error("The facet did not start."))
    return { ctx, screen, sent }
  })

const goneFrom = (words: string) => new RegExp(`^(?![\\s\\S]*${words.replace("?", "\\?")})`)

describe("dialogs", () => {
  it.live("give the chosen value, by arrows or by number, and null when dismissed", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const ask = ctx.ui.select({
        title: "Which?",
        options: [{ value: 1, label: "one" }, { value: 2, label: "two", description: "the second" }]
      })
      for (const [keys, answer] of [["\x1b[B\r", 2], ["1", 1], ["\x1b", null], ["\x03", null]] as const) {
        const fiber = yield* Effect.forkChild(ask)
        yield* screen.until("two  the second")
        yield* screen.type(keys)
        expect(yield* Fiber.join(fiber)).toBe(answer)
        yield* screen.until(goneFrom("Which?"))
      }
    }))

  it.live("wait their turn and close when the asking effect is interrupted", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const first = yield* Effect.forkChild(ctx.ui.confirm({ title: "First?" }))
      yield* screen.until("First?")
      const second = yield* Effect.forkChild(ctx.ui.confirm({ title: "Second?" }))
      yield* screen.until("1 of 2")
      expect(yield* screen.text).not.toContain("Second?")
      yield* Fiber.interrupt(first)
      yield* screen.until(/Second\?[\s\S]*enter choose/)
      expect(yield* screen.text).not.toContain("First?")
      yield* screen.type("1")
      expect(yield* Fiber.join(second)).toBe(true)
    }))

  it.live("take a line of text, and a dismissed question for a no", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const line = yield* Effect.forkChild(ctx.ui.input({ title: "Name?" }))
      yield* screen.until("Name?")
      yield* screen.type("Ada")
      yield* screen.type("\r")
      expect(yield* Fiber.join(line)).toBe("Ada")
      const question = yield* Effect.forkChild(ctx.ui.confirm({ title: "Sure?" }))
      yield* screen.until("Sure?")
      yield* screen.type("\x1b")
      expect(yield* Fiber.join(question)).toBe(false)
    }))

  it.live("show hostile titles, labels and bodies as visible characters", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const evil = "\x1b]0;x\x07\u202e"
      const fiber = yield* Effect.forkChild(ctx.ui.select({
        title: `t${evil}`,
        body: [text(`b${evil}`)],
        options: [{ value: 1, label: `l${evil}`, description: `d${evil}` }]
      }))
      yield* screen.until("t␛]0;x␇<U+202E>")
      expect(yield* screen.text).toMatch(/b␛]0;x␇<U\+202E>[\s\S]*l␛]0;x␇<U\+202E> {2}d␛]0;x␇<U\+202E>/)
      expect(screen.terminal.written).not.toContain("\x1b]0;")
      yield* Fiber.interrupt(fiber)
    }))

  it.live("that a command asks take keys at once, others only once the typing has paused", () =>
    Effect.gen(function*() {
      const answers: Array<boolean> = []
      const { ctx, screen } = yield* open((facet) =>
        Effect.asVoid(facet.commands.register("test.ask", {
          slash: "ask",
          description: "Asks",
          run: () => Effect.map(facet.ui.confirm({ title: "Asked for?" }), (answer) => void answers.push(answer))
        }))
      )
      yield* screen.type("/ask\r")
      yield* screen.until("Asked for?")
      yield* screen.type("1")
      yield* eventually(() => answers.length > 0)
      expect(answers).toEqual([true])
      yield* screen.type("x")
      yield* screen.until(/^.*x\s*$/m)
      const fiber = yield* Effect.forkChild(ctx.ui.confirm({ title: "Out of the blue?" }))
      yield* screen.until("Out of the blue?")
      yield* screen.until("keys count as soon as you stop typing")
      yield* screen.type("1")
      yield* screen.until("enter choose · esc cancel")
      expect(yield* screen.text).toContain("Out of the blue?")
      yield* screen.type("2")
      expect(yield* Fiber.join(fiber)).toBe(false)
    }))

  it.live("that waited behind another take no key that was meant for it, whoever has closed that one", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const ask = (title: string) => Effect.forkChild(ctx.ui.confirm({ title }))
      const first = yield* ask("First?")
      yield* screen.until(/First\?[\s\S]*enter choose/)
      const second = yield* ask("Second?")
      const third = yield* ask("Third?")
      yield* screen.until(/First\? +1 of 3/)
      // The key comes when the dialog that it is for has just been taken away.
      yield* Fiber.interrupt(first)
      yield* screen.type("1")
      yield* screen.until(/Second\? +1 of 2[\s\S]*keys count as soon as you stop typing/)
      yield* screen.until(/Second\? +1 of 2[\s\S]*enter choose/)
      yield* screen.type("2")
      expect(yield* Fiber.join(second)).toBe(false)
      yield* screen.type("1")
      yield* screen.until(/Third\?[\s\S]*keys count as soon as you stop typing/)
      yield* screen.until(/Third\?[\s\S]*enter choose/)
      yield* screen.type("1")
      expect(yield* Fiber.join(third)).toBe(true)
    }))

  it.live("that follow from an answer come before those that wait", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const asker = yield* Effect.forkChild(
        Effect.andThen(ctx.ui.confirm({ title: "First?" }), ctx.ui.input({ title: "Why?" }))
      )
      yield* screen.until(/First\?[\s\S]*enter choose/)
      const second = yield* Effect.forkChild(ctx.ui.confirm({ title: "Second?" }))
      yield* screen.until(/First\? +1 of 2/)
      yield* screen.type("2")
      yield* screen.until(/Why\? +1 of 2/)
      yield* screen.type("so\r")
      expect(yield* Fiber.join(asker)).toBe("so")
      yield* screen.until(/Second\?[\s\S]*enter choose/)
      yield* screen.type("1")
      expect(yield* Fiber.join(second)).toBe(true)
    }))

  it.live("keep what is in the editor", () =>
    Effect.gen(function*() {
      const { ctx, screen, sent } = yield* open()
      yield* screen.type("half")
      yield* screen.until("half")
      const fiber = yield* Effect.forkChild(ctx.ui.confirm({ title: "Sure?" }))
      yield* screen.until(/Sure\?[\s\S]*enter choose/)
      yield* screen.type("1")
      expect(yield* Fiber.join(fiber)).toBe(true)
      yield* screen.until("half")
      yield* screen.type(" done")
      yield* screen.type("\r")
      yield* eventually(() => sent.length > 0)
      expect(sent).toEqual(["half done"])
    }))
})

describe("commands and keys", () => {
  it.live("have done what they do before the next key of the same read", () =>
    Effect.gen(function*() {
      const { screen, sent } = yield* open((facet) =>
        Effect.gen(function*() {
          yield* facet.commands.register("test.ask", {
            description: "Asks",
            run: () => Effect.flatMap(facet.ui.input({ title: "What?" }), (words) => facet.ui.notify(`It is ${words}.`))
          })
          yield* facet.keybindings.bind("ctrl+y", { command: "test.ask" })
        })
      )
      yield* screen.type("half\x19that\r")
      yield* screen.until("It is that.")
      yield* screen.until(/─\nhalf\n─/)
      expect(sent).toEqual([])
    }))

  it.live("run in the facet's scope, by slash, key and call", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const { ctx, screen } = yield* open((facet) =>
        Effect.gen(function*() {
          yield* facet.commands.register("test.go", {
            slash: "go",
            description: "Goes",
            run: (argument) => Effect.sync(() => ran.push(argument))
          })
          yield* facet.keybindings.bind("ctrl+g", { command: "test.go", argument: "key" })
        })
      )
      yield* screen.type("/go  far away \r")
      yield* screen.type("\x07")
      yield* eventually(() => ran.length === 2)
      expect(yield* ctx.commands.run("test.go", "call")).toBe(true)
      yield* eventually(() => ran.length === 3)
      expect(ran).toEqual(["far away", "key", "call"])
      expect(yield* ctx.commands.run("test.missing")).toBe(false)
    }))

  it.live("a binding applies only while its condition holds, else the next one or the editor gets the key", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      let on = true
      const { screen } = yield* open((facet) =>
        Effect.gen(function*() {
          yield* facet.commands.register("test.go", {
            description: "Goes",
            run: (argument) => Effect.sync(() => ran.push(argument))
          })
          yield* facet.keybindings.bind("x", { command: "test.go", when: () => on })
          yield* facet.keybindings.bind("y", {
            command: "test.go",
            when: () => {
              throw new Error("broken condition")
            }
          })
        })
      )
      yield* screen.type("x")
      yield* eventually(() => ran.length > 0)
      on = false
      yield* screen.type("x")
      yield* screen.type("y")
      yield* screen.until("xy")
      expect(ran).toEqual([""])
    }))

  it.live("end with their registration and with their facet's closing", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open((facet) =>
        Effect.gen(function*() {
          const registration = yield* facet.commands.register("test.brief", {
            description: "Brief",
            run: () => Effect.void
          })
          yield* facet.commands.register("test.unregister", {
            slash: "off",
            description: "Ends it",
            run: () => Effect.andThen(registration.unregister, registration.unregister)
          })
        })
      )
      expect(yield* ctx.commands.run("test.brief")).toBe(true)
      const runs = () => Effect.runPromise(ctx.commands.run("test.brief"))
      yield* screen.type("/off\r")
      yield* eventually(async () => !await runs())
      expect(yield* ctx.commands.run("test.brief")).toBe(false)
    }))

  it.live("a command that is broken is named, one that says why not has its words, and both cost nothing else", () =>
    Effect.gen(function*() {
      const { screen, sent } = yield* open((facet) =>
        Effect.asVoid(facet.commands.register("test.fail", {
          slash: "fail",
          description: "Fails",
          run: () => {
            throw new Error("no luck")
          }
        })).pipe(
          Effect.andThen(facet.commands.register("test.refuse", {
            slash: "refuse",
            description: "Says why not",
            run: () => Effect.fail({ message: "There is no luck today." })
          })),
          Effect.asVoid
        )
      )
      yield* screen.type("/fail\r")
      yield* screen.until("test.fail: no luck")
      yield* screen.type("/refuse\r")
      yield* screen.until("! There is no luck today.")
      yield* screen.type("still here\r")
      yield* eventually(() => sent.length > 0)
      expect(sent).toEqual(["still here"])
    }))
})

describe("renderers, slots and overlays", () => {
  it.live("slots stand in their order, and a new frame shows what changed", () =>
    Effect.gen(function*() {
      let words = "before"
      const { ctx, screen } = yield* open(
        (facet) => Effect.asVoid(facet.slots.add("place", { order: 2, render: () => [text(words)] })),
        (facet) =>
          Effect.asVoid(facet.slots.add("place", { order: 1, render: () => [text(span("first", { bold: true }))] }))
      )
      yield* screen.until(/first\n *before/)
      words = "after"
      ctx.ui.redraw()
      yield* screen.until(/first\n *after/)
      expect(yield* screen.text).not.toContain("before")
    }))

  it.live("a tool without a renderer, or with one that throws, has the default card", () =>
    Effect.gen(function*() {
      const { ctx } = yield* open((facet) =>
        Effect.asVoid(facet.toolRenderers.register("bad", {
          title: () => {
            throw new Error("bad renderer")
          }
        }))
      )
      const card = ctx.toolRenderers.render({
        callID: "c",
        name: "bad",
        args: { path: "x" },
        argsText: "",
        status: "completed",
        output: "out",
        progress: null,
        details: null,
        isError: false
      }, { expanded: false })
      expect(JSON.stringify(card)).toContain("path=x")
      expect(
        ctx.entryRenderers.render({ id: "e", kind: "unknown", data: null, model: null, head: false, createdAt: 0 })
      ).toBeNull()
    }))

  it.live("a panel scrolls when it is taller than the terminal, and closes with its scope", () =>
    Effect.gen(function*() {
      const { ctx, screen } = yield* open()
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const panel = yield* ctx.ui.overlay({
          title: "Long",
          body: () => Array.from({ length: 100 }, (_, index) => text(`row ${index + 1}`))
        })
        yield* panel.closed
      })))
      yield* screen.until("1-20 of 100")
      yield* screen.type("\x1b[6~")
      yield* screen.until("21-40 of 100")
      expect(yield* screen.text).toContain("row 40")
      yield* Fiber.interrupt(fiber)
      yield* screen.until(goneFrom("row 40"))
    }))
})
