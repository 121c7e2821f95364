/** The wire when things go wrong: real sockets, real processes, real time. */
import { type ConnectionShape, connectUnix, listenUnix } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import * as fc from "fast-check"
import { type ChildProcess, spawn } from "node:child_process"
import { connect } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { makeServiceHost } from "../../packages/core/src/testing/service.ts"
import { drained } from "../eventually.ts"
import { connected, eventually, temporaryFolder } from "../matrix/harness.ts"
import { Ledger } from "./wire-contract.ts"
import { provideLedger } from "./wire-ledger.ts"
import { type Fault, faultyProxy } from "./wire-proxy.ts"

const silent = Effect.provide(Logger.layer([]))
const quick = { retry: { first: 5, longest: 50 }, check: 30 } as const

const hostAt = (options: { readonly backlogLimit?: number } = {}) =>
  Effect.gen(function*() {
    const folder = yield* temporaryFolder
    const path = join(folder, "host.sock")
    const host = yield* makeServiceHost()
    const ledger = yield* provideLedger(host.directory)
    yield* listenUnix({ path, serve: host.endpoint.serve, ...options })
    const client = Effect.gen(function*() {
      const connection = yield* host.connect({ ...quick, connect: connectUnix(path) })
      yield* connected(connection)
      return { connection, ledger: yield* connection.use(Ledger) }
    })
    return { ...ledger, host, folder, path, client }
  })

