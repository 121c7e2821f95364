/** What plugins add to prompts that people wrote. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import type { PromptIntake } from "@bezel/core/session"
import { scriptedModel, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as TestClock from "effect/testing/TestClock"

const file = (fileName: string) => ({ type: "file" as const, mediaType: "text/plain", fileName, data: "eA==" })

const plugin = (id: string, intake: PromptIntake) => Plugin.define({ id, session: (ctx) => ctx.intake(intake) })

const world = (...plugins: ReadonlyArray<Plugin>) =>
  Effect.gen(function*() {
    const model = scriptedModel(["one", "two", "three"])
    const host = yield* testSessionHost(plugins, { model })
    const { id: sessionID } = yield* host.session.create({ title: "t" })
    const seen = () => {
      const message = model.requests.at(-1)?.messages.findLast(({ role }) => role === "user")
      return (message?.role === "user" ? message.content : []).flatMap((part) =>
        part.type === "file" ? [part.fileName] : part.type === "text" ? [part.text] : []
      )
    }
    return { host, model, seen, sessionID }
  })

describe("an intake", () => {
  it.effect("sees the words of a person and what is attached, in the order of the plugins, and adds files and notices", () =>
    Effect.gen(function*() {
      const given: Array<unknown> = []
      const add = (name: string): PromptIntake => ({ conversationID, files, sessionID, words }) => {
        given.push([name, words, files.map(({ fileName }) => fileName), sessionID, conversationID])
        return Effect.succeed({ files: [file(name)], notices: [`${name} says`] })
      }
      const { host, seen, sessionID } = yield* world(plugin("test.a", add("a")), plugin("test.b", add("b")))
      const { inputID, notices } = yield* host.session.prompt({
        sessionID,
        prompt: { text: "hello there", written: "hello", files: [file("own")] }
      })
      yield* host.session.wait(sessionID, inputID)
      expect(notices).toEqual(["a says", "b says"])
      expect(seen()).toEqual(["hello there", "own", "a", "b"])
      expect(given).toEqual([
        ["a", "hello", ["own"], sessionID, "c1"],
        ["b", "hello", ["own", "a"], sessionID, "c1"]
      ])
    }))

  it.effect("sees what a client says that a person wrote, and nothing of what plugins prompt", () =>
    Effect.gen(function*() {
      const intake = plugin("test.a", () => Effect.succeed({ files: [file("added")], notices: ["said"] }))
      const { host, seen, sessionID } = yield* world(intake)
      const client = yield* host.connect(sessionID)
      const conversation = yield* client.use(Conversation, { key: conversationKey(sessionID, "c1") })
      const { inputID, notices } = yield* conversation.send({ text: "hi", written: true })
      yield* conversation.wait({ inputID })
      expect([notices, seen()]).toEqual([["said"], ["hi", "added"]])
      const plain = yield* conversation.send({ text: "hi" })
      yield* conversation.wait({ inputID: plain.inputID })
      expect([plain.notices, seen()]).toEqual([undefined, ["hi"]])
      expect(yield* host.ask(sessionID, "from a plugin")).toBe("three")
      expect(seen()).toEqual(["from a plugin"])
    }))

  it.effect("that fails, breaks or does not end adds nothing, and the prompt is accepted", () =>
    Effect.gen(function*() {
      const { host, seen, sessionID } = yield* world(
        plugin("test.fails", () => Effect.fail({ message: "no" })),
        plugin("test.breaks", () => Effect.die(new Error("broken"))),
        plugin("test.throws", () => {
          throw new Error("thrown")
        }),
        plugin("test.hangs", () => Effect.never),
        plugin("test.works", () => Effect.succeed({ files: [file("added")], notices: [] }))
      )
      const sending = yield* Effect.forkChild(host.session.prompt({ sessionID, prompt: { text: "hi", written: true } }))
      yield* TestClock.adjust("1 minute")
      const { inputID, notices } = yield* Fiber.join(sending)
      yield* host.session.wait(sessionID, inputID)
      expect([notices, seen()]).toEqual([undefined, ["hi", "added"]])
    }))
})
