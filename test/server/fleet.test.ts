/** The fleet of a server, over each kind of placement: the same test for all. */
import type { ConversationView } from "@bezel/core/harness"
import { Conversation, conversationKey, type HostStatus } from "@bezel/core/host"
import { Connection, makeMemoryPair } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import { SessionPicker } from "@bezel/plugins/session-directory"
import type { FleetShape } from "@bezel/server/serve"
import { describe, expect, it } from "@effect/vitest"
import { Effect, PubSub, Queue, Stream } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { takeUpAfterDeaths } from "../../packages/server/src/serve/take-up.ts"
import { fleetOver, type Isolation } from "./deployment.ts"

const owner = { name: "owner", scope: "admin" } as const
const ann = { name: "ann", scope: "admin" } as const

/** A presentation as it comes from outside: its bytes go through the fleet. */
const presentation = (fleet: FleetShape, first: string, caller: typeof owner | typeof ann = owner) =>
  Effect.gen(function*() {
    const connection = yield* Connection.make({
      label: "test",
      firstSession: first,
      connect: (sessionID) =>
        Effect.gen(function*() {
          const [client, server] = makeMemoryPair()
          yield* Effect.forkScoped(fleet.relay(sessionID ?? first, server, caller))
          yield* Effect.addFinalizer(() => client.close)
          return client
        })
    })
    yield* until(connection.state.changes, ({ status }) => status === "connected")
    yield* connection.select(first)
    return connection
  })

const until = <A>(changes: Stream.Stream<A>, predicate: (value: A) => boolean) =>
  Effect.timeout(Stream.runHead(Stream.filter(changes, predicate)), "15 seconds")

describe.each<Isolation>(["none", "location", "session"])(
  "a fleet with isolation %s",
  { timeout: 60_000 },
  (isolation) => {
    it.live("answers prompts through the API of a session's place", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation)
        const { session } = yield* fleet.location(work)
        const { id } = yield* session.create({ title: "a talk" })
        expect(yield* fleet.records.get(id)).toMatchObject({ title: "a talk", location: { directory: work } })
        const api = yield* fleet.session(id)
        const { inputID } = yield* api.prompt({ sessionID: id, prompt: { text: "hi" } })
        expect(yield* api.wait(id, inputID)).toMatchObject({ status: "done", text: "hello" })
      }).pipe(Effect.scoped))

    it.live("lists what a place offers", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation)
        const place = yield* fleet.location(work)
        expect((yield* place.plugins).map(({ id }) => id)).toContain("bezel.session-directory")
        expect((yield* place.models).map(({ info }) => info.provider)).toEqual(["test"])
        expect(yield* place.tools).toEqual([])
        expect(yield* place.agents).toEqual([])
      }).pipe(Effect.scoped))

    it.live("has presentations from outside see and steer a session, all of them the same", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation)
        const { id } = yield* (yield* fleet.location(work)).session.create()
        const [one, two] = yield* Effect.all([presentation(fleet, id), presentation(fleet, id, ann)])
        const key = conversationKey(id, "c1")
        const [first, second] = yield* Effect.all([one.use(Conversation, { key }), two.use(Conversation, { key })])
        const { inputID } = yield* first.send({ text: "hi" })
        expect(yield* second.wait({ inputID })).toMatchObject({ status: "done", text: "hello" })
        yield* until(second.view.changes, ({ turn, entries }) => turn === null && entries.length === 2)
        yield* until(first.view.changes, ({ turn, entries }) => turn === null && entries.length === 2)
        expect(first.view.value).toEqual(second.view.value)
      }).pipe(Effect.scoped))

    it.live("shows the directory of sessions to a presentation from outside, and lets it go over to another session", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation)
        const { session } = yield* fleet.location(work)
        const [one, other] = yield* Effect.all([session.create({ title: "one" }), session.create({ title: "other" })])
        const connection = yield* presentation(fleet, one.id)
        const picker = yield* connection.use(SessionPicker)
        yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
        // Made beside the directory, as over HTTP: it is seen once somebody asks.
        yield* picker.refresh()
        yield* until(picker.state.changes, ({ sessions }) => sessions.length === 2)
        const seen: Array<string> = []
        yield* Effect.forkScoped(
          Stream.runForEach(connection.state.changes, ({ status }) => Effect.sync(() => seen.push(status)))
        )
        yield* connection.select(other.id)
        expect(connection.session.value).toBe(other.id)
        const conversation = yield* connection.use(Conversation, { key: conversationKey(other.id, "c1") })
        const { inputID } = yield* conversation.send({ text: "hi" })
        expect(yield* conversation.wait({ inputID })).toMatchObject({ status: "done" })
        expect(seen).not.toContain("disconnected")
      }).pipe(Effect.scoped))

    it.live("keeps showing a session when another one cannot be had, and says why", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation)
        const { id } = yield* (yield* fleet.location(work)).session.create()
        const connection = yield* presentation(fleet, id)
        const error = yield* Effect.flip(connection.select("ses_unknown"))
        expect(error).toBeInstanceOf(ServiceError)
        expect(error.message).toContain("ses_unknown")
        expect(connection.session.value).toBe(id)
        expect(connection.state.value.status).toBe("connected")
      }).pipe(Effect.scoped))

    it.live("deletes a session that was just used, once its host has closed it", () =>
      Effect.gen(function*() {
        const { fleet, work } = yield* fleetOver(isolation)
        const { id } = yield* (yield* fleet.location(work)).session.create()
        yield* Effect.scoped(
          Effect.flatMap(fleet.session(id), (session) =>
            Effect.flatMap(session.prompt({ sessionID: id, prompt: { text: "hi" } }), ({ inputID }) =>
              session.wait(id, inputID)))
        )
        yield* fleet.records.remove(id)
        expect(yield* Effect.flip(fleet.records.get(id))).toMatchObject({ _tag: "UnknownSession" })
      }).pipe(Effect.scoped))
  }
)

