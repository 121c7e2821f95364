import { Plugin } from "@bezel/core/host"
import { Conversation } from "@bezel/core/host/contract"
import { call, scriptedModel, type ScriptedTurn, testSessionHost } from "@bezel/core/testing"
import { session as todo } from "@bezel/plugins/todo/session"
import { openBlocks, todoRenderer } from "@bezel/plugins/todo/tui"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"

const items = (...texts: ReadonlyArray<string>) =>
  texts.map((text) => ({
    text: text.slice(1).trim(),
    status: text.startsWith("x") ? "completed" : text.startsWith("~") ? "in_progress" : "pending"
  }))

const write = (...texts: ReadonlyArray<string>) => [call("todo", { items: items(...texts) })]

const world = (...script: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const model = scriptedModel([...script])
    const host = yield* testSessionHost([Plugin.define({ id: "bezel.todo", session: todo })], {
      model,
      entries: { "bezel.todo": { required: true } }
    })
    const { id } = yield* host.session.create({})
    const results = () =>
      (model.requests.at(-1)?.messages ?? []).flatMap((message) =>
        message.role === "tool" ? message.content.map(({ result }) => String(result)) : []
      )
    return { host, id, model, results }
  })

describe("the todo list", () => {
  it.effect("is replaced by each call, told back, and seen in the view of the conversation", () =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world(
        write("~look  around", "-change it", "-test it"),
        write("xlook around", "~change it"),
        "done"
      )
      expect(yield* host.ask(id, "go")).toBe("done")
      expect(results()).toEqual([
        "[~] look  around\n[ ] change it\n[ ] test it\n(3 of 3 open)".replace("  ", " "),
        "[x] look around\n[~] change it\n(1 of 2 open)"
      ])
      const conversation = yield* (yield* host.connect(id)).use(Conversation, { key: `${id}/c1` })
      const seen = yield* conversation.view.changes.pipe(Stream.map(({ plugins }) => plugins.todo), Stream.runHead)
      expect(seen).toMatchObject({ value: { items: items("xlook around", "~change it") } })
    }))

  it.effect("is told to the model only while no call that wrote it is in its context", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world(write("-one"), "done", "again", "fresh")
      yield* host.ask(id, "go")
      yield* host.ask(id, "more")
      const system = () => JSON.stringify(model.requests.at(-1)?.messages.filter(({ role }) => role === "system"))
      expect(system()).not.toContain("todo list")
      const conversation = yield* (yield* host.connect(id)).use(Conversation, { key: `${id}/c1` })
      yield* conversation.reset({ handoff: "Go on." })
      expect(yield* host.ask(id, "and now?")).toBe("fresh")
      expect(system()).toContain("Your todo list (see the todo tool):\\n[ ] one")
    }))

  const refused: ReadonlyArray<readonly [args: object, reason: RegExp]> = [
    [{}, /items: is required/],
    [{ items: "x" }, /items: expected array/],
    [{ items: [5] }, /items\.0: expected object/],
    [{ items: [{ text: "x" }] }, /items\.0\.status: is required/],
    [{ items: [{ text: "x", status: "pending", due: "now" }] }, /items\.0\.due/],
    [{ items: [], list: [] }, /list: there is no such parameter/],
    [{ items: [{ text: "", status: "pending" }] }, /text/],
    [{ items: [{ text: "x", status: "done" }] }, /status/],
    [{ items: Array.from({ length: 51 }, () => ({ text: "x", status: "pending" })) }, /items/],
    [{ items: [{ text: "x".repeat(501), status: "pending" }] }, /text/]
  ]
  it.effect.each(refused)("refuses %j", ([args, reason]) =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world([call("todo", args as never)], "done")
      yield* host.ask(id, "go")
      expect(results()[0]).toMatch(reason)
      expect(results()[0]).toMatch(/not valid/)
    }))

  it.effect("is emptied by an empty one", () =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world(write("-one"), write(), "done")
      yield* host.ask(id, "go")
      expect(results()[1]).toBe("The list is empty.")
    }))
})

describe("in the terminal", () => {
  it("what is left stands above the editor, from the first open item on", () => {
    const list = { items: items("xone", "~two", "-three", "-4", "-5", "-6", "-7") }
    const blocks = JSON.stringify(openBlocks(list))
    expect(blocks).toContain("Todo 1/7")
    expect(blocks).toContain("two")
    expect(blocks).not.toContain("one")
    expect(blocks).toContain("1 more")
  })

  it("nothing stands there when all is done, nor for what is no list", () => {
    expect(openBlocks({ items: items("xone") })).toEqual([])
    for (const odd of [undefined, null, 3, { items: 4 }, { items: [{ text: 1 }] }]) expect(openBlocks(odd)).toEqual([])
  })

  it("a call shows the list that it wrote", () => {
    const shown = todoRenderer.body?.({ details: { items: items("xone", "-two") }, isError: false } as never, {
      expanded: false
    })
    expect(JSON.stringify(shown)).toMatch(/one.*two/)
  })
})
