/** The relay by itself, and the door for presentations over real WebSockets. */
import { Conversation, conversationKey } from "@bezel/core/host"
import { Connection, connectWebSocket, makeMemoryPair } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import { serveHttp } from "@bezel/server/http"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Scope, Stream } from "effect"
import { introduced, introducing } from "../../packages/server/src/process/introduction.ts"
import { relay } from "../../packages/server/src/relay.ts"
import { rpcUpgrades } from "../../packages/server/src/serve/rpc.ts"
import { fleetOver } from "./deployment.ts"
import { Who } from "./who.ts"

const until = <A>(changes: Stream.Stream<A>, predicate: (value: A) => boolean) =>
  Effect.timeout(Stream.runHead(Stream.filter(changes, predicate)), "15 seconds")

/** The two ends of a relay: what a client and a host have of it. */
const relayed = (options: { readonly backlogLimit?: number } = {}) =>
  Effect.gen(function*() {
    const [client, near] = makeMemoryPair(options)
    const [far, host] = makeMemoryPair(options)
    const over = yield* Deferred.make<void>()
    yield* Effect.forkScoped(Effect.andThen(relay(near, Effect.succeed(far)), Deferred.succeed(over, undefined)))
    return { client, host, over: Effect.timeout(Deferred.await(over), "5 seconds") }
  })

