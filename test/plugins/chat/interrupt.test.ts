/** What escape and ctrl+c end, over a real session. */
import { makePresentation } from "@bezel/core/host"
import { fail, say, scriptedModel, type ScriptedTurn, testSessionHost } from "@bezel/core/testing"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe, expect } from "vitest"
import { testTerminal } from "../../tui/memory-terminal.ts"

const openChat = (turns: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const host = yield* testSessionHost([], { model: scriptedModel(turns) })
    const session = yield* host.session.create({})
    const presentation = yield* makePresentation({
      connection: yield* host.connect(session.id),
      location: host.location
    })
    const screen = yield* testTerminal({ presentation, plugins: builtinTerminalPlugins("test") })
    yield* screen.until("test/scripted")
    return screen
  })

const long = "x".repeat(100_000)

describe("escape", () => {
  it.live("ends a summary that was asked for, which says so, and the conversation is as it was", () =>
    Effect.gen(function*() {
      const { text, type, until } = yield* openChat([[say(long)], [say(long)], [{ step: "never" }], [say("goes on")]])
      yield* type("one\r")
      yield* until(/› one[\s\S]*x\n\n\n─/)
      yield* type("two\r")
      yield* until(/› two[\s\S]*x\n\n\n─/)
      yield* type("/compact\r")
      yield* until(/[⠀-⣿] Summarizing the older part \d+s +esc to interrupt/)
      yield* type("\x1b")
      yield* until("The conversation was not summarized.")
      yield* until(/^(?![\s\S]*Summarizing)/)
      yield* type("three\r")
      yield* until("goes on")
      expect(yield* text).not.toContain("Interrupted.")
    }))

  it.live("ends the wait for another try of a request", () =>
    Effect.gen(function*() {
      const { text, type, until } = yield* openChat([[fail("unavailable", { message: "Come back later." })]])
      yield* type("one\r")
      yield* until(/[⠀-⣿] Retry in \d+s \(attempt 2\): Come back later\. +esc to interrupt/)
      yield* type("\x1b")
      yield* until("⊘ Interrupted.")
      expect(yield* text).not.toContain("Retry in")
    }))
})

describe("ctrl+c", () => {
  it.live("clears what was typed since it was pressed before, and leaves where nothing was", () =>
    Effect.gen(function*() {
      const { ended, text, type, until } = yield* openChat([])
      yield* type("a thought")
      yield* until("a thought")
      yield* type("\x03")
      yield* until("Press ctrl+c again to quit.")
      yield* type("another")
      yield* until("another")
      yield* type("\x03")
      yield* until(/^(?![\s\S]*another)/)
      expect(yield* text).toContain("Press ctrl+c again to quit.")
      yield* type("\x03")
      expect(yield* ended).toEqual({ type: "quit" })
    }))
})
