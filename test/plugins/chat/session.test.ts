/** The chat screen over a real session: the real kernel, harness, tools, services and boundary, a scripted model. */
import { makePresentation, Plugin } from "@bezel/core/host"
import { call, say, scriptedModel, type ScriptedTurn, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { permissionsSession } from "@bezel/plugins/permissions"
import { toolsSession } from "@bezel/plugins/tools"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { testTerminal } from "../../tui/memory-terminal.ts"

const echo = Plugin.define({
  id: "test.echo",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "echo",
        tool({
          description: "Says it again",
          input: Schema.Struct({ words: Schema.String }),
          execute: (input, running) => Effect.as(running.stream(`echo: ${input.words}\n`), undefined)
        })
      )
    ))
})

const openChat = (turns: ReadonlyArray<ScriptedTurn>, plugins: ReadonlyArray<Plugin> = [echo]) =>
  Effect.gen(function*() {
    const host = yield* testSessionHost(plugins, { model: scriptedModel(turns) })
    const session = yield* host.session.create({})
    const connection = yield* host.connect(session.id)
    const presentation = yield* makePresentation({ connection, location: host.location })
    const screen = yield* testTerminal({ presentation, plugins: builtinTerminalPlugins("test") })
    yield* screen.until("test/scripted")
    return { host, screen, session }
  })

describe("the chat screen over a real session", () => {
  it.live("sends what is typed and shows the answer", () =>
    Effect.gen(function*() {
      const { screen } = yield* openChat([[say("Hello ", "to **you**.")]])
      yield* screen.type("hi there\r")
      yield* screen.until("Hello to you.")
      expect(yield* screen.text).toContain("› hi there")
      yield* screen.type("\x04")
      expect(yield* screen.ended).toEqual({ type: "quit" })
    }))

  it.live("exports all of a conversation, also what was summarized", () =>
    Effect.gen(function*() {
      const long = "x".repeat(100_000)
      const { host, screen, session } = yield* openChat([[say(long)], [say(long)], [say("What was.")], [say("After.")]])
      for (const prompt of ["one", "two"]) yield* host.ask(session.id, prompt)
      yield* screen.type("/compact\r")
      yield* screen.until("The older part of the conversation was summarized.")
      yield* host.ask(session.id, "three")
      const file = join(host.location.directory, "talk.md")
      yield* screen.type(`/export ${file}\r`)
      yield* screen.until("Written to")
      const parts = (yield* Effect.promise(() => readFile(file, "utf8"))).match(/^## .*\n\n.*/gm)
      expect(parts?.map((part) => part.slice(0, 20).replace(/\s+/g, " "))).toEqual([
        "## Prompt one",
        "## Answer xxxxxxxxx",
        "## Prompt two",
        "## Answer xxxxxxxxx",
        "## Summary of what c",
        "## Prompt three",
        "## Answer After."
      ])
    }))

  it.live("sends no line that is meant for a shell to a model, also where nothing runs it, and says so", () =>
    Effect.gen(function*() {
      const { host, screen, session } = yield* openChat([])
      yield* screen.type("!echo x\r")
      yield* screen.until('This host has no service "bezel.shell"')
      expect((yield* host.session.messages(session.id)).messages).toEqual([])
    }))

  it.live("shows a tool's call, its output and the answer after it", () =>
    Effect.gen(function*() {
      const { screen } = yield* openChat([[say("I look."), call("echo", { words: "once more" }, "c1")], [
        say("That was it.")
      ]])
      yield* screen.type("go\r")
      yield* screen.until("That was it.")
      expect(yield* screen.text).toMatch(/I look\.\n\n✓ echo words=once more\n {2}echo: once more\n\nThat was it\./)
    }))

  it.live("interrupts a turn and keeps what was said", () =>
    Effect.gen(function*() {
      const { screen } = yield* openChat([[say("The beginning"), { step: "never" }]])
      yield* screen.type("go\r")
      yield* screen.until("The beginning")
      yield* screen.type("\x1b")
      yield* screen.until("Interrupted.")
      expect(yield* screen.text).toContain("The beginning")
    }))

  it.live("shows why an input stayed unanswered", () =>
    Effect.gen(function*() {
      const { screen } = yield* openChat([])
      yield* screen.type("go\r")
      yield* screen.until(/✗ .*script/i)
      expect(yield* screen.text).toContain("› go")
    }))

  it.live("shows what waits, and sends it at the next boundary", () =>
    Effect.gen(function*() {
      const { screen } = yield* openChat([[say("first"), { step: "wait", duration: "400 millis" }], [say("second")]])
      yield* screen.type("one\r")
      yield* screen.until("first")
      yield* screen.type("/later two\r")
      yield* screen.until("↳ later: two")
      yield* screen.until("second")
      expect(yield* screen.text).toContain("› two")
      expect((yield* screen.text).slice(-400)).not.toContain("↳ later")
    }))

  const gated = [
    Plugin.define({ id: "bezel.tools", session: toolsSession }),
    Plugin.define({ id: "bezel.permissions", session: permissionsSession })
  ]
  const writes: ReadonlyArray<ScriptedTurn> = [
    [call("write", { path: "note.txt", content: "hello\n" }, "w1")],
    (
      request
    ) => [say(`I was told: ${JSON.stringify(request.messages.at(-1)).includes("use paper") ? "paper" : "go on"}`)]
  ]

  it.live("asks before a tool writes, and lets it when the person says yes", () =>
    Effect.gen(function*() {
      const { host, screen } = yield* openChat(writes, gated)
      yield* screen.type("write it\r")
      yield* screen.until("Allow write?")
      yield* screen.until("write waits for you")
      yield* screen.until("enter choose · esc cancel")
      yield* screen.type("1")
      yield* screen.until("I was told: go on")
      expect(yield* screen.text).toMatch(/✓ write note\.txt[^\n]*\n(.*\n)?.*\+ ?hello/)
      expect(yield* Effect.promise(() => readFile(`${host.location.directory}/note.txt`, "utf8"))).toBe("hello\n")
    }))

  it.live("tells the model a person's no, and what to do instead", () =>
    Effect.gen(function*() {
      const { screen } = yield* openChat(writes, gated)
      yield* screen.type("write it\r")
      yield* screen.until("Allow write?")
      yield* screen.until("enter choose · esc cancel")
      yield* screen.type("\x1b[A\r")
      yield* screen.until("What should it do instead?")
      yield* screen.type("use paper\r")
      yield* screen.until("I was told: paper")
      expect(yield* screen.text).toContain("✗ write note.txt")
    }))

  it.live("takes the dialog away when the turn is interrupted", () =>
    Effect.gen(function*() {
      const { host, screen, session } = yield* openChat(writes, gated)
      yield* screen.type("write it\r")
      yield* screen.until("Allow write?")
      yield* host.session.interrupt(session.id)
      yield* screen.until("Interrupted.")
      expect((yield* screen.text).trimEnd()).not.toContain("Allow once")
    }))
})
