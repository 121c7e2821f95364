/** What each transport promises by itself: framing, limits, files, threads, both directions, and what peers tell each other. */
import {
  Connection,
  connectUnix,
  connectWebSocket,
  duplex,
  Endpoint,
  listenUnix,
  loopback,
  makeMemoryPair,
  once,
  portTransport,
  type Transport
} from "@bezel/core/rpc"
import {
  InteractionBroker,
  isStateCell,
  MutableRemoteState,
  RemoteService,
  ServiceDirectory,
  ServiceError
} from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { FrameSplitter } from "../../../packages/core/src/rpc/framing.ts"
import { makeServiceHost } from "../../../packages/core/src/testing/service.ts"
import { drained } from "../../eventually.ts"
import { connected, eventually, overUnixSocket, temporaryFolder, until } from "../../matrix/harness.ts"

class Echo extends RemoteService.make("test.echo")({
  state: { text: Schema.Struct({ text: Schema.String }) },
  methods: {
    echo: { payload: Schema.String, success: Schema.String },
    repeat: { payload: Schema.Int, success: Schema.String }
  }
}) {}

const provideEcho = (directory: ServiceDirectory["Service"]) =>
  Effect.gen(function*() {
    const text = yield* MutableRemoteState.make(Echo.contract.state.text, { text: "" })
    yield* directory.provide(Echo, {
      text,
      echo: (value) => Effect.succeed(value),
      repeat: (length) => Effect.succeed("x".repeat(length))
    })
    return text
  })

describe("frames", () => {
  it("are the same however a stream cuts them, in any script", () => {
    expect.hasAssertions()
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "binary", minLength: 1 }).map((text) => JSON.stringify(text)), { minLength: 1 }),
        fc.array(fc.nat(40)),
        (frames, cuts) => {
          const bytes = Buffer.from(frames.map((frame) => `${frame}\n`).join(""))
          const splitter = new FrameSplitter(1_000_000)
          const found: Array<string> = []
          let at = 0
          for (const cut of [...cuts, bytes.length]) {
            found.push(...splitter.push(bytes.subarray(at, at + cut)) ?? ["refused"])
            at += cut
            if (at >= bytes.length) break
          }
          expect(found).toEqual(frames.map((frame) => Buffer.from(frame).toString()))
        }
      )
    )
  })

  it("may be as long as the limit, in bytes, and no longer", () => {
    expect.assertions(4)
    expect(new FrameSplitter(6).push(Buffer.from(`"äö"\n`))).toEqual([`"äö"`])
    expect(new FrameSplitter(5).push(Buffer.from(`"äö"\n`))).toBeNull()
    expect(new FrameSplitter(5).push(Buffer.from(`"no end"`))).toBeNull()
    expect(new FrameSplitter(5).push(Buffer.from(`1\n"äö"\n`))).toBeNull()
  })

  it.live("cost time in proportion to their bytes: 15 MiB in small pieces take no seconds", () =>
    Effect.gen(function*() {
      const host = yield* makeServiceHost()
      yield* provideEcho(host.directory)
      const client = yield* host.connect({ connect: yield* overUnixSocket.open(host.endpoint) })
      yield* connected(client)
      const echo = yield* client.use(Echo)
      const text = "x".repeat(15 * 1_048_576)
      const start = process.cpuUsage()
      expect((yield* echo.echo(text)).length).toBe(text.length)
      // Processor time, which a busy machine does not stretch; a third of a second on a slow one.
      const { system, user } = process.cpuUsage(start)
      expect((system + user) / 1_000).toBeLessThan(1_500)
    }))
})