/** A socket whose bytes are the test's own. */
const rawSocket = (path: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof connect>>((resume) => {
      const socket = connect(path)
      socket.on("error", () => {})
      socket.once("connect", () => resume(Effect.succeed(socket)))
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

setFlagsFromString("--expose-gc")
const collectGarbage = (): void => runInNewContext("gc")()

const request = (id: number, tag: string, payload: object) =>
  `${JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] })}\n`

const faults: ReadonlyArray<Fault> = (["drop", "cut", "delay", "double"] as const).flatMap((kind) =>
  (["to-host", "to-client"] as const).flatMap((direction) =>
    [0, 1, 2, 3, 5, 8].map((frame): Fault => ({ kind, direction, frame }))
  )
)

describe("a client behind a network that loses, cuts, delays or repeats a frame", () => {
  it.live.each(faults)(
    "settles its calls and shows the authority's value: $kind $direction $frame",
    (fault) =>
      Effect.gen(function*() {
        const { folder, host, ledger, path } = yield* hostAt()
        const through = join(folder, "proxy.sock")
        yield* faultyProxy(through, path, fault)
        const connection = yield* host.connect({ ...quick, connect: connectUnix(through) })
        const facade = yield* connection.use(Ledger)
        const outcomes: Array<string> = []
        for (let call = 0; call < 12; call++) {
          yield* connected(connection)
          outcomes.push(
            yield* Effect.match(facade.add(`entry ${call}`), {
              onFailure: (error) => error.code,
              onSuccess: () => "applied"
            })
          )
        }
        yield* eventually(() =>
          facade.ledger.status === "live" &&
          JSON.stringify(facade.ledger.value) === JSON.stringify(ledger.value)
        )
        expect(outcomes).toHaveLength(12)
        for (const outcome of outcomes) expect(["applied", "disconnected"]).toContain(outcome)
        // Whatever happened on the way, nothing was applied twice, and what was answered was applied.
        const { entries } = ledger.value
        expect(new Set(entries).size).toBe(entries.length)
        outcomes.forEach((outcome, call) => {
          if (outcome === "applied") expect(entries).toContain(`entry ${call}`)
        })
        if (fault.kind === "delay") expect(outcomes.every((outcome) => outcome === "applied")).toBe(true)
      }).pipe(silent)
  )
})

describe("a client that does not read", () => {
  it.live("keeps what waits for it bounded, and no other client notices", () =>
    Effect.gen(function*() {
      const { client, host, ledger, path } = yield* hostAt()
      const { ledger: other } = yield* client
      yield* other.ready
      const deaf = yield* rawSocket(path)
      deaf.pause()
      deaf.write(request(1, "watch", { type: "states", service: "test.ledger" }))
      yield* eventually(() => Effect.runSync(host.endpoint.clients).length === 2)
      collectGarbage()
      const before = process.memoryUsage().heapUsed
      const piece = "x".repeat(2_048)
      for (let update = 0; update < 100_000; update++) {
        yield* ledger.update((draft) => {
          draft.text = piece + update
        })
        if (update % 1_000 === 999) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      yield* eventually(() => other.ledger.value?.text === ledger.value.text)
      collectGarbage()
      // 200 MB were written; some 4 MB may wait for each client.
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(40_000_000)
      const received: Array<string> = []
      deaf.setEncoding("utf8").on("data", (text: string) => received.push(text))
      deaf.resume()
      deaf.write(`${JSON.stringify({ _tag: "Ack", requestId: 1 })}\n`)
      // What it missed is one snapshot of how it is now.
      yield* eventually(() => received.join("").includes(ledger.value.text))
      expect(received.join("").length).toBeLessThan(1_000_000)
    }), 60_000)

  it.live("but asks on and on is given up and told why, and no other client notices", () =>
    Effect.gen(function*() {
      const { client, host, path } = yield* hostAt({ backlogLimit: 500_000 })
      const { connection, ledger: other } = yield* client
      const deaf = yield* rawSocket(path)
      deaf.pause()
      const entry = "x".repeat(2_048)
      let id = 0
      yield* eventually(() => {
        for (let burst = 0; burst < 50; burst++) {
          deaf.write(request(id++, "call", { service: "test.ledger", member: "read", payload: null }))
          deaf.write(request(id++, "call", { service: "test.ledger", member: "add", payload: entry }))
        }
        return id > 200 && Effect.runSync(host.endpoint.clients).length === 1
      })
      const received: Array<string> = []
      deaf.setEncoding("utf8").on("data", (text: string) => received.push(text))
      deaf.resume()
      yield* eventually(() => deaf.closed)
      expect(received.join("").trimEnd().split("\n").at(-1)).toContain(`"_tag":"Goodbye","code":"overloaded"`)
      expect(connection.state.value.status).toBe("connected")
      expect((yield* other.read()).entries.length).toBeGreaterThan(0)
    }).pipe(silent), 30_000)
})

describe("a client that floods", () => {
  it.live("is answered or told overloaded, while another one is served", () =>
    Effect.gen(function*() {
      const { client, path } = yield* hostAt()
      const { ledger: other } = yield* client
      const flood = yield* rawSocket(path)
      let answers = 0
      let refused = 0
      flood.setEncoding("utf8").on("data", (text: string) => {
        answers += text.split("\n").length - 1
        refused += text.split("overloaded").length - 1
      })
      for (let id = 0; id < 3_000; id++) {
        flood.write(request(id, "call", { service: "test.ledger", member: "wait", payload: null }))
      }
      const start = performance.now()
      expect((yield* other.read()).entries).toEqual([])
      expect(performance.now() - start).toBeLessThan(5_000)
      yield* eventually(() => answers === 2_000)
      expect(refused).toBe(2_000)
    }).pipe(silent))
})

describe("a client that vanishes", () => {
  it.live("ends its calls and leaves nothing behind", () =>
    Effect.gen(function*() {
      const { client, host, interrupted, path } = yield* hostAt()
      yield* client
      const program = `const s = require("net").connect(${JSON.stringify(path)}, () => {
        s.write(${JSON.stringify(request(1, "call", { service: "test.ledger", member: "wait", payload: null }))})
        s.write(${JSON.stringify(request(2, "watch", { type: "states", service: "test.ledger" }))})
        s.once("data", () => process.kill(process.pid, "SIGKILL"))
      })`
      const child = spawn(process.execPath, ["-e", program])
      yield* Effect.callback<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
      })
      yield* eventually(() => interrupted() === 1 && Effect.runSync(host.endpoint.clients).length === 1)
      expect(interrupted()).toBe(1)
    }))
})

/** As many runs as a test suite has time for; `BEZEL_FUZZ_SECONDS` fuzzes for so long instead. */
const fuzzSeconds = Number(process.env["BEZEL_FUZZ_SECONDS"] ?? 0)
const fuzzing = fuzzSeconds > 0
  ? { numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: fuzzSeconds * 1_000, markInterruptAsFailure: false }
  : { numRuns: 200 }

describe("bytes that nobody would send", () => {
  it("disconnect at most who sent them", async () => {
    expect.hasAssertions()
    await Effect.gen(function*() {
      const { client, host, path } = yield* hostAt()
      const { ledger } = yield* client
      const valid = [
        request(1, "control", { type: "hello", label: "fuzz" }),
        request(2, "call", { service: "test.ledger", member: "read", payload: null }),
        request(3, "watch", { type: "states", service: "test.ledger" }),
        `{"_tag":"Ack","requestId":3}\n`,
        `{"_tag":"Interrupt","requestId":3}\n`,
        `{"_tag":"Eof"}\n`,
        `{"_tag":"Tally","sent":2}\n`,
        `{"_tag":"Goodbye","code":"internal","message":""}\n`
      ]
      const piece = fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...valid).map((text) => Buffer.from(text)) },
        { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
        {
          weight: 4,
          arbitrary: fc.tuple(fc.constantFrom(...valid), fc.nat(80), fc.uint8Array({ maxLength: 4 })).map(
            ([text, at, bytes]) =>
              Buffer.concat([Buffer.from(text.slice(0, at)), bytes, Buffer.from(text.slice(at + 1))])
          )
        },
        { weight: 1, arbitrary: fc.constant(Buffer.from("\n".repeat(50))) },
        {
          weight: 1,
          arbitrary: fc.integer({ min: 1, max: 5_000 }).map((depth) => Buffer.from(`${"[".repeat(depth)}\n`))
        }
      )
      const property = fc.asyncProperty(
        fc.array(piece, { minLength: 1, maxLength: 12 }),
        (pieces) =>
          Effect.gen(function*() {
            const socket = yield* rawSocket(path)
            socket.resume()
            for (const bytes of pieces) socket.write(bytes)
            expect((yield* ledger.read()).text).toBe("")
            socket.end()
            yield* eventually(() => socket.closed)
          }).pipe(Effect.scoped, silent, Effect.runPromise)
      )
      yield* Effect.promise(() => fc.assert(property, fuzzing))
      yield* eventually(() => Effect.runSync(host.endpoint.clients).length === 1)
    }).pipe(Effect.scoped, silent, Effect.runPromise)
  }, 60_000 + fuzzSeconds * 1_000)
})

