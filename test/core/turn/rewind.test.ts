import type { Conversation } from "@bezel/core/harness"
import type { Storage } from "@bezel/core/storage"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call, finish, say } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const ask = (conversation: Conversation, text: string) =>
  Effect.flatMap(conversation.send(user(text)), (input) => input.wait)

/** The id of the entry that holds a prompt. */
const promptOf = (conversation: Conversation, text: string) =>
  Effect.map(
    conversation.entries({ kind: "bezel.user" }),
    (entries) => entries.find((entry) => JSON.stringify(entry.model).includes(text))?.id ?? "none"
  )

const texts = (conversation: Conversation) => Effect.map(conversation.context, (messages) => JSON.stringify(messages))

const shownTexts = (conversation: Conversation) =>
  Effect.map(conversation.snapshot, ({ view }) => JSON.stringify(view.entries))

it.effect("after a rewind neither the model nor the view has what was taken back, and the next turn goes on from there", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["one", "two", "three", "four"])
    yield* harness.resume
    yield* ask(harness.main, "first")
    yield* ask(harness.main, "second")
    yield* ask(harness.main, "third")
    const marked = yield* harness.main.rewind(yield* promptOf(harness.main, "second"), { why: "test" })
    expect(yield* shownTexts(harness.main)).not.toContain("second")
    yield* ask(harness.main, "fourth")
    const sent = JSON.stringify(model.requests[3]?.messages)
    expect(sent).toContain("first")
    expect(sent).not.toContain("second")
    expect(sent).not.toContain("three")
    const { view } = yield* harness.main.snapshot
    expect(view.entries.map(({ kind }) => kind)).toEqual([
      "bezel.user",
      "bezel.assistant",
      "bezel.rewind",
      "bezel.user",
      "bezel.assistant"
    ])
    expect(view.entries[2]).toMatchObject({ id: marked, data: { why: "test" }, head: true })
  }))

it.effect("a watcher's operations give the same view as a fresh snapshot, through a rewind and its undoing", () =>
  Effect.gen(function*() {
    const session = memory()
    const { harness } = yield* open(session.storage(), ["one", "two", "three"])
    yield* harness.resume
    yield* ask(harness.main, "first")
    yield* Effect.scoped(Effect.gen(function*() {
      yield* harness.main.watch
      yield* ask(harness.main, "second")
      const marked = yield* harness.main.rewind(yield* promptOf(harness.main, "first"), null)
      expect(yield* shownTexts(harness.main)).not.toContain("first")
      yield* harness.main.restore(marked, null)
      expect(yield* shownTexts(harness.main)).toContain("first")
      expect(yield* shownTexts(harness.main)).toContain("two")
      yield* ask(harness.main, "third")
    }))
    const { view } = yield* harness.main.snapshot
    const again = yield* open(session.storage(), [])
    expect((yield* again.harness.main.snapshot).view.entries).toEqual(view.entries)
  }))

it.effect("going back to the first prompt leaves an empty context", () =>
  Effect.gen(function*() {
    const session = memory()
    const { harness } = yield* open(session.storage(), ["one", "two"])
    yield* harness.resume
    yield* ask(harness.main, "first")
    const marked = yield* harness.main.rewind(yield* promptOf(harness.main, "first"), null)
    expect(yield* harness.main.context).toEqual([])
    expect(yield* (yield* open(session.storage(), [])).harness.main.context).toEqual([])
    yield* harness.main.restore(marked, null)
    expect(yield* texts(harness.main)).toContain("one")
  }))

const reopened = (storage: Storage) => Effect.map(open(storage, []), ({ harness }) => harness.main)

it.effect("rewinding twice, compacting between and restoring gives the same context from storage as in memory", () =>
  Effect.gen(function*() {
    const session = memory()
    const long = "x".repeat(400)
    const small = { compaction: Effect.succeed({ auto: false, threshold: 0.8, keepRecent: 50 }) }
    const { harness } = yield* open(
      session.storage(),
      [`one ${long}`, `two ${long}`, `three ${long}`, "the summary", "five", "six"],
      small
    )
    const { main } = harness
    yield* harness.resume
    const same = Effect.gen(function*() {
      expect(yield* (yield* reopened(session.storage())).context).toEqual(yield* main.context)
    })
    yield* ask(main, "first")
    yield* ask(main, "second")
    yield* main.rewind(yield* promptOf(main, "second"), null)
    yield* same
    yield* ask(main, "third")
    yield* main.waitForTask(yield* main.collapse())
    yield* same
    expect(yield* texts(main)).not.toContain("two")
    yield* ask(main, "fourth")
    yield* same
    const marked = yield* main.rewind(yield* promptOf(main, "fourth"), null)
    yield* same
    expect(yield* texts(main)).toContain("the summary")
    yield* main.restore(marked, null)
    yield* same
    expect(yield* texts(main)).toContain("five")
    const kept = yield* main.rewind(yield* promptOf(main, "third"), null)
    yield* same
    expect(yield* texts(main)).not.toContain("the summary")
    expect(yield* texts(main)).toContain("one")
    yield* main.restore(kept, null)
    yield* same
    const beforeTheSummary = yield* main.rewind(yield* promptOf(main, "fourth"), null)
    yield* ask(main, "fifth")
    yield* same
    const gone = yield* Effect.flip(main.restore(beforeTheSummary, null))
    expect(gone).toMatchObject({ code: "invalid" })
    yield* same
  }))

