/** The session directory from the coordinator to a presentation, with everything in one process. */
import { Coordinator, type Fleet, type HostIdentity, LocationMap, Plugin, Plugins } from "@bezel/core/host"
import { Connection, makeMemoryPair } from "@bezel/core/rpc"
import { SessionStore } from "@bezel/core/session"
import {
  emptySettings,
  run,
  say,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testGlobals,
  testSessions
} from "@bezel/core/testing"
import { SessionDirectory, sessionDirectoryPlugin, SessionPicker } from "@bezel/plugins/session-directory"
import { inlineLocations, type PlacedHost, Placement } from "@bezel/server"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { eventually } from "../../eventually.ts"

const plugins = Plugin.sources("coordinator", [sessionDirectoryPlugin])

/** Hosts in this process under a coordinator, over one store. */
const deployment = (
  locations: "coordinated" | "alone" | "without" = "coordinated",
  ...answers: ReadonlyArray<ScriptedTurn>
) =>
  Effect.gen(function*() {
    const sessions = yield* testSessions
    const globals = testGlobals([sessionDirectoryPlugin], { sessions, model: scriptedModel(answers) })
    const map = locations === "alone"
      ? LocationMap.layer
      : inlineLocations({ plugins: () => Effect.succeed(locations === "without" ? [] : plugins) })
    const context = yield* Layer.build(Placement.inline.pipe(Layer.provide(map), Layer.provide(globals)))
    return { place: Context.get(context, Placement).place, store: Context.get(sessions, SessionStore) }
  })

const until = <A>(changes: Stream.Stream<A>, predicate: (value: A) => boolean) =>
  Effect.timeout(Stream.runHead(Stream.filter(changes, predicate)), "5 seconds")

/** A new client's picker, once its host has its coordinator. */
const pickerOf = (host: PlacedHost) =>
  Effect.gen(function*() {
    const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
    yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
    return picker
  })

