/** Entries of extensions that ask for an answer: when they begin a turn, and when they wait for one. */
import { type Conversation, type Harness, HarnessError, noticeKind } from "@bezel/core/harness"
import { makeJobKind, type ProcessHost } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { call, run, say, type ScriptedModel } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const notice = (text: string) => ({
  model: [{ role: "user", content: [{ type: "text", text }] } as const],
  wake: true
})

const tell = (conversation: Conversation, text: string) => conversation.write(noticeKind, notice(text))

const ask = (harness: Harness, text: string) => Effect.flatMap(harness.main.send(user(text)), (sent) => sent.wait)

/** What a request was about: the text of its last message. */
const last = (model: ScriptedModel, index = -1) => {
  const message = model.requests.at(index)?.messages.at(-1)
  return typeof message?.content === "string"
    ? message.content
    : message?.content.map((part) => part.type === "text" ? part.text : part.type).join("")
}

const texts = (model: ScriptedModel, index = -1) => JSON.stringify(model.requests.at(index)?.messages)

it.effect("an entry that asks for an answer begins a turn in an idle conversation; another does not", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello", "so it is blue"])
    yield* harness.resume
    yield* ask(harness, "hi")
    yield* harness.main.write(noticeKind, { model: notice("by the way").model })
    expect(yield* harness.main.busy).toBe(false)
    yield* tell(harness.main, "it is blue")
    yield* harness.main.idle
    expect(model.requests).toHaveLength(2)
    expect(last(model)).toBe("it is blue")
    expect(yield* harness.main.finalText).toBe("so it is blue")
  }))

it.effect("one that comes with the final answer begins the next turn", () =>
  Effect.gen(function*() {
    const said = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [
      [say("hello"), run(Deferred.succeed(said, undefined)), run(Deferred.await(goOn))],
      "so it is blue"
    ])
    yield* harness.resume
    const sent = yield* harness.main.send(user("hi"))
    yield* Deferred.await(said)
    yield* tell(harness.main, "it is blue")
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* sent.wait).toMatchObject({ status: "done", text: "hello" })
    yield* harness.main.idle
    expect(last(model)).toBe("it is blue")
    expect(yield* harness.main.finalText).toBe("so it is blue")
  }))

it.effect("one that comes while tools run is seen with their results, and begins nothing more", () =>
  Effect.gen(function*() {
    const said = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [
      [run(Deferred.succeed(said, undefined)), run(Deferred.await(goOn)), call("echo", { text: "a" })],
      "both"
    ])
    yield* harness.resume
    const sent = yield* harness.main.send(user("hi"))
    yield* Deferred.await(said)
    yield* tell(harness.main, "it is blue")
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* sent.wait).toMatchObject({ text: "both" })
    yield* harness.main.idle
    expect(model.requests).toHaveLength(2)
    expect(last(model)).toBe("it is blue")
  }))

it.effect("one that comes beside a queued input is seen by that input's turn", () =>
  Effect.gen(function*() {
    const said = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [
      [say("hello"), run(Deferred.succeed(said, undefined)), run(Deferred.await(goOn))],
      "answer to both"
    ])
    yield* harness.resume
    yield* harness.main.send(user("hi"))
    yield* Deferred.await(said)
    yield* tell(harness.main, "it is blue")
    const second = yield* harness.main.send(user("and?"))
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* second.wait).toMatchObject({ text: "answer to both" })
    yield* harness.main.idle
    expect(model.requests).toHaveLength(2)
    expect(texts(model)).toContain("it is blue")
  }))

it.effect("after an interrupt nothing begins by itself until somebody has asked again", () =>
  Effect.gen(function*() {
    const asked = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [
      [run(Deferred.succeed(asked, undefined)), run(Effect.never)],
      "answer",
      "woken"
    ])
    yield* harness.resume
    yield* harness.main.send(user("hi"))
    yield* Deferred.await(asked)
    // One that waits for the turn, and one behind it.
    yield* tell(harness.main, "it is blue")
    yield* harness.main.abort("enough")
    yield* tell(harness.main, "it is round")
    expect(yield* harness.main.busy).toBe(false)
    expect(model.requests).toHaveLength(1)
    yield* ask(harness, "and?")
    expect(texts(model)).toContain("it is blue")
    expect(texts(model)).toContain("it is round")
    yield* tell(harness.main, "it is small")
    yield* harness.main.idle
    expect(yield* harness.main.finalText).toBe("woken")
  }))

it.effect("an interrupted conversation stays at rest when it is opened again", () =>
  Effect.gen(function*() {
    const session = memory()
    yield* Effect.scoped(Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const { harness } = yield* open(session.storage(), [[
        run(Deferred.succeed(asked, undefined)),
        run(Effect.never)
      ]])
      yield* harness.resume
      yield* harness.main.send(user("hi"))
      yield* Deferred.await(asked)
      yield* harness.main.abort("enough")
    }))
    const { harness, model } = yield* open(session.storage(), [])
    yield* harness.resume
    yield* tell(harness.main, "it is blue")
    expect(yield* harness.main.busy).toBe(false)
    expect(model.requests).toHaveLength(0)
  }))

it.effect("twenty turns in a row begin by themselves and no more, until somebody says something", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), Array.from({ length: 30 }, () => "again"))
    yield* harness.resume
    for (let n = 0; n < 25; n++) {
      yield* tell(harness.main, `news ${n}`)
      yield* harness.main.idle
    }
    expect(model.requests).toHaveLength(20)
    yield* ask(harness, "and?")
    expect(texts(model)).toContain("news 24")
    yield* tell(harness.main, "more news")
    yield* harness.main.idle
    expect(model.requests).toHaveLength(22)
  }))

it.effect("an entry that the model does not see cannot ask for an answer", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [])
    yield* harness.resume
    const refused = yield* Effect.flip(harness.main.write("test.note", { data: 1, wake: true }))
    expect(refused).toBeInstanceOf(HarnessError)
    expect(refused.message).toContain("cannot see")
    expect(model.requests).toHaveLength(0)
  }))

it.effect("a job whose end is to be told wakes the model once; an aborted one does not", () =>
  Effect.gen(function*() {
    const states = new Map<string, "running" | "exited">()
    const host: ProcessHost = {
      start: (key) =>
        Effect.sync(() => {
          states.set(key, states.size === 0 ? "exited" : "running")
          return { state: "running", pid: 1 }
        }),
      status: (key) =>
        Effect.succeed(
          states.get(key) === "exited"
            ? { state: "exited", code: 3, signal: null }
            : { state: "running", pid: 1 }
        ),
      kill: () => Effect.void,
      output: () => Effect.succeed("no such file")
    }
    const { harness, model } = yield* open(memory().storage(), ["I see"], { job: makeJobKind(host) })
    yield* harness.resume
    const start = harness.main.commit((tx) => {
      if (harness.job === null) throw new HarnessError({ code: "not_found", message: "no process host" })
      return tx.createTask(harness.job, {
        command: ["make"],
        directory: "/",
        env: {},
        notBefore: null,
        every: null,
        notice: true
      }, { background: true })
    })
    const first = yield* start
    yield* harness.main.waitForTask(first)
    yield* harness.main.idle
    expect(last(model)).toBe(`The job ${first.id} (make) failed with exit code 3. Its last output:\nno such file`)
    const second = yield* start
    yield* harness.main.abortTask(second)
    expect(yield* harness.main.busy).toBe(false)
    expect(model.requests).toHaveLength(1)
  }))
