/** The session directory through a whole chain, over every transport: coordinator, session host, presentation. */
import { Coordinator, type Fleet, type HostIdentity, Plugin, Upstream } from "@bezel/core/host"
import { Connection, Endpoint } from "@bezel/core/rpc"
import { SessionStore } from "@bezel/core/session"
import { emptySettings, testSessionHost, testSessions } from "@bezel/core/testing"
import { SessionDirectory, sessionDirectoryPlugin, SessionPicker } from "@bezel/plugins/session-directory"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Stream } from "effect"
import {
  eventually,
  overLoopback,
  overPort,
  overUnixSocket,
  overWebSocket,
  parentOf,
  recordSpans,
  type TransportUnderTest,
  until
} from "./harness.ts"

const chain = (transport: TransportUnderTest, processes: Partial<Fleet["processes"]> = {}) =>
  Effect.gen(function*() {
    const sessions = yield* testSessions
    const store = Context.get(sessions, SessionStore)
    const fleet: Fleet = {
      records: store,
      processes: {
        start: () =>
          Effect.succeed({
            id: "h",
            location: identity.location,
            sessionID: null,
            state: "running",
            pid: null,
            error: null
          }),
        attach: () => Effect.die("not here"),
        stop: () => Effect.void,
        status: Effect.succeed([]),
        changes: Stream.empty,
        ...processes
      }
    }
    let identity: HostIdentity = { host: "h", location: { directory: "", workspaceID: null }, leases: "all" }
    const coordinator = yield* Coordinator.make({
      plugins: Plugin.sources("coordinator", [sessionDirectoryPlugin]),
      fleet,
      settings: emptySettings
    })
    const toCoordinator = yield* transport.open({
      serve: (end) => coordinator.serve(end, identity),
      clients: Effect.succeed([])
    })
    const upstreamFrames: Array<string> = []
    const connections: Array<typeof Connection.Service> = []
    const host = yield* Effect.provideService(testSessionHost([sessionDirectoryPlugin], { sessions }), Upstream, {
      connect: (location) =>
        Effect.gen(function*() {
          identity = { ...identity, location }
          const connection = yield* Connection.make({
            label: "host",
            retry: { first: "300 millis", longest: "300 millis" },
            connect: Effect.map(toCoordinator, (end) => ({
              ...end,
              post: (frame) => {
                upstreamFrames.push(frame)
                return end.post(frame)
              }
            }))
          })
          connections.push(connection)
          return connection
        })
    })
    const toHost = yield* transport.open(Context.get(host.services, Endpoint))
    const client = Effect.gen(function*() {
      const received: Array<string> = []
      const connection = yield* Connection.make({
        label: "test",
        connect: Effect.map(toHost, (end) => ({
          ...end,
          run: (onFrame) =>
            end.run((frame) => {
              received.push(frame)
              return onFrame(frame)
            })
        }))
      })
      yield* until(connection.state, ({ status }) => status === "connected")
      const picker = yield* connection.use(SessionPicker)
      yield* until(picker.state, ({ upstream }) => upstream === "connected")
      return { connection, picker, received }
    })
    return { store, host, client, upstreamFrames, upstream: () => connections[0] }
  })

const has = (title: string) => ({ sessions }: { readonly sessions: ReadonlyArray<{ readonly title: string }> }) =>
  sessions.some((session) => session.title === title)