describe("the session directory under an inline coordinator", () => {
  it.live("shows a presentation the sessions of its own place, without owner, folder or workspace", () =>
    Effect.gen(function*() {
      const { place, store } = yield* deployment()
      const here = yield* temporaryDirectory
      const elsewhere = yield* temporaryDirectory
      const host = yield* place(here)
      const other = yield* place(elsewhere)
      yield* store.create({ location: other.location, title: "theirs" })
      const mine = yield* store.create({ location: host.location, title: "mine" })
      const picker = yield* pickerOf(host)
      yield* picker.refresh()
      yield* until(picker.state.changes, ({ sessions }) => sessions.length > 0)
      expect(picker.state.value).toMatchObject({
        upstream: "connected",
        sessions: [{ sessionID: mine.id, title: "mine", status: "starting" }]
      })
      expect(Object.keys(picker.state.value?.sessions[0] ?? {}).sort()).toEqual([
        "sessionID",
        "status",
        "title",
        "updatedAt"
      ])
    }).pipe(Effect.scoped))

  it.live("creates, renames and removes sessions for a presentation, and tells everybody", () =>
    Effect.gen(function*() {
      const { place, store } = yield* deployment()
      const host = yield* place(yield* temporaryDirectory)
      const one = yield* pickerOf(host)
      const two = yield* pickerOf(host)
      const events = yield* Effect.forkScoped(Stream.runCollect(Stream.take(two.happened, 3)), {
        startImmediately: true
      })
      const { sessionID } = yield* one.create({ title: "a plan" })
      yield* until(two.state.changes, ({ sessions }) => sessions.some(({ title }) => title === "a plan"))
      expect((yield* store.get(sessionID)).location).toEqual(host.location)
      yield* one.rename({ sessionID, title: "a better plan" })
      yield* until(two.state.changes, ({ sessions }) => sessions.some(({ title }) => title === "a better plan"))
      yield* one.remove({ sessionID })
      yield* until(two.state.changes, ({ sessions }) => sessions.length === 0)
      expect(yield* Effect.flip(store.get(sessionID))).toMatchObject({ _tag: "UnknownSession" })
      expect((yield* Fiber.join(events)).map(({ type }) => type)).toEqual(["created", "changed", "deleted"])
    }).pipe(Effect.scoped))

  it.live("shows a session as active while it works, and as idle afterwards", () =>
    Effect.gen(function*() {
      const seen = yield* Deferred.make<void>()
      const { place } = yield* deployment("coordinated", [run(Deferred.await(seen)), say("hello")])
      const host = yield* place(yield* temporaryDirectory)
      const picker = yield* pickerOf(host)
      const { sessionID } = yield* picker.create({})
      const becomes = (status: string) => until(picker.state.changes, ({ sessions }) => sessions[0]?.status === status)
      yield* becomes("starting")
      const { inputID } = yield* host.session.prompt({ sessionID, prompt: { text: "hi" } })
      yield* becomes("active")
      yield* Deferred.succeed(seen, undefined)
      expect(yield* host.session.wait(sessionID, inputID)).toMatchObject({ text: "hello" })
      yield* becomes("idle")
    }).pipe(Effect.scoped))

  it.live("answers that there is no session where a presentation names one of another place", () =>
    Effect.gen(function*() {
      const { place, store } = yield* deployment()
      const host = yield* place(yield* temporaryDirectory)
      const other = yield* place(yield* temporaryDirectory)
      const theirs = yield* store.create({ location: other.location, title: "theirs" })
      const picker = yield* pickerOf(host)
      expect(yield* Effect.flip(picker.remove({ sessionID: theirs.id }))).toMatchObject({ code: "invalid_arguments" })
      expect((yield* store.get(theirs.id)).title).toBe("theirs")
    }).pipe(Effect.scoped))

  it.live("goes on through a reload of its session facet, for clients that hold it", () =>
    Effect.gen(function*() {
      const { place } = yield* deployment()
      const host = yield* place(yield* temporaryDirectory)
      const connection = yield* host.connect({ label: "test" })
      const picker = yield* connection.use(SessionPicker)
      yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
      yield* picker.create({ title: "before" })
      const plugins = yield* connection.use(Plugins)
      expect(yield* plugins.reload({ plugins: ["bezel.session-directory"] })).toEqual({
        plugins: ["bezel.session-directory"]
      })
      yield* until(picker.state.changes, ({ sessions, upstream }) => upstream === "connected" && sessions.length === 1)
      yield* picker.create({ title: "after" })
      yield* until(picker.state.changes, ({ sessions }) => sessions.length === 2)
      expect(picker.state.value?.sessions.map(({ title }) => title)).toEqual(["after", "before"])
    }).pipe(Effect.scoped))

  it.live("says unavailable and shows nothing where there is no coordinator", () =>
    Effect.gen(function*() {
      const { place } = yield* deployment("alone")
      const host = yield* place(yield* temporaryDirectory)
      const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
      yield* picker.ready
      expect(picker.state.value).toEqual({ revision: 0, sessions: [], upstream: "none" })
      expect(yield* Effect.flip(picker.create({}))).toMatchObject({ code: "unavailable" })
    }).pipe(Effect.scoped))
})

describe("a coordinator without the session directory", () => {
  it.live("has hosts that work, whose list is empty and whose changes fail with what is missing", () =>
    Effect.gen(function*() {
      const { place } = yield* deployment("without", "hello")
      const host = yield* place(yield* temporaryDirectory)
      const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
      yield* picker.ready
      expect(picker.state.value?.sessions).toEqual([])
      expect(yield* Effect.flip(picker.create({}))).toMatchObject({
        code: expect.stringMatching(/^un(available|known_service)$/)
      })
      const { id } = yield* host.session.create({ title: "t" })
      const { inputID } = yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      expect(yield* host.session.wait(id, inputID)).toMatchObject({ text: "hello" })
    }).pipe(Effect.scoped))
})

