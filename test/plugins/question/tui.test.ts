/** The question dialog on a terminal in memory, and how questions look afterwards. */
import { Plugin } from "@bezel/core/host"
import { text, type ToolCallView } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as fc from "fast-check"
import { describe, expect } from "vitest"
import { Question, type QuestionOption } from "../../../packages/plugins/src/question/contract.ts"
import { questionRenderer, tui } from "../../../packages/plugins/src/question/tui.ts"
import { toolCard } from "../../../packages/tui/src/card.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { makeStubSession } from "../../tui/stub-session.ts"

const open = Effect.gen(function*() {
  const session = yield* makeStubSession(() => Effect.void)
  const screen = yield* testTerminal({
    presentation: session.presentation,
    plugins: Plugin.sources("tui", [
      Plugin.define({
        id: "test.screen",
        tui: (ctx) =>
          Effect.asVoid(ctx.screens.register("chat", {
            title: "Test",
            open: Effect.succeed({ body: () => [text("the body")] })
          }))
      }),
      Plugin.define({ id: "bezel.question", tui })
    ])
  })
  yield* screen.until("the body")
  const ask = (question: string, options: ReadonlyArray<QuestionOption>) =>
    Effect.forkScoped(session.ask(Question, { question, options }))
  return { screen, ask }
})

const option = (label: string, description: string | null = null): QuestionOption => ({ label, description })

describe("the question dialog", () => {
  it.live("shows the options with what speaks for them, and gives the place of the chosen one", () =>
    Effect.gen(function*() {
      const { ask, screen } = yield* open
      const asking = yield* ask("Which colour?", [option("red"), option("green", "like grass")])
      yield* screen.until(/Which colour\?[\s\S]*1\. red[\s\S]*2\. green {2}like grass[\s\S]*3\. Something else/)
      yield* screen.type("2")
      expect(yield* Fiber.join(asking)).toEqual({ outcome: "selected", index: 1 })
    }).pipe(Effect.scoped))

  it.live("takes one's own words instead, and goes back to the options when there are none", () =>
    Effect.gen(function*() {
      const { ask, screen } = yield* open
      const asking = yield* ask("Which colour?", [option("red")])
      yield* screen.until("Something else")
      yield* screen.type("2")
      yield* screen.until("your answer")
      yield* screen.type("\x1b")
      yield* screen.until(/Which colour\?[\s\S]*1\. red/)
      yield* screen.type("2")
      yield* screen.until("your answer")
      yield* screen.type("  \r")
      yield* screen.until(/Which colour\?[\s\S]*1\. red/)
      yield* screen.type("2")
      yield* screen.until("your answer")
      yield* screen.type("blue\r")
      expect(yield* Fiber.join(asking)).toEqual({ outcome: "custom", answer: "blue" })
    }).pipe(Effect.scoped))

  it.live("is declined when it is dismissed, with options and without", () =>
    Effect.gen(function*() {
      const { ask, screen } = yield* open
      const first = yield* ask("Which?", [option("a")])
      yield* screen.until("Which?")
      yield* screen.type("\x1b")
      expect(yield* Fiber.join(first)).toBe("declined")
      const second = yield* ask("Your name?", [])
      yield* screen.until("Your name?")
      yield* screen.type("\r")
      yield* screen.until("Your name?")
      yield* screen.type("\x1b")
      expect(yield* Fiber.join(second)).toBe("declined")
    }).pipe(Effect.scoped))
})

const show = (given: Partial<ToolCallView>) =>
  renderBlocks(
    toolCard(
      {
        callID: "c",
        name: "question",
        args: { question: "Which?", options: ["a", { label: "b" }] },
        argsText: "",
        status: "completed",
        output: "",
        progress: null,
        details: null,
        isError: false,
        ...given
      },
      questionRenderer,
      { expanded: false }
    ),
    60
  )

describe("a question's card", () => {
  const ended = (outcome: string, answer: string | null) =>
    show({
      details: { question: "Which?", options: ["a", "b"], outcome, answer },
      ...(answer === null ? { status: "failed", isError: true } : {})
    })

  it("shows the options while it waits and then how it ended", () => {
    expect(show({ status: "running" })).toEqual(["● question Which?", "  a · b"])
    expect(ended("selected", "a")).toEqual(["✓ question Which?", "  a"])
    expect(ended("custom", "c")).toEqual(["✓ question Which?", "  in their own words: c"])
    expect(ended("declined", null)).toEqual(["✗ question Which?", "  not answered"])
    expect(ended("expired", null)).toEqual(["✗ question Which?", "  not answered in time"])
    expect(ended("unattended", null)).toEqual(["✗ question Which?", "  not asked: nobody was there"])
  })

  it("shows whatever a model sends", () => {
    fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), fc.boolean(), (args, details, isError) => {
      const rows = show({ args: args as ToolCallView["args"], details: details as ToolCallView["details"], isError })
      expect(rows[0]).toMatch(/^✓ question/)
    }))
  })
})
