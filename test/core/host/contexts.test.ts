/** What contexts of hosts offer beyond tools and models: instances of services, clients, log, files and processes. */
import { Plugin } from "@bezel/core/host"
import { LocalService, RemoteService } from "@bezel/core/service"
import { temporaryDirectory, testCoordinator, testPresentation, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Logger, Queue, References, Schema, Scope, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { eventually } from "../../matrix/harness.ts"

class Terminal extends RemoteService.make("test.terminal")({
  state: { title: Schema.String },
  methods: { write: { payload: Schema.String, success: Schema.String } }
}) {}

type Spawned = (key: string, scope: Scope.Scope, sessionID?: string) => Effect.Effect<Exit.Exit<void, unknown>>

/** A plugin that spawns terminals for the test, in any scope. */
const terminals = () => {
  let spawned: Spawned = () => Effect.die(new Error("not set up"))
  const plugin = Plugin.define({
    id: "test.terminals",
    session: (ctx) =>
      Effect.gen(function*() {
        const spawn = yield* ctx.provideMany(Terminal)
        const title = yield* ctx.state(Schema.String, "shell")
        spawned = (key, scope, sessionID) =>
          spawn(
            key,
            { title, write: (text) => Effect.succeed(`${key}: ${text}`) },
            sessionID === undefined ? {} : { sessionID }
          ).pipe(Scope.provide(scope), Effect.exit)
      })
  })
  return { plugin, spawn: (...input: Parameters<Spawned>) => Effect.suspend(() => spawned(...input)) }
}

/** Notes whom it observes, from when to when. */
const observer = (log: Array<string>) =>
  Plugin.define({
    id: "test.observer",
    session: (ctx) =>
      ctx.observe(Terminal, (terminal, key) =>
        Effect.gen(function*() {
          log.push(`${key} opens as ${terminal.title.value}, ${yield* terminal.write("hi")}`)
          yield* Effect.addFinalizer(() => Effect.sync(() => log.push(`${key} closes`)))
          return yield* Effect.never
        }))
  })

describe("instances of a service in a session host", () => {
  it.live("are observed by other plugins as they are, and by clients as facades, for as long as their scope is open", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const { plugin, spawn } = terminals()
      const host = yield* testSessionHost([observer(log), plugin])
      const scope = yield* Scope.make()
      expect(Exit.isSuccess(yield* spawn("one", scope))).toBe(true)
      yield* eventually(() => log.length === 1)
      const seen = yield* Queue.unbounded<string>()
      yield* testPresentation(host, {
        view: (ctx) =>
          ctx.observe(Terminal, (terminal, key) =>
            Effect.gen(function*() {
              yield* Queue.offer(seen, yield* terminal.write("there"))
              yield* Effect.addFinalizer(() => Queue.offer(seen, `${key} is gone`))
              return yield* Effect.never
            }))
      })
      expect(yield* Queue.take(seen)).toBe("one: there")
      yield* Scope.close(scope, Exit.void)
      expect(yield* Queue.take(seen)).toBe("one is gone")
      yield* eventually(() => log.length === 2)
      expect(log).toEqual(["one opens as shell, one: hi", "one closes"])
    }).pipe(Effect.scoped))

  it.live("are there once per key, and a key that is free again gives another instance", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const { plugin, spawn } = terminals()
      yield* testSessionHost([plugin, observer(log)])
      const first = yield* Scope.make()
      yield* spawn("one", first)
      const refused = yield* spawn("one", yield* Scope.make())
      expect(JSON.stringify(refused)).toContain("has an instance with key")
      yield* eventually(() => log.length === 1)
      yield* Scope.close(first, Exit.void)
      yield* spawn("one", yield* Scope.make())
      yield* eventually(() => log.length === 3)
      expect(log.map((line) => line.split(",")[0])).toEqual(["one opens as shell", "one closes", "one opens as shell"])
    }).pipe(Effect.scoped))

  it.live("may be of a session, and then only its clients see them", () =>
    Effect.gen(function*() {
      const { plugin, spawn } = terminals()
      const host = yield* testSessionHost([plugin])
      const [mine, other] = [yield* host.session.create(), yield* host.session.create()]
      yield* spawn("one", yield* Scope.make(), mine.id)
      const within = yield* (yield* host.connect(mine.id)).use(Terminal, { key: "one" })
      yield* within.ready
      expect(yield* within.write("x")).toBe("one: x")
      const outside = yield* (yield* host.connect(other.id)).use(Terminal, { key: "one" })
      expect(yield* Effect.flip(outside.write("x"))).toMatchObject({ code: "unavailable" })
    }).pipe(Effect.scoped))

  it.live("are of one plugin: another that wants to have some fails, by both names", () =>
    Effect.gen(function*() {
      const other = Plugin.define({ id: "test.other", session: (ctx) => Effect.asVoid(ctx.provideMany(Terminal)) })
      const host = yield* testSessionHost([terminals().plugin, other])
      const status = (yield* host.plugins).find(({ id }) => id === "test.other")
      expect(status?.error).toContain('service "test.terminal" is there already, from plugin test.terminals')
    }).pipe(Effect.scoped))
})