for (const transport of [overLoopback, overUnixSocket, overWebSocket, overPort]) {
  describe(`the session directory over ${transport.name}`, () => {
    it.live("creates at the coordinator what a presentation asks for, and nothing that only the upstream has comes down", () =>
      Effect.gen(function*() {
        const { client, host, store } = yield* chain(transport)
        yield* store.create({
          location: { directory: "/elsewhere-canary", workspaceID: "tenant-canary" },
          title: "secret"
        })
        const { picker, received } = yield* client
        yield* picker.refresh()
        const events = yield* Effect.forkScoped(Stream.runHead(picker.happened), { startImmediately: true })
        const { sessionID } = yield* picker.create({ title: "made here" })
        yield* until(picker.state, has("made here"))
        yield* Fiber.join(events)
        expect((yield* store.get(sessionID)).location).toEqual(host.location)
        const wire = received.join("\n")
        expect(wire).toContain("made here")
        expect(wire).not.toMatch(/canary|secret|"owner"|"cwd"|"workspaceID"/)
        expect(wire).not.toContain(host.location.directory)
      }).pipe(Effect.scoped))

    it.live("follows the coordinator once for any number of presentations", () =>
      Effect.gen(function*() {
        const { client, upstreamFrames } = yield* chain(transport)
        const clients = [yield* client, yield* client, yield* client]
        yield* clients[0]?.connection.drop ?? Effect.void
        yield* clients[1]?.picker.create({ title: "for all" }) ?? Effect.void
        yield* Effect.forEach(clients, ({ picker }) => until(picker.state, has("for all")))
        const watches = upstreamFrames.filter((frame) => frame.includes('"states"'))
        expect(watches).toHaveLength(1)
        expect(upstreamFrames.filter((frame) => frame.includes('"_tag":"Interrupt"'))).toHaveLength(0)
      }).pipe(Effect.scoped))

    it.live("without its coordinator a host serves what it knew and refuses changes; with it again it is as the coordinator is", () =>
      Effect.gen(function*() {
        const { client, store, upstream, host } = yield* chain(transport)
        const { connection, picker } = yield* client
        yield* picker.create({ title: "known" })
        yield* until(picker.state, has("known"))
        yield* upstream()?.drop ?? Effect.void
        yield* until(picker.state, (state) => state.upstream === "disconnected")
        expect(picker.state.value?.sessions.map(({ title }) => title)).toEqual(["known"])
        expect(picker.state.status).toBe("live")
        expect(connection.state.value.status).toBe("connected")
        expect(yield* Effect.flip(picker.create({ title: "lost" }))).toMatchObject({ code: "unavailable" })
        yield* until(picker.state, (state) => state.upstream === "connected")
        yield* store.create({ location: host.location, title: "by another" })
        yield* picker.refresh()
        yield* until(picker.state, has("by another"))
        expect(picker.state.value?.sessions.map(({ title }) => title)).not.toContain("lost")
      }).pipe(Effect.scoped))

    it.live("giving up a creation reaches the coordinator, which leaves nothing of it", () =>
      Effect.gen(function*() {
        const entered = yield* Deferred.make<void>()
        const { client, store } = yield* chain(transport, {
          start: () => Effect.andThen(Deferred.succeed(entered, undefined), Effect.never)
        })
        const { picker } = yield* client
        const creating = yield* Effect.forkChild(picker.create({ title: "half" }))
        yield* Deferred.await(entered)
        expect((yield* store.list()).sessions).toHaveLength(1)
        yield* Fiber.interrupt(creating)
        const left = () => Effect.runPromise(Effect.map(store.list(), ({ sessions }) => sessions.length))
        yield* eventually(async () => await left() === 0)
        expect(yield* Effect.promise(left)).toBe(0)
      }).pipe(Effect.scoped))

    it.live("the coordinator refuses a session host that misbehaves what is of other workspaces, and shows it nothing of them", () =>
      Effect.gen(function*() {
        const { client, host, store, upstream } = yield* chain(transport)
        yield* client
        const theirs = yield* store.create({
          location: { directory: host.location.directory, workspaceID: "another" },
          title: "theirs"
        })
        const own = upstream()
        if (own === undefined) throw new Error("the host has no connection to its coordinator")
        const directory = yield* own.use(SessionDirectory)
        const elsewhere = { cwd: host.location.directory, workspaceID: "another" }
        for (
          const refused of [
            yield* Effect.flip(directory.create(elsewhere)),
            yield* Effect.flip(directory.remove({ sessionID: theirs.id })),
            yield* Effect.flip(directory.rename({ sessionID: theirs.id, title: "mine" }))
          ]
        ) {
          expect(refused).toMatchObject({ code: "unauthorized" })
        }
        yield* directory.refresh()
        expect(JSON.stringify(directory.state.value)).not.toContain(theirs.id)
        expect(yield* store.get(theirs.id)).toMatchObject({ title: "theirs" })
      }).pipe(Effect.scoped))

    it.live("is one trace from the person to the record", () =>
      Effect.gen(function*() {
        const spans = recordSpans()
        yield* spans.traced(Effect.gen(function*() {
          const { client } = yield* chain(transport)
          const { picker } = yield* client
          yield* Effect.withSpan(picker.create({ title: "traced" }), "ui.sessions.create")
        }))
        const path = [
          "ui.sessions.create",
          "rpc.client bezel.session-picker.create",
          "rpc.server bezel.session-picker.create",
          "rpc.client bezel.session-directory.create",
          "rpc.server bezel.session-directory.create",
          "SessionDirectory.create",
          "SessionStore.create"
        ].map(spans.named)
        path.slice(1).forEach((span, index) => expect(parentOf(span)).toBe(path[index]?.spanId))
      }).pipe(Effect.scoped))
  })
}
