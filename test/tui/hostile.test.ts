/** Every place where a facet hands over a text that is not its own: nothing of it acts on the terminal. */
import { Plugin } from "@bezel/core/host"
import { group, image, markdown, row, text, type TuiContext } from "@bezel/tui"
import { it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { describe, expect } from "vitest"
import { testTerminal } from "./memory-terminal.ts"
import { makeStubSession } from "./stub-session.ts"

/** Titles of windows, the clipboard, wiping, other screens, C1, device controls, reordering, hidden letters. */
const evil = "\x1b]0;owned\x07\x1b]52;c;aGk=\x07\x1b[2J\x1b[?1049h\x9b2J\x90q\x9c\x1bPq\x1b\\\u202e\u2066\u{e0041}\b"

const mentioned = [`${evil}.txt`, "plain.txt"]

const open = Effect.gen(function*() {
  const session = yield* makeStubSession(() => Effect.void)
  const started = yield* Deferred.make<TuiContext>()
  const shown = { body: [text("the body")] as ReadonlyArray<ReturnType<typeof text>> }
  const base = Plugin.define({
    id: "test.base",
    tui: (ctx) =>
      Effect.gen(function*() {
        const editor = yield* ctx.ui.editor({
          onSubmit: () => Effect.fail({ message: `refused ${evil}` }),
          mentions: () => Effect.succeed(mentioned.map((value) => ({ value, description: evil })))
        })
        yield* ctx.screens.register("chat", {
          title: "Test",
          open: Effect.succeed({ editor, body: () => [...shown.body, ...ctx.slots.render("place")] })
        })
        yield* ctx.commands.register(`id${evil}`, {
          slash: `name${evil}`,
          argument: evil,
          description: `described ${evil}`,
          run: () => Effect.fail(new Error(`failed ${evil}`))
        })
        yield* ctx.commands.register("fine", {
          slash: "nameless",
          description: `described ${evil}`,
          run: () => Effect.fail(new Error(`failed ${evil}`))
        })
        yield* ctx.keybindings.bind("f2", { command: `missing${evil}` })
        yield* ctx.themes.register(`theme${evil}`, { colors: { text: `#ffffff${evil}`, accent: evil } })
        yield* ctx.onActivate(Effect.asVoid(Deferred.succeed(started, ctx)))
      })
  })
  const screen = yield* testTerminal({
    presentation: session.presentation,
    plugins: Plugin.sources("tui", [base])
  })
  yield* screen.until("the body")
  const ctx = yield* Deferred.await(started)
  const before = screen.terminal.written.length
  /** What of the text got through, beside what the renderer and the paint write. */
  const leaked = () =>
    screen.terminal.written.slice(before)
      .replaceAll("\x1b]8;;\x07", "")
      // eslint-disable-next-line no-control-regex
      .replace(/\x1b\[(?:[0-9;]*m|[0-9]*[ABCDGJ]|2?K|\?25[lh]|\?2026[hl])/g, "")
      // eslint-disable-next-line no-control-regex
      .replace(/[^\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu, "")
  return { ctx, leaked, screen, shown }
})

describe("a text that is not ours", () => {
  it.live("cannot act as part of what a facet shows", () =>
    Effect.gen(function*() {
      const { ctx, leaked, screen, shown } = yield* open
      yield* ctx.slots.add("place", {
        order: 0,
        render: () => [
          group([
            text(evil, { marker: evil }),
            row(evil, evil),
            markdown(`${evil}\n\n- ${evil}\n\n\`\`\`${evil}\n${evil}`)
          ]),
          image({ mediaType: evil, data: evil, fileName: evil }),
          ...ctx.toolRenderers.render({
            callID: "c",
            name: evil,
            args: { [evil]: evil },
            argsText: evil,
            status: "failed",
            output: evil,
            progress: evil,
            details: evil,
            isError: true
          }, { expanded: true }),
          text("end of the place")
        ]
      })
      shown.body = [text(`changed ${evil}`)]
      yield* ctx.ui.notify(`told ${evil}`, "error")
      yield* ctx.ui.attention(`ring ${evil}`).pipe(Effect.andThen(Effect.sync(() => ctx.ui.redraw())))
      yield* screen.until("end of the place")
      yield* screen.until(/changed\s+␛\]0;owned/)
      // What tells the terminal of something is ours, with its text made harmless.
      expect(leaked().replace("\x1b\x07", "")).toBe("")
    }))

  it.live("cannot act as a name that is completed, and one that nobody could type is not offered", () =>
    Effect.gen(function*() {
      const { leaked, screen } = yield* open
      yield* screen.type("look @")
      yield* screen.until("plain.txt")
      expect(yield* screen.text).not.toMatch(/→ .*owned.*\.txt|\n {2}␛/)
      yield* screen.type("\t")
      yield* screen.until("look @plain.txt")
      yield* screen.type("\x15/name")
      yield* screen.until(/nameless.*described ␛\]0;owned/)
      expect(yield* screen.text).not.toMatch(/\/name␛/)
      expect(leaked()).toBe("")
    }))

  it.live("cannot act as what is typed or pasted, into the editor or a dialog", () =>
    Effect.gen(function*() {
      const { ctx, leaked, screen } = yield* open
      const paste = `\x1b[200~begin ${evil} end\x1b[201~`
      yield* screen.type(paste)
      yield* screen.until(/begin[\s\S]*end/)
      const asked = yield* Effect.forkChild(
        ctx.ui.input({ title: `t${evil}`, placeholder: `p${evil}`, expected: true })
      )
      yield* screen.until(/p␛\]0;owned/)
      yield* screen.type(paste)
      yield* screen.until(/› begin[\s\S]*end/)
      yield* Fiber.interrupt(asked)
      const chosen = yield* Effect.forkChild(ctx.ui.select({
        title: `s${evil}`,
        search: true,
        actions: [{ key: "ctrl+r", label: `a${evil}`, value: (value: number) => value }],
        options: [{ value: 1, label: `l${evil}`, description: `d${evil}` }]
      }))
      yield* screen.until(/ctrl\+r a␛\]0;owned[\s\S]*enter choose/)
      yield* screen.type("\u202e\u009b")
      yield* screen.type("x")
      yield* screen.until("nothing has these words")
      yield* Fiber.interrupt(chosen)
      expect(leaked()).toBe("")
    }))

  it.live("cannot act as the reason of a failure, the name of a theme, a command or a key's command", () =>
    Effect.gen(function*() {
      const { ctx, leaked, screen } = yield* open
      yield* screen.type("/nameless\r")
      yield* screen.until(/failed\s+␛\]0;owned/)
      yield* screen.type("hello\r")
      yield* screen.until(/refused\s+␛\]0;owned/)
      yield* screen.type("\x1bOQ")
      yield* screen.until(/f2 is bound to\s+missing␛\]0;owned/)
      yield* screen.type("\x15/x\u202e\r")
      yield* screen.until("There is no command /x<U+202E>")
      expect(yield* ctx.themes.select(`theme${evil}`)).toBe(true)
      yield* ctx.ui.overlay({
        title: evil,
        body: () => {
          throw new Error(`broken ${evil}`)
        }
      })
      yield* screen.until(/broken\s+␛\]0;owned/)
      expect(leaked()).toBe("")
    }).pipe(Effect.scoped))
})