it.effect("a rewind takes the settings and the rewindable state of plugins back with it, and its undoing brings them back", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two"])
    const { main } = harness
    const todo = yield* harness.namespace("todo", { rewindable: { items: 0 }, sticky: { open: 0 } })
    yield* harness.resume
    yield* main.configure({ thinking: "low" })
    yield* ask(main, "first")
    yield* todo.update(main.id, (draft) => {
      draft.items = 1
      draft.open = 1
    })
    yield* ask(main, "second")
    yield* main.configure({ thinking: "high" })
    yield* todo.update(main.id, (draft) => {
      draft.items = 2
      draft.open = 2
    })
    const marked = yield* main.rewind(yield* promptOf(main, "second"), null)
    expect(yield* todo.get(main.id)).toEqual({ items: 1, open: 2 })
    expect((yield* main.snapshot).view.config.thinking).toBe("low")
    yield* main.restore(marked, null)
    expect(yield* todo.get(main.id)).toEqual({ items: 2, open: 2 })
    expect((yield* main.snapshot).view.config.thinking).toBe("high")
  }))

it.effect("a rewind to before anything was set has the settings that the conversation began with", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two"])
    const { main } = harness
    yield* harness.resume
    const { config } = (yield* main.snapshot).view
    yield* ask(main, "first")
    yield* ask(main, "second")
    yield* main.configure({ thinking: "high", model: { provider: "a", model: "b" }, agent: "plan" })
    const marked = yield* main.rewind(yield* promptOf(main, "second"), null)
    expect((yield* main.snapshot).view.config).toEqual(config)
    yield* main.restore(marked, null)
    expect((yield* main.snapshot).view.config).toMatchObject({ thinking: "high", model: { model: "b" }, agent: "plan" })
  }))

it.effect("a rewind into the middle of an exchange gives the calls that lost their results a synthetic one", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [
      [call("echo", { text: "hello" }, "c1"), finish("tool-calls")],
      [say("done"), finish("stop")]
    ])
    yield* harness.resume
    yield* ask(harness.main, "first")
    const [result] = yield* harness.main.entries({ kind: "bezel.tool_result" })
    yield* harness.main.rewind(result?.id ?? "none", null)
    expect(yield* texts(harness.main)).toContain("not part of this conversation")
  }))

it.effect("a fork behind a rewind has what the conversation had there, and can be rewound to what it inherited", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two", "three"])
    const { main } = harness
    yield* harness.resume
    yield* ask(main, "first")
    yield* ask(main, "second")
    yield* main.rewind(yield* promptOf(main, "second"), null)
    yield* ask(main, "third")
    const [newest] = yield* main.entries({ newestFirst: true, limit: 1 })
    const fork = yield* main.fork(newest?.id ?? "none")
    expect(yield* fork.context).toEqual(yield* main.context)
    const marked = yield* fork.rewind(yield* promptOf(main, "third"), null)
    expect(yield* texts(fork)).not.toContain("third")
    expect(yield* texts(main)).toContain("third")
    yield* fork.restore(marked, null)
    expect(yield* fork.context).toEqual(yield* main.context)
  }))

it.effect("an entry that is not in the active transcript, and one that is no rewind, are refused", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two"])
    const { main } = harness
    yield* harness.resume
    yield* ask(main, "first")
    yield* ask(main, "second")
    const second = yield* promptOf(main, "second")
    expect(yield* Effect.flip(main.restore(second, null))).toMatchObject({ code: "not_found" })
    yield* main.rewind(second, null)
    expect(yield* Effect.flip(main.rewind(second, null))).toMatchObject({ code: "not_found" })
    expect(yield* Effect.flip(main.rewind("e999", null))).toMatchObject({ code: "not_found" })
  }))
