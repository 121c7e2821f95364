import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { LocalService, RemoteService } from "@bezel/core/service"
import { call, say, scriptedModel, testPresentation, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Schema, Stream } from "effect"
import { drained, eventually } from "../../eventually.ts"

const echo = Plugin.define({
  id: "test.echo",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "echo",
        tool({
          description: "Says it again",
          input: Schema.Struct({ text: Schema.String }),
          execute: ({ text }) => Effect.succeed(text)
        })
      )
    ))
})

describe("session host", () => {
  it.live("answers a prompt through a tool that a plugin contributed", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("echo", { text: "hello" })], "done"])
      const host = yield* testSessionHost([echo], { model })
      const session = yield* host.session.create({ title: "t" })
      expect(yield* host.ask(session.id, "say hello")).toBe("done")
      const last = model.requests[1]?.messages.at(-1)
      expect(last).toMatchObject({ role: "tool", content: [{ name: "echo", isFailure: false, result: "hello" }] })
      expect(yield* host.session.finalText(session.id)).toBe("done")
    }).pipe(Effect.scoped))

  it.live("shows a conversation to a client that is attached, one delivery for each commit", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([], { model: scriptedModel([[say("Hel", "lo")]]) })
      const session = yield* host.session.create()
      const connection = yield* host.connect(session.id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(session.id, "c1") })
      yield* conversation.ready
      const { inputID } = yield* conversation.send({ text: "hi", requestID: "r1" })
      expect(yield* conversation.wait({ inputID })).toMatchObject({ status: "done", text: "Hello" })
      const view = yield* conversation.view.changes.pipe(
        Stream.filter((next) => next.turn === null && next.entries.length === 2),
        Stream.runHead
      )
      expect(view).toMatchObject({ value: { entries: [{ kind: "bezel.user" }, { kind: "bezel.assistant" }] } })
      expect(yield* conversation.send({ text: "hi", requestID: "r1" })).toEqual({ inputID })
    }).pipe(Effect.scoped))

  it.live("shows a client nothing of a session that it is not attached to", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([])
      const session = yield* host.session.create()
      yield* host.connect(session.id)
      const other = yield* host.connect()
      const conversation = yield* other.use(Conversation, { key: conversationKey(session.id, "c1") })
      const error = yield* Effect.flip(conversation.send({ text: "hi" }))
      expect(error).toMatchObject({ code: "unavailable" })
    }).pipe(Effect.scoped))

  class Counter extends RemoteService.make("test.counter")({
    state: { count: Schema.Struct({ value: Schema.Finite }) },
    methods: { add: { payload: Schema.Finite } }
  }) {}

  it.live("gives a service to local plugins as it is and to presentations as a facade", () =>
    Effect.gen(function*() {
      const seen = yield* Deferred.make<number>()
      const provider = Plugin.define({
        id: "test.counter",
        session: (ctx) =>
          Effect.gen(function*() {
            const count = yield* ctx.state(Schema.Struct({ value: Schema.Finite }), { value: 1 })
            yield* ctx.provide(Counter, {
              count,
              add: (by) =>
                count.update((draft) => {
                  draft.value += by
                })
            })
          })
      })
      const user = Plugin.define({
        id: "test.user",
        session: (ctx) =>
          Effect.gen(function*() {
            const counter = yield* ctx.use(Counter)
            yield* ctx.onActivate(
              Effect.andThen(counter.add(2), Effect.suspend(() => Deferred.succeed(seen, counter.count.value.value)))
            )
          })
      })
      const host = yield* testSessionHost([provider, user])
      expect(yield* Deferred.await(seen)).toBe(3)
      const shown = yield* Deferred.make<number>()
      yield* testPresentation(host, {
        view: (ctx) =>
          Effect.gen(function*() {
            const counter = yield* ctx.use(Counter)
            yield* ctx.onActivate(Effect.gen(function*() {
              yield* counter.ready
              yield* counter.add(4)
              const last = yield* counter.count.changes.pipe(Stream.filter(({ value }) => value === 7), Stream.runHead)
              yield* Deferred.succeed(shown, last._tag === "Some" ? last.value.value : 0)
            }))
          })
      })
      expect(yield* Deferred.await(shown)).toBe(7)
    }).pipe(Effect.scoped))

  it.live("takes out a plugin that uses a service before it is there", () =>
    Effect.gen(function*() {
      const Table = LocalService.make<{ readonly rows: number }>("test.table")
      const early = Plugin.define({
        id: "test.early",
        session: (ctx) => Effect.flatMap(ctx.use(Table), (table) => Effect.sync(() => void table.rows))
      })
      const provider = Plugin.define({ id: "test.table", session: (ctx) => ctx.provide(Table, { rows: 3 }) })
      const host = yield* testSessionHost([provider, early])
      const status = (yield* host.plugins).find(({ id }) => id === "test.early")
      expect(status).toMatchObject({ state: "failed", phase: "setup" })
      expect(status?.error).toContain("Services can be used from activation on")
    }).pipe(Effect.scoped))

  it.live("reports missing services, wrong order and duplicates by name, with an order that works", () =>
    Effect.gen(function*() {
      const Table = LocalService.make<{ readonly rows: number }>("test.table")
      const Absent = LocalService.make<{ readonly rows: number }>("test.absent")
      const user = Plugin.define({ id: "user", session: (ctx) => Effect.asVoid(ctx.use(Table)) })
      const lonely = Plugin.define({ id: "lonely", session: (ctx) => Effect.asVoid(ctx.use(Absent)) })
      const provider = Plugin.define({ id: "provider", session: (ctx) => ctx.provide(Table, { rows: 3 }) })
      const second = Plugin.define({ id: "second", session: (ctx) => ctx.provide(Table, { rows: 4 }) })
      const host = yield* testSessionHost([user, lonely, provider, second])
      const errors = Object.fromEntries((yield* host.plugins).map(({ error, id }) => [id, error]))
      expect(errors["user"]).toContain(
        "which stands after it in the manifest; an order that works is test.model, provider, user, lonely, second"
      )
      expect(errors["lonely"]).toContain('service "test.absent", which no loaded plugin provides')
      expect(errors["second"]).toContain('service "test.table" is there already, from plugin provider')
      expect(errors["provider"]).toBeNull()
    }).pipe(Effect.scoped))

  it.live("takes out a plugin that provides a service of the host's own, and nothing else", () =>
    Effect.gen(function*() {
      const Own = RemoteService.make("bezel.plugins")({ methods: { list: {} } })
      const one = Plugin.define({ id: "test.one", session: (ctx) => ctx.provide(Own, { list: () => Effect.void }) })
      const many = Plugin.define({ id: "test.many", session: (ctx) => Effect.asVoid(ctx.provideMany(Own)) })
      const host = yield* testSessionHost([one, many, echo])
      const states = (yield* host.plugins).map(({ error, id, state }) => [id, state, error])
      const refused = (id: string) => [
        id,
        "failed",
        expect.stringContaining('service "bezel.plugins" is one of the host\'s own; give yours another id')
      ]
      expect(states.slice(-3)).toEqual([refused("test.one"), refused("test.many"), ["test.echo", "loaded", null]])
    }).pipe(Effect.scoped))

  it.live("begins what a facet prompts in its setup when all plugins are activated, and not before", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const model = scriptedModel([[call("deploy", {})], "done"])
      const early = Plugin.define({
        id: "test.early",
        session: (ctx) =>
          Effect.gen(function*() {
            yield* ctx.tool.transform((draft) =>
              draft.set(
                "deploy",
                tool({
                  description: "Deploys",
                  input: Schema.Struct({}),
                  execute: () => Effect.sync(() => seen.push("deployed"))
                })
              )
            )
            const { id } = yield* ctx.session.create()
            const { inputID } = yield* ctx.session.prompt({ sessionID: id, prompt: { text: "go" } })
            seen.push("prompted")
            const waiting = Effect.map(ctx.session.wait(id, inputID), ({ status }) => {
              seen.push(status)
            })
            yield* ctx.own(Effect.forkScoped(waiting))
            // Time in which it could begin.
            yield* drained
          })
      })
      const gate = Plugin.define({
        id: "test.gate",
        session: (ctx) =>
          Effect.gen(function*() {
            const own = yield* ctx.namespace("gate", {})
            yield* ctx.hooks(own, "tool", {
              beforeTool: () =>
                Effect.sync(() => {
                  seen.push("blocked")
                  return { block: "not today" }
                })
            }, { gate: true })
            yield* ctx.onActivate(Effect.andThen(drained, Effect.sync(() => seen.push("activated"))))
          })
      })
      yield* testSessionHost([early, gate], { model })
      yield* eventually(() => seen.includes("done"))
      expect(seen).toEqual(["prompted", "activated", "blocked", "done"])
    }).pipe(Effect.scoped))

  it.live("opens each session with the hooks, sections and namespaces of the location", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["one", "two"])
      const opened: Array<string> = []
      const plugin = Plugin.define({
        id: "test.notes",
        session: (ctx) =>
          Effect.gen(function*() {
            const notes = yield* ctx.namespace("test.notes", { sticky: { asked: 0 } }, { view: (state) => state })
            yield* ctx.hooks(notes, "generation", {
              systemInstructions: (api) =>
                Effect.as(
                  notes.update(api.conversationID, (draft) => {
                    draft["asked"] = Number(draft["asked"]) + 1
                  }),
                  `Session ${api.sessionID}`
                )
            })
            yield* ctx.section({ id: "test.section", order: 1, text: () => Effect.succeed("A section") })
            yield* ctx.onSession((session) => Effect.sync(() => void opened.push(session.identity.sessionID)))
          })
      })
      const host = yield* testSessionHost([plugin], { model })
      const first = yield* host.session.create()
      const second = yield* host.session.create()
      expect(yield* host.ask(first.id, "a")).toBe("one")
      expect(yield* host.ask(second.id, "b")).toBe("two")
      expect(opened).toEqual([first.id, second.id])
      const system = model.requests.map((request) =>
        request.messages.filter(({ role }) => role === "system").map(({ content }) => content).join("\n")
      )
      expect(system[0]).toContain("A section")
      expect(system[0]).toContain(`Session ${first.id}`)
      expect(system[1]).toContain(`Session ${second.id}`)
      const connection = yield* host.connect(second.id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(second.id, "c1") })
      yield* conversation.ready
      expect(conversation.view.value?.plugins).toEqual({ "test.notes": { asked: 1 } })
    }).pipe(Effect.scoped))

  it.live("shows each attached client the instance of its own session", () =>
    Effect.gen(function*() {
      class Title extends RemoteService.make("test.title")({ methods: { get: { success: Schema.String } } }) {}
      const plugin = Plugin.define({
        id: "test.title",
        session: (ctx) =>
          ctx.providePerSession(Title, (session) =>
            Effect.succeed({ get: () => Effect.succeed(session.identity.sessionID) }))
      })
      const host = yield* testSessionHost([plugin])
      const one = yield* host.session.create()
      const two = yield* host.session.create()
      const first = yield* host.connect(one.id)
      const second = yield* host.connect(two.id)
      const titles = yield* Effect.forEach([first, second], (connection) =>
        Effect.flatMap(connection.use(Title), (title) =>
          title.get()))
      expect(titles).toEqual([one.id, two.id])
      yield* second.select(one.id)
      expect(
        yield* Effect.flatMap(second.use(Title), (title) =>
          title.get())
      ).toBe(one.id)
    }).pipe(Effect.scoped))

  it.live("keeps a session's child going while the parent waits for it in a tool", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("delegate", { prompt: "work" })], "the child's answer", "the parent's answer"])
      const plugin = Plugin.define({
        id: "test.delegate",
        session: (ctx) =>
          Effect.asVoid(ctx.tool.transform((draft) =>
            draft.set(
              "delegate",
              tool({
                description: "Asks a child session",
                input: Schema.Struct({ prompt: Schema.String }),
                execute: ({ prompt }, running) =>
                  Effect.gen(function*() {
                    const child = yield* ctx.session.create({ parentID: running.sessionID })
                    yield* ctx.session.prompt({
                      sessionID: child.id,
                      prompt: { text: prompt },
                      requestID: running.callID,
                      resume: false
                    })
                    yield* ctx.session.resume(child.id)
                    yield* ctx.session.wait(child.id)
                    return yield* ctx.session.finalText(child.id)
                  })
              })
            )
          ))
      })
      const host = yield* testSessionHost([plugin], { model })
      const session = yield* host.session.create()
      expect(yield* host.ask(session.id, "go")).toBe("the parent's answer")
      expect(model.requests.at(-1)?.messages.at(-1)).toMatchObject({ content: [{ result: "the child's answer" }] })
    }).pipe(Effect.scoped))
})
