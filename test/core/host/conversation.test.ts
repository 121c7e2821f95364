import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { ServiceDirectory } from "@bezel/core/service"
import { SessionRuntime } from "@bezel/core/session"
import { run, say, scriptedModel, testPresentation, type TestSessionHost, testSessionHost } from "@bezel/core/testing"
import { assert, describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { eventually } from "../../eventually.ts"

const attached = (script: Parameters<typeof scriptedModel>[0], plugins: ReadonlyArray<Plugin> = []) =>
  Effect.gen(function*() {
    const host = yield* testSessionHost(plugins, { model: scriptedModel(script) })
    const { id } = yield* host.session.create()
    const connection = yield* host.connect(id)
    const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
    yield* conversation.ready
    return { host, id, connection, conversation }
  })

/** The session's record once it says that work was done which took more output than this. */
const told = (host: TestSessionHost, id: string, output = 0) =>
  Effect.gen(function*() {
    const record = () => Effect.runPromise(host.session.get(id))
    yield* eventually(async () => {
      const { status, usage } = await record()
      return status === "idle" && usage.output > output
    })
    return yield* host.session.get(id)
  })

describe("Conversation service", () => {
  it.live("numbers its deliveries as the conversation numbers its commits, and never shows one commit in parts", () =>
    Effect.gen(function*() {
      const { conversation, host, id } = yield* attached([[say("a", "b", "c")]])
      const { main } = yield* Context.get(host.services, SessionRuntime).open(id)
      const local = yield* Context.get(host.services, ServiceDirectory).use(Conversation, {
        session: id,
        key: conversationKey(id, "c1")
      })
      const seen: Array<boolean> = []
      yield* Effect.forkScoped(local.view.forEach((view) =>
        Effect.sync(() => {
          // The answer and the end of its turn come in one commit.
          seen.push(
            view.entries.some(({ kind }) => kind === "bezel.assistant") ===
              (view.turn === null && view.entries.length > 0)
          )
        })
      ))
      const { inputID } = yield* conversation.send({ text: "go" })
      yield* conversation.wait({ inputID })
      const { revision, view } = yield* main.snapshot
      yield* local.view.changes.pipe(Stream.filter(() => local.view.sequence >= revision), Stream.runHead)
      expect(local.view.sequence).toBe(revision)
      expect(local.view.value).toEqual(view)
      expect(seen.length).toBeGreaterThan(2)
      expect(seen.slice(1)).not.toContain(false)
    }).pipe(Effect.scoped))

  it.live("puts what is sent through it into the catalogue: what was asked, that it was done and what it took", () =>
    Effect.gen(function*() {
      const { conversation, host, id } = yield* attached(["one", "two"])
      const { inputID } = yield* conversation.send({ text: "  what is\nit?  " })
      yield* conversation.wait({ inputID })
      const record = yield* told(host, id)
      expect(record.title).toBe("what is it?")
      expect(record.usage.output).toBeGreaterThan(0)
      yield* conversation.wait(yield* conversation.send({ text: "and then?" }))
      expect((yield* told(host, id, record.usage.output)).title).toBe("what is it?")
    }).pipe(Effect.scoped))

  it.live("leaves the title that somebody has given", () =>
    Effect.gen(function*() {
      const { conversation, host, id } = yield* attached(["one"])
      yield* host.session.rename(id, "mine")
      yield* conversation.wait(yield* conversation.send({ text: "go" }))
      expect((yield* told(host, id)).title).toBe("mine")
    }).pipe(Effect.scoped))

  it.live("says which model is asked next: the chosen one, else the default", () =>
    Effect.gen(function*() {
      const { conversation } = yield* attached(["one"])
      const before = yield* conversation.nextModel()
      expect(before).toEqual({ provider: "test", model: "scripted" })
      yield* conversation.configSet({ model: { provider: "other", model: "m" } })
      expect(yield* conversation.nextModel()).toEqual({ provider: "other", model: "m" })
    }).pipe(Effect.scoped))

  it.live("tells what happened to whoever listens", () =>
    Effect.gen(function*() {
      const { conversation } = yield* attached(["hello"])
      // The subscription is on its way before the input is, over one connection.
      const names = yield* Effect.forkScoped(
        conversation.happened.pipe(
          Stream.map(({ type }) => type),
          Stream.takeUntil((type) => type === "turn.ended"),
          Stream.runCollect
        ),
        { startImmediately: true }
      )
      yield* conversation.send({ text: "go" })
      const types = Array.from(yield* Fiber.join(names))
      expect(types).toContain("entry.added")
      expect(types.at(-1)).toBe("turn.ended")
    }).pipe(Effect.scoped))

  it.live("shows a fork as another conversation of the session, to those who observe", () =>
    Effect.gen(function*() {
      const { conversation, host, id } = yield* attached(["one"])
      const { inputID } = yield* conversation.send({ text: "go" })
      yield* conversation.wait({ inputID })
      const keys = yield* Deferred.make<string>()
      const facet = yield* testPresentation(host, {
        list: (ctx) =>
          ctx.observe(Conversation, (_, key) =>
            key === conversationKey(id, "c1") ? Effect.void : Effect.asVoid(Deferred.succeed(keys, key)))
      }, id)
      const [entry] = yield* conversation.entries({ limit: 1 })
      assert(entry !== undefined)
      const { conversationID } = yield* conversation.fork({ at: entry.id })
      expect(yield* Deferred.await(keys)).toBe(conversationKey(id, conversationID))
      const forked = yield* facet.use(Conversation, { key: conversationKey(id, conversationID) })
      yield* forked.ready
      expect(forked.view.value?.conversation.parent).toEqual({ conversation: "c1", at: entry.id })
    }).pipe(Effect.scoped))

  it.live("writes notices, summarizes, and starts over, for whoever is attached", () =>
    Effect.gen(function*() {
      const { conversation } = yield* attached(["one", "the summary", "two"])
      yield* conversation.wait(yield* conversation.send({ text: "go" }))
      expect(yield* Effect.flip(conversation.write({ kind: "bezel.assistant" }))).toMatchObject({
        code: "not_permitted"
      })
      yield* conversation.write({ kind: "bezel.notice", text: "CI failed" })
      expect(yield* conversation.collapse({})).toEqual({ status: "completed", message: null })
      const begins = (kind: string) =>
        conversation.view.changes.pipe(Stream.filter((view) => view.entries[0]?.kind === kind), Stream.runHead)
      yield* begins("bezel.summary")
      yield* conversation.wait(yield* conversation.send({ text: "again" }))
      yield* conversation.reset({ handoff: "only this" })
      expect(yield* conversation.collapse({})).toMatchObject({ status: "failed" })
      yield* begins("bezel.handoff")
      expect(conversation.view.value?.entries.length).toBe(1)
    }).pipe(Effect.scoped))

  it.effect("shows forks that were made before the session was opened", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([], { model: scriptedModel(["one"]) })
      const { id } = yield* host.session.create()
      const runtime = Context.get(host.services, SessionRuntime)
      const forkedID = yield* Effect.scoped(Effect.gen(function*() {
        const { main } = yield* runtime.open(id)
        const input = yield* main.send({ content: [{ type: "text", text: "go" }] })
        yield* input.wait
        const [entry] = yield* main.entries({ limit: 1 })
        return (yield* main.fork(entry?.id ?? "")).id
      }))
      // Long enough for the session to close behind its last holder.
      yield* TestClock.adjust("1 minute")
      const connection = yield* host.connect(id)
      const forked = yield* connection.use(Conversation, { key: conversationKey(id, forkedID) })
      yield* forked.ready
      expect(forked.view.value?.conversation.id).toBe(forkedID)
    }).pipe(Effect.scoped))

  it.live("aborts the running turn and queued inputs, and says why", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const { conversation } = yield* attached([[
        run(Effect.asVoid(Deferred.succeed(started, undefined))),
        run(Effect.never)
      ]])
      const first = yield* conversation.send({ text: "a" })
      yield* Deferred.await(started)
      const file = { type: "file" as const, mediaType: "image/png", fileName: "a.png", data: "AAAA" }
      const second = yield* conversation.send({ text: "b", whenBusy: "followUp", files: [file] })
      expect(yield* conversation.inputContent({ inputID: second.inputID })).toEqual({ text: "b", files: [file] })
      expect(yield* conversation.inputContent({ inputID: first.inputID })).toEqual({ text: "", files: [] })
      const error = yield* Effect.flip(conversation.send({ text: "c", whenBusy: "reject" }))
      expect(error).toMatchObject({ _tag: "HarnessError", code: "busy" })
      expect(yield* conversation.inputAbort({ inputID: second.inputID })).toBe("aborted")
      yield* conversation.abort({ reason: "enough" })
      expect(yield* conversation.wait(first)).toMatchObject({ status: "unanswered", reason: "aborted" })
    }).pipe(Effect.scoped))

  it.live("changes the conversation's settings, and refuses what is none by its path", () =>
    Effect.gen(function*() {
      const { conversation } = yield* attached([])
      yield* conversation.configSet({ thinking: "high" })
      const view = yield* conversation.view.changes.pipe(
        Stream.filter(({ config }) => config.thinking === "high"),
        Stream.runHead
      )
      expect(view._tag).toBe("Some")
      // @ts-expect-error not a level
      const error = yield* Effect.flip(conversation.configSet({ thinking: "extreme" }))
      expect(error).toMatchObject({ code: "invalid_arguments", data: { path: "thinking" } })
    }).pipe(Effect.scoped))

  it.live("takes a fresh snapshot when it has fallen too far behind", () =>
    Effect.gen(function*() {
      const looking = yield* Deferred.make<void>()
      const counter = Plugin.define({
        id: "test.counter",
        session: (ctx) =>
          Effect.gen(function*() {
            const state = yield* ctx.namespace("test.counter", { sticky: { count: 0 } }, { view: (values) => values })
            yield* ctx.onSession((session) =>
              Effect.asVoid(Effect.forkScoped(Effect.gen(function*() {
                yield* Deferred.await(looking)
                // No yield between the commits that is long enough for the bridge to keep up.
                yield* Effect.forEach(Array.from({ length: 6_000 }), () =>
                  state.update(session.main.id, (draft) => {
                    draft["count"] = Number(draft["count"]) + 1
                  }), { discard: true, concurrency: 6_000 })
              })))
            )
          })
      })
      const { conversation, host, id } = yield* attached([], [counter])
      yield* Deferred.succeed(looking, undefined)
      const last = yield* conversation.view.changes.pipe(
        Stream.filter(({ plugins }) => JSON.stringify(plugins["test.counter"]) === '{"count":6000}'),
        Stream.runHead
      )
      expect(last._tag).toBe("Some")
      const local = yield* Context.get(host.services, ServiceDirectory).use(Conversation, {
        session: id,
        key: conversationKey(id, "c1")
      })
      const { main } = yield* Context.get(host.services, SessionRuntime).open(id)
      expect(local.view.sequence).toBe((yield* main.snapshot).revision)
    }).pipe(Effect.scoped))
})