describe("a frame over the limit", () => {
  const limited = (frameLimit: number) =>
    Effect.gen(function*() {
      const host = yield* makeServiceHost()
      const text = yield* provideEcho(host.directory)
      const path = join(yield* temporaryFolder, "host.sock")
      yield* listenUnix({ path, frameLimit, serve: host.endpoint.serve })
      const client = yield* host.connect({ connect: connectUnix(path, { frameLimit }) })
      yield* connected(client)
      return { client, text, path, host }
    })

  it.effect("is refused as overloaded at the caller, and the connection stays", () =>
    Effect.gen(function*() {
      const { client } = yield* limited(10_000)
      const echo = yield* client.use(Echo)
      expect(yield* Effect.flip(echo.echo("x".repeat(10_001)))).toMatchObject({
        code: "overloaded",
        message: expect.stringContaining("10000 bytes")
      })
      expect(yield* echo.echo("fine")).toBe("fine")
    }))

  it.effect("is answered as overloaded when it would be a result", () =>
    Effect.gen(function*() {
      const { client } = yield* limited(10_000)
      const echo = yield* client.use(Echo)
      expect(yield* Effect.flip(echo.repeat(20_000))).toMatchObject({ code: "overloaded" })
      expect((yield* echo.repeat(5_000)).length).toBe(5_000)
    }))

  it.effect("comes in parts when it is a state or a change of one, whatever text it is", () =>
    Effect.gen(function*() {
      const { client, text } = yield* limited(10_000)
      const large = `"\\😀é\u0001${String.fromCharCode(0xd83d)}`.repeat(4_000)
      yield* text.set({ text: large })
      const echo = yield* client.use(Echo)
      yield* echo.ready
      expect(echo.text.value).toEqual({ text: large })
      yield* text.set({ text: `${large}!` })
      yield* until(echo.text, (value) => value.text === `${large}!`)
      yield* text.set({ text: "small" })
      yield* until(echo.text, (value) => value.text === "small")
      // Nothing was lost on the way, as both sides count.
      const statuses: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(client.state.changes, ({ status }) => Effect.sync(() => statuses.push(status)))
      )
      yield* TestClock.adjust("10 seconds")
      yield* drained
      expect(yield* echo.echo("fine")).toBe("fine")
      expect(statuses).toEqual(["connected"])
    }))

  it.effect("is answered as overloaded when it would be a state of more than sixteen frames, and the rest goes on", () =>
    Effect.gen(function*() {
      const { client, text } = yield* limited(10_000)
      yield* text.set({ text: "x".repeat(160_001) })
      const echo = yield* client.use(Echo)
      expect(yield* Effect.flip(echo.ready)).toMatchObject({ code: "overloaded" })
      expect(yield* echo.echo("fine")).toBe("fine")
      // Nobody follows it for a client that is not sent it.
      yield* eventually(() => isStateCell(text) && text.feed.size === 0)
    }))

  it.effect("disconnects the peer that sends it, which is told why, and nobody else", () =>
    Effect.gen(function*() {
      const { client, host, path } = yield* limited(10_000)
      const rude = yield* host.connect({
        connect: connectUnix(path),
        retry: { first: "1 minute", longest: "1 minute" }
      })
      yield* connected(rude)
      const lost = yield* Effect.forkChild(Effect.flip((yield* rude.use(Echo)).echo("x".repeat(20_000))))
      expect(yield* Fiber.join(lost)).toMatchObject({ code: "disconnected" })
      const state = yield* until(rude.state, ({ status }) => status === "disconnected")
      expect(state.reason).toEqual({ code: "overloaded", message: "A frame may have 10000 bytes at most." })
      expect(yield* (yield* client.use(Echo)).echo("still here")).toBe("still here")
    }).pipe(Effect.provide(Logger.layer([]))))
})

