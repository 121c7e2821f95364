/** Session hosts in processes of their own: real processes, sockets and files. */
import { Conversation, Coordinator, type Fleet, Plugin } from "@bezel/core/host"
import { connectUnix } from "@bezel/core/rpc"
import { SessionStore } from "@bezel/core/session"
import { Settings } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { emptySettings, temporaryDirectory } from "@bezel/core/testing"
import { SessionDirectory, sessionDirectoryPlugin, SessionPicker } from "@bezel/plugins/session-directory"
import { Placement } from "@bezel/server"
import { processPlacement, type ProcessPlacementOptions } from "@bezel/server/process"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Scope, Stream } from "effect"
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { isSameProcess, membersOf } from "../../packages/server/src/process/process-table.ts"

const program = join(import.meta.dirname, "host-program.ts")

const until = <A>(changes: Stream.Stream<A>, predicate: (value: A) => boolean) =>
  Effect.timeout(Stream.runHead(Stream.filter(changes, predicate)), "10 seconds")

const eventually = (what: string, predicate: () => boolean) =>
  Effect.gen(function*() {
    const giveUp = performance.now() + 10_000
    while (!predicate()) {
      if (performance.now() > giveUp) return yield* Effect.die(new Error(`not within 10 s: ${what}`))
      yield* Effect.sleep(10)
    }
  })

const isAlive = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    return !/^[ZX]$/.test(stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3))
  } catch {
    return false
  }
}

/** A coordinator over folders of its own, and what its facets get. */
const deployment = (
  mode: string,
  options: Partial<ProcessPlacementOptions> = {},
  folder: Effect.Effect<string, never, Scope.Scope> = temporaryDirectory
) =>
  Effect.gen(function*() {
    const root = yield* folder
    let fleet: Fleet | null = null
    const watching = Plugin.define({
      id: "test.watching",
      coordinator: (ctx) =>
        Effect.sync(() => {
          fleet = ctx.fleet
        })
    })
    const data = join(root, "data")
    const work = join(root, "work")
    for (const path of [data, work]) mkdirSync(path, { recursive: true })
    const stored = SessionStore.layer({ directory: data, version: "test" }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory: data })),
      Layer.merge(Layer.succeed(
        Settings,
        Settings.of({
          user: Effect.succeed(emptySettings),
          forLocation: () => Effect.succeed(emptySettings),
          keys: []
        })
      ))
    )
    const context = yield* Layer.build(
      processPlacement({
        command: [process.execPath, program],
        state: join(root, "state"),
        plugins: () => Effect.succeed(Plugin.sources("coordinator", [sessionDirectoryPlugin, watching])),
        options: { data, mode },
        ...options
      }).pipe(Layer.provideMerge(stored))
    )
    const coordinator = Context.get(context, Coordinator)
    return {
      root,
      data,
      work,
      store: Context.get(context, SessionStore),
      coordinator,
      fleet: (): Fleet => {
        if (fleet === null) throw new Error("the coordinator has no facet")
        return fleet
      },
      placement: Context.get(context, Placement)
    }
  })

/** What runs of the one host of a folder, killed with the scope whatever happens. */
const treeOf = (root: string) =>
  Effect.gen(function*() {
    const folder = join(root, "state/run/hosts")
    const mark = (readdirSync(folder)[0] ?? "").replace(/\.json$/, "")
    yield* eventually("all of it runs", () => membersOf(mark, null).length >= 3)
    const members = membersOf(mark, null)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const member of members) if (isSameProcess(member)) process.kill(member.pid, "SIGKILL")
      })
    )
    return members.map(({ pid }) => pid)
  })

const pidOf = (root: string): number => {
  const folder = join(root, "state/run/hosts")
  const [name = ""] = readdirSync(folder)
  return JSON.parse(readFileSync(join(folder, name), "utf8")).process?.pid ?? 0
}