describe("the coordinator's authority over sessions", () => {
  const coordinated = Effect.gen(function*() {
    const store = Context.get(yield* testSessions, SessionStore)
    const stopped: Array<string> = []
    const fleet: Fleet = {
      records: store,
      processes: {
        start: () => Effect.succeed({ id: "h", location, sessionID: null, state: "running", pid: null, error: null }),
        attach: () => Effect.die("not here"),
        stop: (sessionID) => Effect.sync(() => void stopped.push(sessionID)),
        status: Effect.succeed([]),
        changes: Stream.empty
      }
    }
    const coordinator = yield* Coordinator.make({ plugins, fleet, settings: emptySettings })
    const connect = (identity: HostIdentity) =>
      Effect.gen(function*() {
        const connection = yield* Connection.make({
          label: "host",
          connect: Effect.gen(function*() {
            const [client, server] = makeMemoryPair()
            yield* Effect.forkScoped(coordinator.serve(server, identity))
            yield* Effect.addFinalizer(() => client.close)
            return client
          })
        })
        yield* until(connection.state.changes, ({ status }) => status === "connected")
        return yield* connection.use(SessionDirectory)
      })
    return { store, stopped, coordinator, connect }
  })
  const location = { directory: "/work/a", workspaceID: null }
  const unauthorized = { code: "unauthorized" }

  it.live("refuses a host that names another place, whatever its arguments say", () =>
    Effect.gen(function*() {
      const { connect, store } = yield* coordinated
      const directory = yield* connect({ host: "h", location, leases: "all" })
      const theirs = yield* store.create({ location: { directory: "/work/b", workspaceID: null } })
      const tenant = yield* store.create({ location: { directory: "/work/a", workspaceID: "w2" } })
      expect(yield* Effect.flip(directory.create({ cwd: "/work/b", workspaceID: null }))).toMatchObject(unauthorized)
      expect(yield* Effect.flip(directory.create({ cwd: "/work/a", workspaceID: "w2" }))).toMatchObject(unauthorized)
      for (const { id } of [theirs, tenant, { id: "ses_none" }]) {
        const refusals = [
          yield* Effect.flip(directory.remove({ sessionID: id })),
          yield* Effect.flip(directory.rename({ sessionID: id, title: "x" })),
          yield* Effect.flip(directory.report({ sessionID: id, status: "active" }))
        ]
        // What exists elsewhere and what does not exist cannot be told apart.
        expect(refusals.map(({ code, message }) => [code, message])).toEqual(
          Array.from({ length: 3 }, () => ["unauthorized", "This host has no session of that id."])
        )
      }
      expect((yield* store.list()).sessions).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.live("refuses a host a session of its place that has been given to another", () =>
    Effect.gen(function*() {
      const { connect, stopped, store } = yield* coordinated
      const mine = yield* store.create({ location })
      const sibling = yield* store.create({ location })
      const directory = yield* connect({ host: "h", location, leases: [mine.id] })
      expect(yield* Effect.flip(directory.remove({ sessionID: sibling.id }))).toMatchObject(unauthorized)
      yield* directory.remove({ sessionID: mine.id })
      expect(stopped).toEqual([mine.id])
      expect((yield* store.list()).sessions.map(({ id }) => id)).toEqual([sibling.id])
    }).pipe(Effect.scoped))

  it.live("refuses whoever is no session host, also its own fibers", () =>
    Effect.gen(function*() {
      const { coordinator } = yield* coordinated
      const directory = yield* coordinator.directory.use(SessionDirectory)
      expect(yield* Effect.flip(directory.create({ cwd: "/work/a", workspaceID: null }))).toMatchObject(unauthorized)
      expect(yield* Effect.flip(directory.refresh())).toMatchObject(unauthorized)
    }).pipe(Effect.scoped))

  it.live("knows who is connected, and who has gone", () =>
    Effect.gen(function*() {
      const { connect, coordinator } = yield* coordinated
      const identity: HostIdentity = { host: "h", location, leases: "all" }
      yield* Effect.scoped(Effect.gen(function*() {
        yield* connect(identity)
        expect(yield* coordinator.clients).toEqual([identity])
      }))
      yield* eventually(async () => (await Effect.runPromise(coordinator.clients)).length === 0)
      expect(yield* coordinator.clients).toEqual([])
    }).pipe(Effect.scoped))
})