describe("a unix socket", () => {
  it.effect("can be used by its owner only, and its file is gone afterwards", () =>
    Effect.gen(function*() {
      const path = join(yield* temporaryFolder, "deep", "host.sock")
      const scope = yield* Scope.make()
      yield* Scope.provide(listenUnix({ path, serve: () => Effect.never }), scope)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700)
      yield* Scope.close(scope, Exit.void)
      expect(existsSync(path)).toBe(false)
    }))

  it.effect("takes the place of one that a dead process left, and of no living one", () =>
    Effect.gen(function*() {
      const path = join(yield* temporaryFolder, "host.sock")
      const program = `require("net").createServer().listen(${
        JSON.stringify(path)
      }, () => process.kill(process.pid, 9))`
      spawnSync(process.execPath, ["-e", program])
      expect(statSync(path).isSocket()).toBe(true)
      yield* listenUnix({ path, serve: (end) => end.closed })
      yield* Effect.scoped(connectUnix(path))
      expect(yield* Effect.flip(listenUnix({ path, serve: () => Effect.never }))).toMatchObject({
        reason: "in-use",
        message: expect.stringContaining(path)
      })
    }))

  it.effect("deletes no file that is none", () =>
    Effect.gen(function*() {
      const path = join(yield* temporaryFolder, "notes.txt")
      writeFileSync(path, "precious")
      expect(yield* Effect.flip(listenUnix({ path, serve: () => Effect.never }))).toMatchObject({ reason: "in-use" })
      expect(readFileSync(path, "utf8")).toBe("precious")
    }))

  it.effect("says which path is too long, or has nobody behind it", () =>
    Effect.gen(function*() {
      const long = join("/tmp", "x".repeat(200))
      expect(yield* Effect.flip(listenUnix({ path: long, serve: () => Effect.never }))).toMatchObject({
        reason: "path",
        message: expect.stringContaining("103 bytes")
      })
      expect(yield* Effect.flip(connectUnix("/tmp/nobody-listens-here.sock"))).toMatchObject({ code: "disconnected" })
    }).pipe(Effect.scoped))

  it.effect("is closed with its host, and clients find the next one", () =>
    Effect.gen(function*() {
      const path = join(yield* temporaryFolder, "host.sock")
      const host = yield* makeServiceHost()
      yield* provideEcho(host.directory)
      const first = yield* Scope.make()
      yield* Scope.provide(listenUnix({ path, serve: host.endpoint.serve }), first)
      const client = yield* host.connect({ connect: connectUnix(path), retry: { first: 0, longest: 0 } })
      yield* connected(client)
      yield* Scope.close(first, Exit.void)
      yield* until(client.state, ({ reason, status }) => status === "disconnected" && reason !== undefined)
      yield* listenUnix({ path, serve: host.endpoint.serve })
      yield* connected(client)
      expect(yield* (yield* client.use(Echo)).echo("again")).toBe("again")
    }))
})

describe("a WebSocket", () => {
  it.effect("that nobody answers is disconnected, without the query of its address", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(connectWebSocket("ws://user:pw@127.0.0.1:9/rpc?token=sk-canary"))
      expect(error).toMatchObject({ code: "disconnected" })
      expect(error.message).not.toMatch(/canary|pw/)
    }).pipe(Effect.scoped))
})

describe("a worker thread", () => {
  it.live("serves its services over its port, and ends with it", () =>
    Effect.gen(function*() {
      const worker = new Worker(new URL("worker-host.ts", import.meta.url))
      const client = yield* Connection.make({
        connect: once(portTransport(worker)),
        label: "test",
        retry: { first: 0, longest: 0 }
      })
      yield* connected(client)
      const echo = yield* client.use(Echo)
      expect(yield* echo.echo("from a thread")).toBe("from a thread")
      yield* Effect.promise(() => worker.terminate())
      yield* until(client.state, ({ status }) => status !== "connected")
      expect(yield* Effect.flip(echo.echo("late"))).toMatchObject({ code: "disconnected" })
    }))
})

describe("a host whose process stands still", () => {
  class Blocking extends RemoteService.make("test.echo")({
    methods: { echo: { payload: Schema.String, success: Schema.String }, block: { payload: Schema.Finite } }
  }) {}

  it.live(
    "for longer than ten seconds is not taken for dead: what was asked meanwhile is answered, over the same connection",
    () =>
      Effect.gen(function*() {
        const path = join(yield* temporaryFolder, "host.sock")
        const worker = yield* Effect.acquireRelease(
          Effect.sync(() => new Worker(new URL("worker-host.ts", import.meta.url), { workerData: path })),
          (worker) => Effect.promise(() => worker.terminate())
        )
        yield* Effect.promise(() => new Promise((listening) => worker.once("message", listening)))
        // Checked all the while, so that what is not answered would be missed.
        const client = yield* Connection.make({ connect: connectUnix(path), label: "test", check: "2 seconds" })
        yield* connected(client)
        const statuses: Array<string> = []
        yield* Effect.forkScoped(
          Stream.runForEach(client.state.changes, ({ status }) => Effect.sync(() => statuses.push(status)))
        )
        const blocking = yield* client.use(Blocking)
        const started = performance.now()
        const blocked = yield* Effect.forkScoped(blocking.block(11_000), { startImmediately: true })
        const asked = yield* Effect.forkScoped(blocking.echo("meanwhile"), { startImmediately: true })
        yield* Fiber.join(blocked)
        expect(yield* Fiber.join(asked)).toBe("meanwhile")
        expect(performance.now() - started).toBeGreaterThan(10_900)
        expect(yield* blocking.echo("later")).toBe("later")
        expect(statuses).toEqual(["connected"])
      }).pipe(Effect.scoped),
    40_000
  )
})