describe("a fleet of processes", { timeout: 60_000 }, () => {
  it.live("has presentations come back to a host that was killed while it worked, and its turn go on", () =>
    Effect.gen(function*() {
      const { fleet, hosts, work } = yield* fleetOver("location")
      const { id } = yield* (yield* fleet.location(work)).session.create()
      const connection = yield* presentation(fleet, id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
      const { inputID } = yield* conversation.send({ text: "hi" })
      for (const pid of hosts()) process.kill(pid, "SIGKILL")
      yield* until(connection.state.changes, ({ status }) => status === "disconnected")
      yield* until(connection.state.changes, ({ status }) => status === "connected")
      expect(yield* conversation.wait({ inputID })).toMatchObject({ status: "done" })
    }).pipe(Effect.scoped))
})

describe("a fleet with a process for each session", { timeout: 60_000 }, () => {
  it.live("keeps the session of a sub-agent where the one is that it works for", () =>
    Effect.gen(function*() {
      const { fleet, hosts, work } = yield* fleetOver("session")
      const { session } = yield* fleet.location(work)
      const parent = yield* session.create()
      const child = yield* session.create({ parentID: parent.id })
      for (const { id } of [parent, child]) {
        const { inputID } = yield* session.prompt({ sessionID: id, prompt: { text: "hi" } })
        expect(yield* session.wait(id, inputID)).toMatchObject({ status: "done" })
      }
      expect(hosts()).toHaveLength(1)
      const connection = yield* presentation(fleet, child.id)
      expect(connection.session.value).toBe(child.id)
    }).pipe(Effect.scoped))
})

describe("a fleet under load", { timeout: 120_000 }, () => {
  it.live("brings every presentation back to the same view when a host is killed while all its sessions work", () =>
    Effect.gen(function*() {
      const { fleet, hosts, work } = yield* fleetOver("location", "busy")
      const { session } = yield* fleet.location(work)
      const sessions = yield* Effect.replicateEffect(session.create(), 8)
      const shown = yield* Effect.forEach(sessions, ({ id }) =>
        Effect.gen(function*() {
          const key = conversationKey(id, "c1")
          const [one, two] = yield* Effect.all([presentation(fleet, id), presentation(fleet, id, ann)])
          return {
            id,
            one: yield* one.use(Conversation, { key }),
            two: yield* two.use(Conversation, { key })
          }
        }))
      const inputs = yield* Effect.forEach(shown, ({ one }) => one.send({ text: "hi" }), { concurrency: "unbounded" })
      const [host = 0] = hosts()
      process.kill(host, "SIGKILL")
      yield* Effect.forEach(shown, ({ id, one, two }, index) =>
        Effect.gen(function*() {
          const done = ({ entries, turn }: ConversationView) =>
            turn === null && entries.some(({ kind }) => kind === "bezel.assistant")
          yield* until(one.view.changes, done)
          yield* until(two.view.changes, done)
          expect(one.view.value).toEqual(two.view.value)
          expect(yield* one.wait({ inputID: inputs[index]?.inputID ?? "" })).toMatchObject({ status: "done" })
          // Sent once, answered once.
          const { messages } = yield* fleet.records.messages(id)
          const said = messages.filter(({ kind }) => kind === "bezel.user" || kind === "bezel.assistant")
          expect(said.map(({ kind }) => kind)).toEqual(["bezel.user", "bezel.assistant"])
        }), { concurrency: "unbounded" })
      expect(hosts()).not.toContain(host)
    }).pipe(Effect.scoped))
})

describe("the roll", () => {
  it.live("names the sessions whose work was cut off, and none that others have used or that were done", () =>
    Effect.gen(function*() {
      const { fleet, roll, work } = yield* fleetOver("none")
      const { session } = yield* fleet.location(work)
      const ids = (yield* Effect.all([session.create(), session.create(), session.create()])).map(({ id }) => id)
      const [cut = "", done = "", foreign = ""] = ids
      yield* roll.enter(cut)
      yield* roll.enter(done)
      for (const id of [cut, foreign]) yield* fleet.records.report(id, { status: "active" })
      expect((yield* roll.unfinished(fleet.records)).map(({ id }) => id)).toEqual([cut])
      yield* roll.retain([])
      expect(yield* roll.unfinished(fleet.records)).toEqual([])
    }).pipe(Effect.scoped))
})

describe("work that was cut off", () => {
  it.live("goes on when its host has died, that of its place alone; not when the host has died too often", () =>
    Effect.gen(function*() {
      const { fleet, roll, root, work } = yield* fleetOver("none")
      const other = join(root, "other")
      mkdirSync(other)
      const [here, there] = yield* Effect.all([fleet.location(work), fleet.location(other)])
      const [cut, rested] = yield* Effect.all([here.session.create(), here.session.create()])
      const elsewhere = yield* there.session.create()
      for (const { id } of [cut, rested, elsewhere]) yield* roll.enter(id)
      for (const { id } of [cut, elsewhere]) yield* fleet.records.report(id, { status: "active" })
      const changes = yield* PubSub.unbounded<HostStatus>()
      const resumed = yield* Queue.unbounded<string>()
      yield* Effect.forkScoped(
        takeUpAfterDeaths({
          records: fleet.records,
          processes: { changes: Stream.fromPubSub(changes) },
          session: (id) =>
            Effect.map(
              fleet.session(id),
              (session) => ({ ...session, resume: (id) => Effect.asVoid(Queue.offer(resumed, id)) })
            )
        }, roll),
        { startImmediately: true }
      )
      const status = (state: HostStatus["state"], directory: string): HostStatus => ({
        id: directory,
        location: { directory, workspaceID: null },
        sessionID: null,
        state,
        pid: null,
        error: null
      })
      for (const state of ["running", "failed", "stopped"] as const) yield* PubSub.publish(changes, status(state, work))
      yield* PubSub.publish(changes, status("waiting", work))
      yield* PubSub.publish(changes, status("waiting", other))
      expect([yield* Queue.take(resumed), yield* Queue.take(resumed)]).toEqual([cut.id, elsewhere.id])
      expect(yield* Queue.size(resumed)).toBe(0)
    }).pipe(Effect.scoped))
})