describe("a session facet", () => {
  it.live("knows who is connected, and is told who comes and goes", () =>
    Effect.gen(function*() {
      const changes = yield* Queue.unbounded<string>()
      const listening = yield* Deferred.make<Effect.Effect<ReadonlyArray<{ readonly label: string }>>>()
      const host = yield* testSessionHost([
        Plugin.define({
          id: "test.presence",
          session: (ctx) =>
            ctx.onActivate(Effect.gen(function*() {
              yield* Effect.forkScoped(
                Stream.runForEach(
                  ctx.clients.changes,
                  ({ client, type }) => Queue.offer(changes, `${client.label} ${type}`)
                ),
                { startImmediately: true }
              )
              yield* Deferred.succeed(listening, ctx.clients.list)
            }))
        })
      ])
      const list = yield* Deferred.await(listening)
      const scope = yield* Scope.make()
      yield* Scope.provide(host.connect(), scope)
      expect(yield* Queue.take(changes)).toBe("test connected")
      expect((yield* list).map(({ label }) => label)).toEqual(["test"])
      yield* Scope.close(scope, Exit.void)
      expect(yield* Queue.take(changes)).toBe("test disconnected")
      expect(yield* list).toEqual([])
    }).pipe(Effect.scoped))

  it.live("sees files from its folder, watched too, whatever the process's working directory is", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      writeFileSync(join(directory, "note.txt"), "here")
      const read = yield* Deferred.make<string>()
      const changed = yield* Queue.unbounded<string>()
      const watching = yield* Deferred.make<void>()
      yield* testSessionHost([
        Plugin.define({
          id: "test.files",
          session: (ctx) =>
            ctx.onActivate(Effect.gen(function*() {
              const files = yield* ctx.filesystem
              yield* Deferred.succeed(read, yield* files.readFileString("note.txt"))
              yield* files.makeDirectory("watched")
              yield* Effect.forkScoped(
                Stream.runForEach(files.watch("watched"), (event) => Queue.offer(changed, event.path)),
                { startImmediately: true }
              )
              yield* Deferred.succeed(watching, undefined)
            }))
        })
      ], { directory })
      expect(yield* Deferred.await(read)).toBe("here")
      yield* Deferred.await(watching)
      // A watch of the system begins a moment after it was asked for.
      let writes = 0
      yield* eventually(() => {
        writeFileSync(join(directory, "watched", "new.txt"), String(++writes))
        return Queue.sizeUnsafe(changed) > 0
      })
      expect(yield* Queue.take(changed)).toContain("new.txt")
    }).pipe(Effect.scoped))

  it.live("starts processes in its folder that end with it, and with them what they have started", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      const scope = yield* Scope.make()
      const out = yield* Deferred.make<string>()
      yield* Scope.provide(
        testSessionHost([
          Plugin.define({
            id: "test.processes",
            session: (ctx) =>
              ctx.onActivate(Effect.gen(function*() {
                yield* ctx.process.spawn(
                  ChildProcess.make("sh", ["-c", "sleep 300 & echo $! > child.pid; wait"])
                )
                const said = yield* ctx.process.spawn(ChildProcess.make("sh", ["-c", "echo up; pwd"]))
                yield* Deferred.succeed(out, yield* Stream.mkString(Stream.decodeText(said.stdout)))
              }))
          })
        ], { directory }),
        scope
      )
      expect((yield* Deferred.await(out)).split("\n")).toEqual(["up", directory, ""])
      const file = join(directory, "child.pid")
      yield* eventually(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"))
      const child = Number(readFileSync(file, "utf8"))
      expect(isAlive(child)).toBe(true)
      yield* Scope.close(scope, Exit.void)
      yield* eventually(() => !isAlive(child))
    }).pipe(Effect.scoped))
})

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A process that nobody has waited for is dead all the same.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

describe("the log of a context", () => {
  it.live("says which plugin of which host a line is from, in every kind of host", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ fiber, logLevel, message }) => {
        const { annotations: _, ...rest } = { annotations: null }
        const fields = fiber.getRef(References.CurrentLogAnnotations)
        if (fields["plugin"] !== "test.log") return rest
        lines.push(`${logLevel} ${fields["host"]} ${String(message)} ${fields["why"] ?? "-"}`)
        return rest
      })
      yield* Effect.gen(function*() {
        yield* testCoordinator([
          Plugin.define({
            id: "test.log",
            coordinator: (ctx) => ctx.log.warning("from the coordinator", { why: "it can" })
          })
        ])
        const host = yield* testSessionHost([
          Plugin.define({ id: "test.log", session: (ctx) => ctx.log.error("from the session host") })
        ])
        yield* testPresentation(host, { "test.log": (ctx) => ctx.log.info("from the presentation") })
      }).pipe(Effect.provide(Logger.layer([logger])))
      expect(lines).toEqual([
        "Warn coordinator from the coordinator it can",
        "Error session from the session host -",
        "Info presentation from the presentation -"
      ])
    }).pipe(Effect.scoped))
})

describe("a presentation", () => {
  const Theme = LocalService.make<{ readonly color: string }>("test.theme")

  it.live("has services of its own between its facets, which declare, order and miss them as anywhere", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([])
      const used = yield* Deferred.make<string>()
      yield* testPresentation(host, {
        provider: (ctx) => ctx.provide(Theme, { color: "green" }),
        user: (ctx) =>
          Effect.flatMap(
            ctx.use(Theme),
            (theme) => ctx.onActivate(Effect.suspend(() => Deferred.succeed(used, theme.color)))
          )
      })
      expect(yield* Deferred.await(used)).toBe("green")
      const missing = yield* Effect.flip(testPresentation(host, { user: (ctx) => Effect.asVoid(ctx.use(Theme)) }))
      expect(missing.message).toContain('uses service "test.theme", which no loaded plugin provides')
    }).pipe(Effect.scoped))
})