describe("one transport in both directions", () => {
  class Caller extends RemoteService.make("test.caller")({ methods: { name: { success: Schema.String }, wait: {} } }) {}

  const peers = (transports: readonly [Transport, Transport]) =>
    Effect.gen(function*() {
      const client = yield* makeServiceHost()
      const host = yield* makeServiceHost()
      yield* provideEcho(host.directory)
      const half = duplex(transports[1])
      yield* Effect.forkScoped(host.endpoint.serve(half.host))
      const toClient = yield* Connection.make({ connect: once(half.client), label: "host" })
      const toHost = yield* Connection.make({
        connect: once(transports[0]),
        label: "client",
        serve: client.endpoint
      })
      yield* Effect.all([connected(toClient), connected(toHost)])
      return { client, host, toClient, toHost }
    })

  it.effect("lets a host call what its client provides, while the client calls it", () =>
    Effect.gen(function*() {
      const { client, toClient, toHost } = yield* peers(makeMemoryPair())
      yield* client.directory.provide(Caller, { name: () => Effect.succeed("the client"), wait: () => Effect.never })
      const [answer, name] = yield* Effect.all([
        Effect.flatMap(toHost.use(Echo), (echo) => echo.echo("hello")),
        Effect.flatMap(toClient.use(Caller), (caller) => caller.name())
      ], { concurrency: 2 })
      expect([answer, name]).toEqual(["hello", "the client"])
    }))

  it.effect("carries interruption in the direction of the host's call too", () =>
    Effect.gen(function*() {
      const { client, toClient } = yield* peers(makeMemoryPair())
      const entered = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      yield* client.directory.provide(Caller, {
        name: () => Effect.succeed(""),
        wait: () =>
          Effect.andThen(Deferred.succeed(entered, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
          )
      })
      const call = yield* Effect.forkChild((yield* toClient.use(Caller)).wait())
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(call)
      yield* Deferred.await(interrupted)
      expect(toClient.state.value.status).toBe("connected")
    }))

  it.effect("ends both directions at once", () =>
    Effect.gen(function*() {
      const { client, toClient, toHost } = yield* peers(makeMemoryPair())
      yield* client.directory.provide(Caller, { name: () => Effect.succeed(""), wait: () => Effect.never })
      const call = yield* Effect.forkChild(Effect.flip((yield* toClient.use(Caller)).wait()))
      yield* Effect.yieldNow
      yield* toHost.drop
      expect(yield* Fiber.join(call)).toMatchObject({ code: "disconnected" })
    }))
})

describe("a handshake", () => {
  class Newer extends RemoteService.make("test.versioned")({ version: 2, methods: { run: { success: Schema.Int } } }) {}
  class Older extends RemoteService.make("test.versioned")({ methods: { run: { success: Schema.Int } } }) {}

  it.effect("reports contracts and plugins that the two sides have in different versions, and goes on", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make((entry) => {
        logged.push(String(entry.message))
      })
      yield* Effect.gen(function*() {
        const host = yield* makeServiceHost({
          manifest: Effect.succeed([
            { id: "acme.review", version: "2.0.0" },
            { id: "acme.same", version: "1.0.0" },
            { id: "only.here" }
          ])
        })
        yield* host.directory.provide(Newer, { run: () => Effect.succeed(2) })
        const client = yield* host.connect({
          peer: "the session host",
          manifest: Effect.succeed([
            { id: "acme.review", version: "1.5.0" },
            { id: "acme.same", version: "1.0.0" },
            { id: "only.there" }
          ])
        })
        yield* connected(client)
        const older = yield* client.use(Older)
        expect(yield* older.run()).toBe(2)
        const state = yield* until(client.state, ({ mismatches }) => mismatches?.length === 2)
        expect(state.mismatches).toEqual([
          { kind: "plugin", id: "acme.review", here: "1.5.0", there: "2.0.0" },
          { kind: "contract", id: "test.versioned", here: "1", there: "2" }
        ])
        const plugin = (here: string, there: string, peer: string) =>
          `Plugin acme.review has version ${here} here and ${there} on the side of ${peer}: restart both, or install one ` +
          "version."
        expect(logged.sort()).toEqual([
          plugin("1.5.0", "2.0.0", "the session host"),
          plugin("2.0.0", "1.5.0", 'the client "test"'),
          "The contract of service test.versioned has version 1 here and 2 on the side of the session host: update the " +
          "older side."
        ].sort())
      }).pipe(Effect.provide(Logger.layer([logger])))
    }))

  it.effect("compares again with each host that it comes back to", () =>
    Effect.gen(function*() {
      const hosts = [yield* makeServiceHost(), yield* makeServiceHost()] as const
      yield* hosts[0].directory.provide(Older, { run: () => Effect.succeed(1) })
      yield* hosts[1].directory.provide(Newer, { run: () => Effect.succeed(2) })
      let now = 0
      const client = yield* hosts[0].connect({
        connect: Effect.suspend(() => loopback(hosts[now === 0 ? 0 : 1].endpoint)),
        retry: { first: 0, longest: 0 }
      })
      yield* connected(client)
      const older = yield* client.use(Older)
      expect(yield* older.run()).toBe(1)
      expect(client.state.value).toEqual({ status: "connected" })
      now = 1
      yield* client.drop
      const state = yield* until(client.state, ({ mismatches }) => mismatches !== undefined)
      expect(state.mismatches).toEqual([{ kind: "contract", id: "test.versioned", here: "1", there: "2" }])
      now = 0
      yield* client.drop
      yield* until(client.state, ({ mismatches, status }) => status === "connected" && mismatches === undefined)
      expect(yield* older.run()).toBe(1)
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("refuses a client of another protocol in words", () =>
    Effect.gen(function*() {
      const host = yield* makeServiceHost()
      const [client, server] = makeMemoryPair()
      yield* Effect.forkScoped(host.endpoint.serve(server))
      const answers: Array<string> = []
      yield* Effect.forkScoped(client.run((frame) => Effect.sync(() => answers.push(frame))))
      yield* client.send(
        JSON.stringify({
          _tag: "Request",
          id: "1",
          tag: "control",
          payload: { type: "hello", label: "", protocol: 99 },
          headers: []
        })
      )
      yield* eventually(() => answers.length === 1)
      expect(answers[0]).toContain("speaks version 1 of the protocol and the client version 99")
    }))

  it.effect("that a host refuses is told in the state of the connection", () =>
    Effect.gen(function*() {
      const refuse = Effect.fail(new ServiceError({ code: "unauthorized", message: "This token is not valid here." }))
      const client = yield* Connection.make({ connect: refuse, label: "test" })
      const state = yield* until(client.state, ({ status }) => status === "disconnected")
      expect(state.reason).toEqual({ code: "unauthorized", message: "This token is not valid here." })
    }))
})

describe("a raw client", () => {
  it.effect("that closes its side before it reads takes nothing with it", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const path = join(folder, "host.sock")
      const endpoint = yield* Endpoint.make().pipe(
        Effect.provideServiceEffect(ServiceDirectory, ServiceDirectory.make),
        Effect.provideServiceEffect(InteractionBroker, InteractionBroker.make)
      )
      yield* listenUnix({ path, serve: endpoint.serve })
      const socket = connect(path)
      socket.end(`{"_tag":"Request","id":"1","tag":"control","payload":{"type":"catalogue"},"headers":[]}\n{"half`)
      yield* Effect.callback<void>((resume) => {
        socket.resume().once("close", () => resume(Effect.void))
      })
      yield* eventually(() => Effect.runSync(endpoint.clients).length === 0)
      expect(yield* endpoint.clients).toEqual([])
    }))
})