describe("a host that is killed under load", () => {
  const start = (path: string) =>
    Effect.acquireRelease(
      Effect.callback<ChildProcess>((resume) => {
        const child = spawn(process.execPath, [fileURLToPath(new URL("wire-host.ts", import.meta.url)), path], {
          stdio: ["ignore", "pipe", "inherit"]
        })
        child.stdout.once("data", () => resume(Effect.succeed(child)))
      }),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )

  const calls = (connection: ConnectionShape, count: number) =>
    Effect.gen(function*() {
      const facade = yield* connection.use(Ledger)
      return yield* Effect.forEach(
        Array.from({ length: count }),
        () =>
          Effect.forkChild(
            Effect.flip(Effect.andThen(facade.wait(), new ServiceError({ code: "internal", message: "" })))
          )
      )
    })

  it.live(
    "settles every call as disconnected, and its clients recover to the next one's value",
    () =>
      Effect.gen(function*() {
        const path = join(yield* temporaryFolder, "host.sock")
        const local = yield* makeServiceHost()
        const first = yield* start(path)
        const clients = yield* Effect.forEach(
          [1, 2, 3],
          () => local.connect({ retry: { first: 20, longest: 100 }, connect: connectUnix(path) })
        )
        const ledgers = yield* Effect.forEach(clients, (client) => client.use(Ledger))
        yield* Effect.forEach(ledgers, (ledger) => ledger.ready)
        yield* eventually(() => ledgers.every(({ ledger }) => (ledger.value?.text.length ?? 0) > 1_000))
        const waiting = yield* Effect.forEach(clients, (client) => calls(client, 3))
        yield* drained
        first.kill("SIGKILL")
        const codes = yield* Effect.forEach(waiting.flat(), Fiber.join)
        expect(codes.map(({ code }) => code)).toEqual(Array.from({ length: 9 }, () => "disconnected"))
        yield* eventually(() => ledgers.every(({ ledger }) => ledger.status === "stale"))
        const known = ledgers.map(({ ledger }) => ledger.value?.text ?? "")
        expect(known.every((text) => text.startsWith("0,1,2,"))).toBe(true)
        yield* start(path)
        yield* eventually(() => ledgers.every(({ ledger }) => ledger.status === "live"))
        yield* eventually(() => ledgers.every(({ ledger }) => (ledger.value?.text.length ?? 0) > 1_000))
        // One authority that goes on writing: each client's value is a beginning of a later answer.
        const shown = ledgers.map(({ ledger }) => ledger.value?.text ?? "none")
        const [one] = ledgers
        const now = one === undefined ? "" : (yield* one.read()).text
        for (const text of shown) expect(now.startsWith(text)).toBe(true)
      }).pipe(silent),
    60_000
  )
})