describe("Placement.process", { timeout: 30_000 }, () => {
  it.live("answers prompts from a process of its own, over sockets that only this user can open", () =>
    Effect.gen(function*() {
      const { placement, root, store, work } = yield* deployment("plain")
      const host = yield* placement.place(work)
      const { id } = yield* host.session.create({ title: "a talk" })
      const { inputID } = yield* host.session.prompt({ sessionID: id, prompt: { text: "hi" } })
      expect(yield* host.session.wait(id, inputID)).toMatchObject({ status: "done", text: "hello" })
      expect(yield* host.session.finalText(id)).toBe("hello")
      expect((yield* store.messages(id)).messages.length).toBeGreaterThan(1)
      expect((yield* host.plugins).map((plugin) => plugin.state)).toEqual(["loaded", "loaded"])
      const pid = pidOf(root)
      expect(pid).not.toBe(process.pid)
      expect(isAlive(pid)).toBe(true)
      const run = join(root, "state/run")
      const sockets = readdirSync(run).filter((name) => name.endsWith(".sock"))
      expect(sockets).toHaveLength(2)
      for (const name of sockets) expect(statSync(join(run, name)).mode & 0o777).toBe(0o600)
      expect(statSync(run).mode & 0o777).toBe(0o700)
    }).pipe(Effect.scoped))

  it.live("accepts a prompt without running it until it is resumed, and ends one that never was without beginning it", () =>
    Effect.gen(function*() {
      const { placement, store, work } = yield* deployment("plain")
      const { session } = yield* placement.place(work)
      const [resting, dropped, other] = [yield* session.create(), yield* session.create(), yield* session.create()]
      const said = (id: string) =>
        Effect.map(
          store.messages(id),
          ({ messages }) => messages.filter(({ kind }) => kind === "bezel.assistant").length
        )
      const text = { prompt: { text: "hi" }, resume: false, requestID: "once" }
      const { inputID } = yield* session.prompt({ ...text, sessionID: resting.id })
      expect(yield* session.prompt({ ...text, sessionID: resting.id })).toEqual({ inputID })
      const never = yield* session.prompt({ ...text, sessionID: dropped.id })
      // What the host does meanwhile takes as long as it would take it to answer.
      const { inputID: running } = yield* session.prompt({ sessionID: other.id, prompt: { text: "hi" } })
      expect(yield* session.wait(other.id, running)).toMatchObject({ status: "done" })
      expect([yield* said(resting.id), yield* said(dropped.id), yield* said(other.id)]).toEqual([0, 0, 1])
      const waiting = yield* Effect.forkChild(session.wait(resting.id, inputID))
      yield* session.configure(resting.id, { thinking: "low" })
      expect(yield* said(resting.id)).toBe(0)
      yield* session.resume(resting.id)
      expect(yield* Fiber.join(waiting)).toMatchObject({ status: "done", text: "hello again" })
      yield* session.interrupt(dropped.id)
      expect(yield* session.wait(dropped.id, never.inputID)).toMatchObject({ status: "unanswered", reason: "aborted" })
      expect(yield* said(dropped.id)).toBe(0)
    }).pipe(Effect.scoped))

  it.live("gives the host its secret in neither arguments nor environment, and takes it once", () =>
    Effect.gen(function*() {
      const { coordinator, data, placement, work } = yield* deployment("tell")
      const host = yield* placement.place(work)
      const told = JSON.parse(readFileSync(join(data, "told"), "utf8"))
      expect(told.isShown).toBe(false)
      const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
      yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
      expect(yield* coordinator.clients).toEqual([{ host: work, location: host.location, leases: "all" }])
      // Who knows the socket and no secret, or one that has been used, is sent away.
      for (const secret of ["guessed", told.secret]) {
        const transport = yield* connectUnix(told.coordinator)
        transport.post(JSON.stringify({ _tag: "Admit", secret }))
        const frames: Array<string> = []
        yield* transport.run((frame) => {
          frames.push(frame)
          return null
        })
        expect(frames.map((frame) => JSON.parse(frame).code)).toEqual(["unauthorized"])
      }
      expect(yield* coordinator.clients).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("gives a host another secret over the inherited descriptor where the next one was lost", () =>
    Effect.gen(function*() {
      const { coordinator, placement, work } = yield* deployment("spent")
      const host = yield* placement.place(work)
      const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
      yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
      expect(yield* coordinator.clients).toEqual([{ host: work, location: host.location, leases: "all" }])
    }).pipe(Effect.scoped))

  it.live("shows sessions through coordinator, host process and client, and creates them there", () =>
    Effect.gen(function*() {
      const { placement, store, work } = yield* deployment("plain")
      const host = yield* placement.place(work)
      const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
      yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
      const { sessionID } = yield* picker.create({ title: "from far" })
      expect(yield* store.get(sessionID)).toMatchObject({ title: "from far", location: { directory: work } })
      yield* until(picker.state.changes, ({ sessions }) => sessions[0]?.title === "from far")
      yield* host.session.prompt({ sessionID, prompt: { text: "hi" } })
      yield* until(picker.state.changes, ({ sessions }) => sessions[0]?.status === "active")
      yield* until(picker.state.changes, ({ sessions }) => sessions[0]?.status === "idle")
    }).pipe(Effect.scoped))

  it.live("starts a host that was killed again at the next demand, and its clients come back to it", () =>
    Effect.gen(function*() {
      const { placement, root, work } = yield* deployment("plain")
      const host = yield* placement.place(work)
      const { id } = yield* host.session.create()
      const connection = yield* host.connect({ label: "test", sessionID: id })
      const picker = yield* connection.use(SessionPicker)
      const before = pidOf(root)
      process.kill(before, "SIGKILL")
      yield* until(connection.state.changes, ({ status }) => status === "disconnected")
      expect(yield* Effect.flip(picker.refresh())).toMatchObject({ code: "disconnected" })
      yield* until(connection.state.changes, ({ status }) => status === "connected")
      const after = pidOf(root)
      expect(after).not.toBe(before)
      const { inputID } = yield* host.session.prompt({ sessionID: id, prompt: { text: "hi" } })
      expect(yield* host.session.wait(id, inputID)).toMatchObject({ text: "hello" })
      expect(connection.session.value).toBe(id)
    }).pipe(Effect.scoped))

  it.live("leaves a host that dies three times within a minute failed, with the end of its log, until it is started by name", () =>
    Effect.gen(function*() {
      const { fleet, placement, store, work } = yield* deployment("crash", { supervision: { firstDelayMillis: 1 } })
      const { start, status } = fleet().processes
      const deaths: Array<string> = []
      for (let attempt = 0; attempt < 4; attempt++) {
        deaths.push((yield* Effect.flip(Effect.scoped(placement.place(work)))).message)
      }
      expect(deaths[0]).toContain("it ended with code 7. The end of its log:\nfirst words\nlast words")
      expect(deaths[3]).toContain("has died 3 times within a minute")
      expect(deaths[3]).toContain("first words\nlast words")
      expect(yield* status).toMatchObject([{ state: "failed", pid: null, location: { directory: work } }])
      // By name it gets another chance, and dies again.
      const { id } = yield* store.create({ location: { directory: work, workspaceID: null } })
      expect((yield* Effect.flip(start(id))).message).toContain("it ended with code 7")
      expect(yield* status).toMatchObject([{ state: "waiting" }])
    }).pipe(Effect.scoped))

  it.live("tells others that the sessions of a host that died have failed, until they are open again", () =>
    Effect.gen(function*() {
      const { coordinator, placement, root, work } = yield* deployment("plain")
      const host = yield* placement.place(work)
      const { state } = yield* coordinator.directory.use(SessionDirectory)
      const connection = yield* host.connect({ label: "test" })
      const picker = yield* connection.use(SessionPicker)
      yield* until(picker.state.changes, ({ upstream }) => upstream === "connected")
      const { sessionID } = yield* picker.create({})
      yield* connection.select(sessionID)
      yield* until(state.changes, ({ sessions }) => sessions[0]?.status === "idle")
      process.kill(pidOf(root), "SIGKILL")
      yield* until(state.changes, ({ sessions }) => sessions[0]?.status === "failed")
      yield* until(state.changes, ({ sessions }) => sessions[0]?.status === "idle")
      expect(connection.session.value).toBe(sessionID)
    }).pipe(Effect.scoped))

  it.live("puts its sockets elsewhere where the path of the state folder is too long for them", () =>
    Effect.gen(function*() {
      const root = yield* temporaryDirectory
      const state = join(root, "a-long-name-".repeat(9))
      const { placement, work } = yield* deployment("plain", { state }, Effect.succeed(root))
      const host = yield* placement.place(work)
      expect((yield* host.plugins).length).toBe(2)
    }).pipe(Effect.scoped))

  it.live("gives each session a process of its own, which serves no other", () =>
    Effect.gen(function*() {
      const { coordinator, placement, root, work } = yield* deployment("plain", { isolation: "session" })
      const host = yield* placement.place(work)
      const one = yield* host.session.create()
      const two = yield* host.session.create()
      const connection = yield* host.connect({ label: "test", sessionID: one.id })
      yield* host.connect({ label: "test", sessionID: two.id })
      expect(readdirSync(join(root, "state/run/hosts"))).toHaveLength(2)
      expect(yield* Effect.flip(connection.select(two.id))).toMatchObject({ code: "invalid_arguments" })
      yield* eventually("both are connected", () => Effect.runSync(coordinator.clients).length === 2)
      expect((yield* coordinator.clients).map(({ leases }) => leases).sort()).toEqual([[one.id], [two.id]].sort())
      const conversation = yield* connection.use(Conversation, { key: `${one.id}/c1` })
      yield* conversation.ready
      expect(conversation.view.value?.conversation.sessionID).toBe(one.id)
    }).pipe(Effect.scoped))

  it.live("kills a host that does not answer any more", () =>
    Effect.gen(function*() {
      const { placement, root, work } = yield* deployment("deaf", { times: { pingMillis: 100, silenceMillis: 600 } })
      const host = yield* placement.place(work)
      const connection = yield* host.connect({ label: "test" })
      const before = pidOf(root)
      yield* until(connection.state.changes, ({ status }) => status === "disconnected")
      yield* eventually("it is gone", () => !isAlive(before))
      expect(isAlive(before)).toBe(false)
    }).pipe(Effect.scoped))

  it.live("ends a host that nobody needs, in order", () =>
    Effect.gen(function*() {
      const { placement, root, work } = yield* deployment("plain", { idleTime: "200 millis" })
      yield* placement.place(work)
      const pid = pidOf(root)
      yield* eventually("it has ended", () => !isAlive(pid) && readdirSync(join(root, "state/run/hosts")).length === 0)
      const host = yield* placement.place(work)
      expect((yield* host.plugins).length).toBe(2)
    }).pipe(Effect.scoped))

  it.live("keeps a host for what goes on in the background of a session, and ends it after that was told", () =>
    Effect.gen(function*() {
      const { data, placement, root, work } = yield* deployment("waiting", { idleTime: "200 millis" })
      yield* placement.place(work)
      const pid = pidOf(root)
      yield* eventually("the model is told", () => existsSync(join(data, "woken")))
      yield* eventually("it has ended", () => !isAlive(pid))
      expect(existsSync(join(data, "woken"))).toBe(true)
    }).pipe(Effect.scoped))

  it.live("leaves nothing behind when it closes: no process of the whole tree, no socket, no record", () =>
    Effect.gen(function*() {
      const root = yield* temporaryDirectory
      const outer = yield* Effect.scope
      const members = yield* Effect.scoped(Effect.gen(function*() {
        const { placement, work } = yield* deployment("leaving", {}, Effect.succeed(root))
        yield* placement.place(work)
        return yield* Scope.provide(treeOf(root), outer)
      }))
      expect(members.length).toBeGreaterThanOrEqual(3)
      expect(members.filter(isAlive)).toEqual([])
      expect(readdirSync(join(root, "state/run"))).toEqual(["hosts"])
      expect(readdirSync(join(root, "state/run/hosts"))).toEqual([])
    }).pipe(Effect.scoped))

  it.live("lets the durable jobs of sessions go on when their host ends", () =>
    Effect.gen(function*() {
      const root = yield* temporaryDirectory
      const outer = yield* Effect.scope
      const host = yield* Effect.scoped(Effect.gen(function*() {
        const { data, placement, work } = yield* deployment("job", {}, Effect.succeed(root))
        yield* placement.place(work)
        const file = join(data, "jobs/job/pid")
        yield* eventually("the job runs", () => existsSync(file))
        const job = Number(readFileSync(file, "utf8").split(" ")[0])
        yield* Scope.addFinalizer(outer, Effect.sync(() => process.kill(-job, "SIGKILL")))
        return { pid: pidOf(root), job }
      }))
      expect([isAlive(host.pid), isAlive(host.job)]).toEqual([false, true])
    }).pipe(Effect.scoped))

  it.live("ends, at its next start, what a killed coordinator has left behind", () =>
    Effect.gen(function*() {
      const root = yield* temporaryDirectory
      const killed = spawn(process.execPath, [join(import.meta.dirname, "coordinator-program.ts"), root], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => killed.kill("SIGKILL")))
      yield* Effect.promise(() => new Promise((resolve) => killed.stdout.once("data", resolve)))
      const folder = join(root, "state/run/hosts")
      const members = yield* treeOf(root)
      // So that the host cannot notice that its coordinator is gone.
      process.kill(pidOf(root), "SIGSTOP")
      killed.kill("SIGKILL")
      yield* eventually("the coordinator is gone", () => killed.signalCode !== null)
      expect(members.every(isAlive)).toBe(true)
      yield* deployment("plain", {}, Effect.succeed(root))
      expect(members.filter(isAlive)).toEqual([])
      expect(readdirSync(folder)).toEqual([])
    }).pipe(Effect.scoped))

  it.live("leaves the hosts of another coordinator that lives alone", () =>
    Effect.gen(function*() {
      const root = yield* temporaryDirectory
      const first = yield* deployment("plain", {}, Effect.succeed(root))
      yield* first.placement.place(first.work)
      const pid = pidOf(root)
      yield* deployment("plain", {}, Effect.succeed(root))
      expect(isAlive(pid)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("a host ends itself when its coordinator is gone", () =>
    Effect.gen(function*() {
      const root = yield* temporaryDirectory
      const killed = spawn(process.execPath, [join(import.meta.dirname, "coordinator-program.ts"), root], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => killed.kill("SIGKILL")))
      yield* Effect.promise(() => new Promise((resolve) => killed.stdout.once("data", resolve)))
      const pid = pidOf(root)
      killed.kill("SIGKILL")
      yield* eventually("the host has ended", () => !isAlive(pid))
      expect(isAlive(pid)).toBe(false)
      yield* deployment("plain", {}, Effect.succeed(root))
    }).pipe(Effect.scoped))
})
