/** Inputs that bring an agent or a model along: for the turn that answers them, and no longer. */
import type { Harness } from "@bezel/core/harness"
import type { ModelSource } from "@bezel/core/model"
import type { Storage } from "@bezel/core/storage"
import { anyAgent } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { call, fail, run, say, scriptedModel, type ScriptedTurn } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const other = { provider: "scripted", model: "other" }
const third = { provider: "scripted", model: "third" }

/** A harness that notes who was asked: `agent model`, `-` where none was chosen. */
const place = (storage: Storage, script: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const asked: Array<string> = []
    const model = scriptedModel(script)
    let agent: string | null = null
    const models: ModelSource = {
      ...model.source,
      resolve: (ref) => {
        asked.push(`${agent ?? "-"} ${ref?.model ?? "-"}`)
        return model.source.resolve(ref)
      }
    }
    const { harness } = yield* open(storage, [], {
      models,
      agent: (name) =>
        Effect.sync(() => {
          agent = name
          return anyAgent
        })
    })
    yield* harness.resume
    return { harness, asked }
  })

const ask = (harness: Harness, text: string, config?: Parameters<Harness["main"]["send"]>[0]["config"]) =>
  Effect.flatMap(
    harness.main.send({ ...user(text), ...(config === undefined ? {} : { config }) }),
    (sent) => sent.wait
  )

const configOf = (harness: Harness) => Effect.map(harness.main.snapshot, ({ view: { config } }) => config)

it.effect("a turn has the agent and the model of its input, all its requests long; the next one has those of before", () =>
  Effect.gen(function*() {
    const { asked, harness } = yield* place(memory().storage(), [[call("echo", { text: "a" })], "done", "next"])
    yield* harness.main.configure({ agent: "mine" })
    expect(yield* ask(harness, "go", { agent: "review", model: other })).toMatchObject({ text: "done" })
    expect(yield* configOf(harness)).toMatchObject({ agent: "mine", model: null })
    yield* ask(harness, "and?")
    expect(asked).toEqual(["review other", "review other", "mine -"])
  }))

it.effect("an input that waits has its own for its own turn alone", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const { asked, harness } = yield* place(memory().storage(), [
      [run(Deferred.succeed(begun, undefined)), run(Deferred.await(goOn)), call("echo", { text: "a" })],
      "one",
      "two",
      "three"
    ])
    yield* harness.main.send(user("one"))
    yield* Deferred.await(begun)
    yield* harness.main.send({ ...user("two"), config: { agent: "review" } })
    const last = yield* harness.main.send(user("three"))
    expect(yield* configOf(harness)).toMatchObject({ agent: null })
    yield* Deferred.succeed(goOn, undefined)
    yield* last.wait
    expect(asked).toEqual(["- -", "- -", "review -", "- -"])
  }))

it.effect("a steer's holds from where it joins to the end of the turn, and of several the last one's", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const { asked, harness } = yield* place(memory().storage(), [
      [run(Deferred.succeed(begun, undefined)), run(Deferred.await(goOn)), call("echo", { text: "a" })],
      "one",
      "two"
    ])
    yield* harness.main.send({ ...user("one"), config: { agent: "first", model: other } })
    yield* Deferred.await(begun)
    yield* harness.main.send({ ...user("two"), whenBusy: "steer", config: { agent: "second" } })
    yield* Deferred.succeed(goOn, undefined)
    yield* harness.main.idle
    yield* ask(harness, "and?")
    expect(asked).toEqual(["first other", "second other", "- -"])
  }))

it.effect("what a person chooses while the turn runs stays chosen", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const { harness } = yield* place(memory().storage(), [
      [say("a"), run(Deferred.succeed(begun, undefined)), run(Deferred.await(goOn))]
    ])
    const sent = yield* harness.main.send({ ...user("one"), config: { agent: "review", model: other } })
    yield* Deferred.await(begun)
    expect(yield* configOf(harness)).toMatchObject({ agent: "review", model: other })
    yield* harness.main.configure({ model: third })
    yield* Deferred.succeed(goOn, undefined)
    yield* sent.wait
    expect(yield* configOf(harness)).toMatchObject({ agent: null, model: third })
  }))

it.effect("a turn that fails or is interrupted gives them back too", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const { harness } = yield* place(memory().storage(), [
      [fail("invalid_request")],
      [run(Deferred.succeed(begun, undefined)), run(Effect.never)]
    ])
    expect(yield* ask(harness, "go", { agent: "review" })).toMatchObject({ status: "unanswered" })
    expect(yield* configOf(harness)).toMatchObject({ agent: null })
    yield* harness.main.send({ ...user("one"), config: { model: other } })
    yield* Deferred.await(begun)
    yield* harness.main.abort()
    expect(yield* configOf(harness)).toMatchObject({ model: null })
  }))

it.effect("they survive a crash in the middle of the turn, and end with it", () =>
  Effect.gen(function*() {
    const session = memory()
    yield* Effect.scoped(Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const { harness } = yield* place(session.storage(), [
        [call("echo", { text: "a" })],
        [run(Deferred.succeed(begun, undefined)), run(Effect.never)]
      ])
      yield* harness.main.send({ ...user("one"), config: { agent: "review", model: other } })
      yield* Deferred.await(begun)
    }))
    const { asked, harness } = yield* place(session.storage(), ["done", "next"])
    yield* harness.main.idle
    yield* ask(harness, "and?")
    expect(asked).toEqual(["review other", "- -"])
  }))

it.effect("a conversation that is forked at the answer has what was before", () =>
  Effect.gen(function*() {
    const { harness } = yield* place(memory().storage(), ["done"])
    const outcome = yield* ask(harness, "go", { agent: "review" })
    const forked = yield* harness.main.fork(outcome.status === "done" ? outcome.answer : "")
    expect((yield* forked.snapshot).view.config.agent).toBeNull()
  }))