describe("the relay", () => {
  it.live("passes frames on in order, both ways, unread", () =>
    Effect.gen(function*() {
      const { client, host } = yield* relayed()
      const [up, down]: [Array<string>, Array<string>] = [[], []]
      const all = yield* Deferred.make<void>()
      const frames = Array.from({ length: 1_000 }, (_, index) => index === 7 ? "no JSON" : `{"n":${index}}`)
      const take = (into: Array<string>) => (frame: string) => {
        into.push(frame)
        return up.length === 1_000 && down.length === 1_000 ? Effect.asVoid(Deferred.succeed(all, undefined)) : null
      }
      yield* Effect.forkScoped(host.run(take(up)))
      yield* Effect.forkScoped(client.run(take(down)))
      for (const frame of frames) {
        client.post(frame)
        host.post(frame)
      }
      yield* Effect.timeout(Deferred.await(all), "5 seconds")
      expect([up, down]).toEqual([frames, frames])
    }).pipe(Effect.scoped))

  it.live("ends with either side, and takes the other one with it", () =>
    Effect.gen(function*() {
      for (const leaving of ["client", "host"] as const) {
        const ends = yield* relayed()
        const staying = leaving === "client" ? ends.host : ends.client
        const ended = yield* Effect.forkScoped(staying.run(() => null))
        yield* ends[leaving].close
        yield* ends.over
        yield* Effect.timeout(staying.closed, "5 seconds")
        expect(yield* Effect.timeout(Fiber.join(ended), "5 seconds")).toBe(undefined)
      }
    }).pipe(Effect.scoped))

  it.live("tells a client why there is no host for it", () =>
    Effect.gen(function*() {
      const [client, near] = makeMemoryPair()
      const none = new ServiceError({ code: "unavailable", message: "The host is broken." })
      yield* Effect.forkScoped(relay(near, Effect.fail(none)))
      const frames: Array<string> = []
      yield* Effect.timeout(
        client.run((frame) => {
          frames.push(frame)
          return null
        }),
        "5 seconds"
      )
      expect(frames.map((frame) => JSON.parse(frame))).toEqual([
        { _tag: "Goodbye", code: "unavailable", message: "The host is broken." }
      ])
    }).pipe(Effect.scoped))

  it.live("waits for no host on behalf of a client that has left", () =>
    Effect.gen(function*() {
      const [client, near] = makeMemoryPair()
      const given = yield* Deferred.make<void>()
      const waiting = Effect.onInterrupt(Effect.never, () => Deferred.succeed(given, undefined))
      yield* Effect.forkScoped(relay(near, waiting))
      yield* client.close
      yield* Effect.timeout(Deferred.await(given), "5 seconds")
      expect(yield* Deferred.isDone(given)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("gives up a client that does not read, and lets its host go", () =>
    Effect.gen(function*() {
      const { host, over } = yield* relayed({ backlogLimit: 100_000 })
      // Nobody runs the client's end: what comes there waits, up to the limits.
      const frame = JSON.stringify("x".repeat(50_000))
      const ended = yield* Effect.forkScoped(host.run(() => null))
      const flood = Effect.gen(function*() {
        while (host.post(frame)) yield* Effect.yieldNow
      })
      yield* Effect.timeout(flood, "10 seconds")
      yield* over
      expect(yield* Effect.timeout(Fiber.join(ended), "5 seconds")).toBe(undefined)
    }).pipe(Effect.scoped))
})

describe("the introduction of a client to a host", () => {
  it.live("says who it is, before anything that the client says", () =>
    Effect.gen(function*() {
      const [near, far] = makeMemoryPair()
      const who = yield* Deferred.make<string | null>()
      const first = yield* Deferred.make<string>()
      yield* Effect.forkScoped(introduced(far, (rest, { user }) =>
        Effect.andThen(
          Deferred.succeed(who, user),
          rest.run((frame) => Effect.asVoid(Deferred.succeed(first, frame)))
        )))
      const transport = yield* introducing(Effect.succeed(near), "ann")
      // A client that says the same itself says it too late.
      transport.post(JSON.stringify({ _tag: "Introduced", user: "root" }))
      expect(yield* Effect.timeout(Deferred.await(who), "5 seconds")).toBe("ann")
      expect(yield* Effect.timeout(Deferred.await(first), "5 seconds")).toContain("root")
    }).pipe(Effect.scoped))

  it.live("is asked of everybody", () =>
    Effect.gen(function*() {
      const [near, far] = makeMemoryPair()
      let served = false
      yield* Effect.forkScoped(introduced(far, () => Effect.sync(() => void (served = true))))
      near.post(JSON.stringify({ _tag: "Request" }))
      const frames: Array<string> = []
      yield* Effect.timeout(
        near.run((frame) => {
          frames.push(frame)
          return null
        }),
        "5 seconds"
      )
      expect([served, frames.map((frame) => JSON.parse(frame).code)]).toEqual([false, ["unauthorized"]])
    }).pipe(Effect.scoped))
})

describe("/rpc", { timeout: 60_000 }, () => {
  const served = Effect.gen(function*() {
    const deployed = yield* fleetOver("location")
    const { fleet } = deployed
    const callers = { all: { name: "ann", scope: "admin" }, some: { name: "bob", scope: "prompt" } } as const
    const { url } = yield* serveHttp({
      fleet,
      version: "test",
      tokens: { find: (token) => token === "all" || token === "some" ? callers[token] : null },
      onUpgrade: yield* rpcUpgrades(fleet)
    })
    const connect = (token: string, sessionID: string) =>
      connectWebSocket(`${url.replace("http", "ws")}/rpc?session=${sessionID}`, {
        headers: { authorization: `Bearer ${token}` }
      })
    const { session } = yield* fleet.location(deployed.work)
    return { ...deployed, connect, session, url }
  })

  it.live("serves a presentation with the host of the session that it names", () =>
    Effect.gen(function*() {
      const { connect, session } = yield* served
      const { id } = yield* session.create()
      const connection = yield* Connection.make({ label: "test", connect: connect("all", id) })
      yield* until(connection.state.changes, ({ status }) => status === "connected")
      yield* connection.select(id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
      const { inputID } = yield* conversation.send({ text: "hi" })
      expect(yield* conversation.wait({ inputID })).toMatchObject({ status: "done", text: "hello" })
    }).pipe(Effect.scoped))

  it.live("takes a token that may do everything, and no other", () =>
    Effect.gen(function*() {
      const { connect, session } = yield* served
      const { id } = yield* session.create()
      for (const token of ["some", "none", ""]) {
        expect(yield* Effect.flip(Effect.scoped(connect(token, id)))).toMatchObject({ code: "disconnected" })
      }
      yield* Effect.scoped(connect("all", id))
    }).pipe(Effect.scoped))

  it.live("says that there is no such session", () =>
    Effect.gen(function*() {
      const { connect } = yield* served
      const connection = yield* Connection.make({ label: "test", connect: connect("all", "ses_unknown") })
      yield* until(connection.state.changes, ({ reason }) => reason?.message.includes("ses_unknown") === true)
      expect(connection.state.value.status).not.toBe("connected")
    }).pipe(Effect.scoped))

  it.live("sends away who talks nonsense, and nobody else notices", () =>
    Effect.gen(function*() {
      const { connect, session } = yield* served
      const { id } = yield* session.create()
      const connection = yield* Connection.make({ label: "test", connect: connect("all", id) })
      yield* until(connection.state.changes, ({ status }) => status === "connected")
      const seen: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(connection.state.changes, ({ status }) => Effect.sync(() => void seen.push(status)))
      )
      const rude = yield* connect("all", id)
      const frames: Array<string> = []
      rude.post("this is no message")
      yield* Effect.timeout(
        rude.run((frame) => {
          frames.push(frame)
          return null
        }),
        "10 seconds"
      )
      expect(frames.map((frame) => JSON.parse(frame)._tag)).toEqual(["Goodbye"])
      expect(new Set(seen)).toEqual(new Set(["connected"]))
    }).pipe(Effect.scoped))

  it.live("closes a socket with the number and the words for why, for those who do not read frames", () =>
    Effect.gen(function*() {
      const { session, url } = yield* served
      const { id } = yield* session.create()
      const closed = (sessionID: string, send?: Uint8Array<ArrayBuffer>) =>
        Effect.promise(() =>
          new Promise<readonly [number, string]>((resolve) => {
            const socket = new WebSocket(`${url.replace("http", "ws")}/rpc?session=${sessionID}`, {
              headers: { authorization: "Bearer all" }
            })
            socket.addEventListener("open", () => {
              if (send !== undefined) socket.send(send)
            })
            socket.addEventListener("close", ({ code, reason }) => resolve([code, reason]))
          })
        ).pipe(Effect.timeout("5 seconds"))
      expect(yield* closed("ses_unknown")).toEqual([1_008, expect.stringMatching(/^there is no session "ses_unknown"/)])
      expect(yield* closed(id, new Uint8Array([1, 2, 3]))).toEqual([1_008, "Frames are text; a binary one was sent."])
    }).pipe(Effect.scoped))

  it.live("ends with the server, and its clients with it", () =>
    Effect.gen(function*() {
      const outer = yield* Effect.scope
      const connection = yield* Effect.scoped(Effect.gen(function*() {
        const { connect, session } = yield* served
        const { id } = yield* session.create()
        const connection = yield* Scope.provide(Connection.make({ label: "test", connect: connect("all", id) }), outer)
        yield* until(connection.state.changes, ({ status }) => status === "connected")
        return connection
      }))
      yield* until(connection.state.changes, ({ status }) => status === "disconnected")
      expect(connection.state.value.status).not.toBe("connected")
    }).pipe(Effect.scoped))
})

describe.each(["none", "location"] as const)(
  "a relayed client of a host with isolation %s",
  { timeout: 60_000 },
  (isolation) => {
    it.live("is to its services whoever the server has found out, not who it says it is", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation, "busy")
        const { id } = yield* (yield* fleet.location(work)).session.create()
        const connection = yield* Connection.make({
          label: "root",
          connect: Effect.gen(function*() {
            const [client, server] = makeMemoryPair()
            yield* Effect.forkScoped(fleet.relay(id, server, { name: "ann", scope: "admin" }))
            yield* Effect.addFinalizer(() => client.close)
            return client
          })
        })
        yield* until(connection.state.changes, ({ status }) => status === "connected")
        expect(yield* (yield* connection.use(Who)).am()).toBe("ann")
        expect(yield* (yield* (yield* fleet.attached(id)).use(Who)).am()).toBe(null)
      }).pipe(Effect.scoped))
  }
)
