/** The boundary of calls, as one text for every transport. */
import type { EndpointShape } from "@bezel/core/rpc"
import { LocalService, RemoteService } from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Schema, Scope } from "effect"
import { Models, Unknown } from "./contract.ts"
import { connected, eventually, makeHost, parentOf, recordSpans, type TransportUnderTest } from "./harness.ts"
import { provideModels } from "./provide.ts"

export const calls = (transport: TransportUnderTest) => {
  it.effect("a service provided on one side is used on the other", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      yield* models.ready
      expect(models.state.value).toEqual(state.value)
      expect(yield* models.select({ model: "b", options: [] })).toBeUndefined()
      expect(state.value.current).toBe("b")
      expect(yield* models.count()).toBe(2)
    }))

  it.effect("a payload and a result cross through the codecs of their token", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const models = yield* connection.use(Models)
      expect(yield* models.at(new Date("2026-01-01T00:00:00.000Z"))).toEqual(new Date("2026-01-01T00:00:01.000Z"))
      expect(frames.sent.join("\n")).toContain(`"payload":"2026-01-01T00:00:00.000Z"`)
    }))

  it.effect("in the providing process use gives the implementation itself", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const models = yield* host.directory.use(Models)
      expect(models.state).toBe(state)
      expect(yield* models.who()).toBe("nobody")
    }))

  it.effect("an argument that does not fit is refused with its path, before anything runs", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      class Loose extends RemoteService.make("test.models")({
        methods: { select: { payload: Schema.Json } }
      }) {}
      const loose = yield* (yield* host.client).use(Loose)
      const error = yield* Effect.flip(
        loose.select({ model: "b", options: [{ label: "fine" }, { label: "sk-canary-1".length }] })
      )
      expect(error).toMatchObject({ code: "invalid_arguments", data: { path: "options[1].label" } })
      expect(error.message).toBe(
        "The arguments of test.models.select do not fit at options[1].label: expected a string."
      )
      expect(state.value.current).toBeNull()
    }))

  it.effect("an argument that cannot be encoded never leaves the client", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const models = yield* connection.use(Models)
      const before = frames.sent.length
      // @ts-expect-error: what a caller without types can do.
      const error = yield* Effect.flip(models.select({ model: 7, options: [] }))
      expect(error).toMatchObject({ code: "invalid_arguments", data: { path: "model" } })
      expect(frames.sent.slice(before).filter((frame) => frame.includes("select"))).toEqual([])
    }))

  it.effect("a result that breaks the contract answers invalid_result", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      const error = yield* Effect.flip(models.lie())
      expect(error.code).toBe("invalid_result")
      expect(error.message).not.toContain("many")
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("unknown services and members, and members of another kind, are refused by code", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      class Nothing extends RemoteService.make("test.nothing")({ methods: { run: {} } }) {}
      class Wider extends RemoteService.make("test.models")({
        methods: { remove: {}, state: {}, changed: {}, toString: {}, hasOwnProperty: {} }
      }) {}
      const client = yield* host.client
      expect((yield* Effect.flip((yield* client.use(Nothing)).run())).code).toBe("unknown_service")
      const wider = yield* client.use(Wider)
      for (const method of ["remove", "state", "changed", "toString", "hasOwnProperty"] as const) {
        expect((yield* Effect.flip(wider[method]())).code).toBe("unknown_member")
      }
    }))

  it.effect("a local service is unreachable from outside, like one that does not exist", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const Vault = LocalService.make<{ readonly open: () => string }>("test.vault")
      yield* host.directory.provideLocal(Vault, { open: () => "gold" })
      class Thief extends RemoteService.make("test.vault")({ methods: { open: { success: Schema.String } } }) {}
      const client = yield* host.client
      const thief = yield* client.use(Thief)
      const error = yield* Effect.flip(thief.open())
      expect(error.code).toBe("unknown_service")
      expect(yield* client.catalogue).toEqual([])
      expect((yield* host.directory.useLocal(Vault)).open()).toBe("gold")
    }))

  it.effect("a service that nobody provides at the moment answers unavailable, and nothing queues", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const scope = yield* Scope.make()
      const { state } = yield* Scope.provide(provideModels(host.directory), scope)
      const models = yield* (yield* host.client).use(Models)
      yield* models.ready
      yield* Scope.close(scope, Exit.void)
      expect(yield* Effect.flip(models.select({ model: "b", options: [] }))).toMatchObject({ code: "unavailable" })
      expect(state.value.current).toBeNull()
    }))

  it.effect("an error that a method declares arrives as itself", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      const error = yield* Effect.flip(models.select({ model: "z", options: [] }))
      expect(error).toBeInstanceOf(Unknown)
      expect(error).toMatchObject({ model: "z" })
    }))

  it.effect("a defect becomes internal with an incident id that the host's log explains, and ends no other call", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make((entry) => {
        logged.push(Logger.formatJson.log(entry))
      })
      yield* Effect.gen(function*() {
        const host = yield* makeHost(transport)
        const provider = yield* provideModels(host.directory)
        const { connection, frames } = yield* host.connectWith()
        const models = yield* connection.use(Models)
        const waiting = yield* Effect.forkChild(models.wait())
        yield* provider.entered
        const error = yield* Effect.flip(models.fail())
        expect(error).toMatchObject({ code: "internal", data: { incident: expect.any(String) } })
        expect(frames.received.join("\n")).not.toMatch(/stack-canary|\/home\/somebody|at /)
        const incident = (error.data as { readonly incident: string }).incident
        expect(logged.find((line) => line.includes(incident))).toContain("stack-canary")
        expect(yield* models.count()).toBe(2)
        expect(waiting.pollUnsafe()).toBeUndefined()
        yield* Fiber.interrupt(waiting)
      }).pipe(Effect.provide(Logger.layer([logger])))
    }))

  it.effect("a handler that its host interrupts answers cancelled, and ends no other call", () =>
    Effect.gen(function*() {
      class Fragile extends RemoteService.make("test.fragile")({
        methods: { fall: {}, stand: { success: Schema.String } }
      }) {}
      const host = yield* makeHost(transport)
      const goOn = yield* Deferred.make<void>()
      let standing = false
      yield* host.directory.provide(Fragile, {
        fall: () => Effect.interrupt,
        stand: () =>
          Effect.suspend(() => {
            standing = true
            return Effect.as(Deferred.await(goOn), "still here")
          })
      })
      const fragile = yield* (yield* host.client).use(Fragile)
      const other = yield* Effect.forkChild(fragile.stand())
      yield* eventually(() => standing)
      expect(yield* Effect.flip(fragile.fall())).toMatchObject({
        code: "cancelled",
        message: expect.stringContaining("test.fragile.fall")
      })
      yield* Deferred.succeed(goOn, undefined)
      expect(yield* Fiber.join(other)).toBe("still here")
    }))

  it.effect("interrupting a call interrupts its handler and touches no other", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const provider = yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      const one = yield* Effect.forkChild(models.wait())
      const other = yield* Effect.forkChild(models.wait())
      yield* eventually(() => provider.waiting() === 2)
      yield* Fiber.interrupt(one)
      yield* eventually(() => provider.interrupted() === 1)
      expect(other.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(other)
      yield* eventually(() => provider.interrupted() === 2)
    }))

  it.effect("a disconnect ends the calls of that client, here and there, and of no other client", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const provider = yield* provideModels(host.directory)
      const first = yield* host.client
      const second = yield* host.client
      const lost = yield* Effect.forkChild(Effect.flip((yield* first.use(Models)).wait()))
      const kept = yield* Effect.forkChild((yield* second.use(Models)).wait())
      yield* eventually(() => provider.waiting() === 2)
      yield* first.drop
      expect(yield* Fiber.join(lost)).toMatchObject({ code: "disconnected" })
      yield* eventually(() => provider.interrupted() === 1)
      expect(kept.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(kept)
    }))

  it.effect("calls that are open when the connection is lost all settle as disconnected", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const provider = yield* provideModels(host.directory)
      const { connection } = yield* host.connectWith({ retry: { first: "1 minute", longest: "1 minute" } })
      const models = yield* connection.use(Models)
      const calls = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.flip(models.wait())))
      yield* eventually(() => provider.waiting() === 3)
      yield* connection.drop
      const errors = yield* Effect.forEach(calls, Fiber.join)
      expect(errors.map((error) => error.code)).toEqual(["disconnected", "disconnected", "disconnected"])
      yield* eventually(() => provider.interrupted() === 3)
    }))

  it.effect("a call while disconnected fails at once with disconnected", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const { connection } = yield* host.connectWith({ retry: { first: "1 minute", longest: "1 minute" } })
      const models = yield* connection.use(Models)
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      expect(yield* Effect.flip(models.count())).toMatchObject({ code: "disconnected" })
    }))

  it.effect("a connection that is lost is made again", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const client = yield* host.client
      const models = yield* client.use(Models)
      yield* client.drop
      yield* eventually(() => client.state.value.status === "disconnected")
      yield* connected(client)
      expect(yield* models.count()).toBe(2)
    }))

  it.effect("a call runs under client span, rpc client, rpc server, service span, in one trace", () =>
    Effect.gen(function*() {
      const spans = recordSpans()
      yield* spans.traced(Effect.gen(function*() {
        const host = yield* makeHost(transport)
        yield* provideModels(host.directory)
        const models = yield* (yield* host.client).use(Models)
        yield* Effect.withSpan(models.select({ model: "a", options: [] }), "ui.select")
      }))
      const path = [
        "ui.select",
        "rpc.client test.models.select",
        "rpc.server test.models.select",
        "models.select"
      ].map(spans.named)
      path.slice(1).forEach((span, index) => expect(parentOf(span)).toBe(path[index]?.spanId))
      expect(new Set(path.map((span) => span.traceId)).size).toBe(1)
    }))

  it.effect("a service sees the identity that the transport installed, and nothing in a payload can set it", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      class Liar extends RemoteService.make("test.models")({
        methods: { who: { payload: Schema.Json, success: Schema.NullOr(Schema.String) } }
      }) {}
      const liar = yield* (yield* host.client).use(Liar)
      expect(yield* liar.who({ user: "root", identity: { user: "root" } })).toBe("nobody")
      const [client] = yield* host.endpoint.clients
      expect(client).toMatchObject({ label: "test", user: null })
      // The same over a way that has found out who is there.
      const serve: EndpointShape["serve"] = (end) => host.endpoint.serve(end, { user: "ada" })
      const { connection: known } = yield* host.connectWith({
        connect: yield* transport.open({ ...host.endpoint, serve })
      })
      expect(yield* (yield* known.use(Liar)).who({ user: "root", identity: { user: "root" } })).toBe("ada")
    }))

  it.effect("no callback, context or signal crosses: frames are strict JSON of what the contract names", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const models = yield* connection.use(Models)
      yield* models.ready
      const more = { model: "a", options: [], secret: "sk-canary", callback: () => {} }
      yield* models.select(more)
      for (const frame of [...frames.sent, ...frames.received]) {
        expect(JSON.parse(frame)).toBeTypeOf("object")
        expect(frame).not.toMatch(/sk-canary|callback|signal|fiberRefs/)
      }
    }))

  it.effect("a subscription that is not read holds up no call of the same client", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const received: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => received.push(frame))))
      const send = (id: number, tag: string, payload: object) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] }))
      yield* send(1, "watch", { type: "states", service: "test.models" })
      yield* eventually(() => received.length === 1)
      for (let revision = 1; revision < 5_000; revision++) {
        yield* state.update((draft) => {
          draft.revision = revision
        })
      }
      yield* send(2, "call", { service: "test.models", member: "count", payload: null })
      yield* eventually(() => received.length === 2)
      expect(received[1]).toContain(`"value":2`)
    }))

  it.effect("a client that has too much in flight is told overloaded, and goes on when some of it ends", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { callLimit: 2 })
      const provider = yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      const one = yield* Effect.forkChild(models.wait())
      yield* Effect.forkChild(models.wait())
      yield* eventually(() => provider.waiting() === 2)
      expect(yield* Effect.flip(models.count())).toMatchObject({ code: "overloaded" })
      yield* Fiber.interrupt(one)
      yield* eventually(() => provider.interrupted() === 1)
      expect(yield* models.count()).toBe(2)
    }))

  it.effect("a client that subscribes to too much is told overloaded", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { subscriptionLimit: 0 })
      yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      expect(yield* Effect.flip(models.ready)).toMatchObject({ code: "overloaded" })
    }))

  it.effect("a peer that sends garbage is disconnected, and no other client notices", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const good = yield* host.client
      const bad = yield* host.raw
      yield* bad.send("{ not json")
      yield* bad.closed
      expect(yield* (yield* good.use(Models)).count()).toBe(2)
      expect(yield* host.endpoint.clients).toHaveLength(1)
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("a message that is none of the contract's is answered, not a crash", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const answers: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const send = (id: string, tag: string, payload: unknown) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] }))
      yield* send("1", "call", { service: 7 })
      yield* send("2", "call", "nonsense")
      yield* send("3", "watch", { type: "everything" })
      yield* send("4", "control", { type: "shutdown" })
      yield* send("5", "call", { service: "test.models", member: "count", payload: null })
      yield* eventually(() => answers.length >= 5)
      const byId = (id: string) => answers.find((answer) => answer.includes(`"requestId":"${id}"`))
      for (const id of ["1", "2", "3", "4"]) expect(byId(id)).toContain("invalid_arguments")
      expect(byId("5")).toContain(`"value":2`)
    }))
}
