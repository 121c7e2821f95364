/**
 * A provider that hangs, breaks off, stutters or lies, in every phase of a request, over real connections and both wires.
 *
 * Whatever it does: every input ends, every call has one result, no connection stays behind, the next input is answered, and
 * the session is whole when it is opened again.
 */
import type { Harness } from "@bezel/core/harness"
import type { Model } from "@bezel/core/model"
import type { MemorySession } from "@bezel/core/storage"
import { makeToolRegistry } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fc from "fast-check"
import * as net from "node:net"
import { replyEvents, type ServerReply } from "../../packages/core/src/testing/model-server.ts"
import { echo, memory, user } from "../core/turn/fixture.ts"
import { chunk, model, server, sse, type Wire, wires } from "../plugins/providers/support.ts"
import { pairingFaults } from "./session-checks.ts"

const retry = { attempts: 3, firstWait: 1, longestWait: 5 }

const openOver = (session: MemorySession, used: Model) =>
  Effect.gen(function*() {
    const tools = yield* makeToolRegistry()
    yield* tools.transform({ plugin: "test", version: "1", order: 0 }, (draft) => draft.set("echo", echo))
    const harness = yield* openHarness(session.storage(), {
      sessionID: "ses_test",
      models: { resolve: () => Effect.succeed(used), list: Effect.succeed([]) },
      tools,
      retry,
      artifact: () => Effect.die(new Error("no artifacts in this test"))
    })
    yield* harness.resume
    return harness
  })

/** Waits for a condition of the view, which every commit may bring about. */
const until = (harness: Harness, holds: (stage: string | undefined, text: string) => boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const { envelopes, view } = yield* harness.main.watch
    const now = (turn: typeof view.turn) =>
      holds(turn?.generation?.stage, (turn?.message?.parts ?? []).map((part) => part.text).join(""))
    if (now(view.turn)) return
    yield* Stream.runForEachWhile(
      envelopes,
      () => Effect.map(harness.main.snapshot, (snapshot) => !now(snapshot.view.turn))
    )
  }))

/** One result for each call of the session, each request's calls paired, nothing under way. */
const isWhole = (session: MemorySession, harness: Harness) =>
  Effect.gen(function*() {
    const context = yield* harness.main.context
    expect(pairingFaults(context)).toEqual([])
    const results = (yield* harness.main.entries({ kind: "bezel.tool_result" })).length
    const calls = context.flatMap((message) =>
      message.role === "assistant" ? message.content.filter((part) => part.type === "tool-call") : []
    )
    expect(results).toBe(calls.length)
    expect(yield* session.storage().liveTasks).toEqual([])
    expect(yield* session.storage().liveInputs).toEqual([])
    expect(yield* harness.quiescent).toBe(true)
  })

/** The same session in another life: whole, and of use. */
const reopens = (session: MemorySession, wire: Wire) =>
  Effect.gen(function*() {
    const { url } = yield* server({ text: "still here" })
    const harness = yield* openOver(session, yield* model(wire, url))
    yield* isWhole(session, harness)
    expect(yield* Effect.flatMap(harness.main.send(user("again")), (input) => input.wait)).toMatchObject({
      text: "still here"
    })
    yield* isWhole(session, harness)
  })

const answer = { text: ["one ", "two ", "three"], calls: [{ id: "c1", name: "echo", args: { text: "a" } }] }

const lengthOf = (wire: Wire, events: number): number =>
  Buffer.byteLength(replyEvents(wire, answer).slice(0, events).join(""))

/** Where a provider may fall silent: what it sends before, and what shows by then. */
const phases = (wire: Wire): ReadonlyArray<{
  readonly phase: string
  readonly before: ReadonlyArray<ServerReply>
  readonly reply: ServerReply
  readonly shows: (stage: string | undefined, text: string) => boolean
}> => {
  const all = replyEvents(wire, answer).length
  const first = replyEvents(wire, answer).findIndex((event) => event.includes("one ")) + 1
  const hang = (afterBytes: number): ServerReply => ({ ...answer, stop: { afterBytes, how: "hang" } })
  return [
    { phase: "before the first event", before: [], reply: hang(0), shows: (stage) => stage === "requesting" },
    {
      phase: "before the first delta",
      before: [],
      reply: hang(lengthOf(wire, first - 1) + 1),
      shows: (stage) => stage === "requesting"
    },
    { phase: "in the middle", before: [], reply: hang(lengthOf(wire, first)), shows: (_, text) => text === "one " },
    {
      phase: "after the last delta",
      before: [],
      reply: hang(lengthOf(wire, all) - 12),
      shows: (_, text) => text.includes("three")
    },
    {
      phase: "in the retry",
      before: [{ status: 503, json: { error: { message: "busy" } } }],
      reply: hang(0),
      shows: (stage) => stage === "requesting"
    },
    {
      phase: "in the body of a failure",
      before: [],
      reply: { status: 429, text: '{"error":', stop: { afterBytes: 9, how: "hang" } },
      shows: (stage) => stage === "requesting"
    }
  ]
}

describe.each(wires)("over the %s wire", (wire) => {
  it.live.each(phases(wire))("a provider that hangs $phase waits for a person, who ends the turn and the connection", ({
    before,
    reply,
    shows
  }) =>
    Effect.scoped(Effect.gen(function*() {
      const session = memory()
      const scope = yield* Scope.make()
      const arrived = Promise.withResolvers<void>()
      const peer = yield* server(...before, () => {
        arrived.resolve()
        return reply
      })
      const harness = yield* Scope.provide(openOver(session, yield* model(wire, peer.url)), scope)
      const input = yield* harness.main.send(user("go"))
      yield* Effect.promise(() => arrived.promise)
      yield* until(harness, shows)
      yield* harness.main.abort()
      expect(yield* input.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
      expect(yield* Effect.promise(() => peer.requests[before.length]?.closed ?? Promise.resolve(false))).toBe(true)
      peer.reply({ text: "next answer" })
      expect(yield* Effect.flatMap(harness.main.send(user("next")), (next) => next.wait)).toMatchObject({
        text: "next answer"
      })
      yield* isWhole(session, harness)
      yield* Scope.close(scope, Exit.void)
      yield* reopens(session, wire)
    })))

  it.live("a provider that accepts and sends no head of an answer waits for a person too", () =>
    Effect.scoped(Effect.gen(function*() {
      const session = memory()
      const gone = Promise.withResolvers<void>()
      const asked = Promise.withResolvers<void>()
      const mute = net.createServer((socket) => {
        socket.on("data", () => asked.resolve())
        socket.on("error", () => {})
        socket.on("close", () => gone.resolve())
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() =>
        Effect.promise(() => new Promise<void>((resolve) => mute.close(() => resolve())))
      )
      const address = mute.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const scope = yield* Scope.make()
      const harness = yield* Scope.provide(openOver(session, yield* model(wire, `http://127.0.0.1:${port}/v1`)), scope)
      const input = yield* harness.main.send(user("go"))
      yield* Effect.promise(() => asked.promise)
      yield* harness.main.abort()
      expect(yield* input.wait).toMatchObject({ reason: "aborted" })
      yield* Effect.promise(() => gone.promise)
      yield* Scope.close(scope, Exit.void)
      yield* reopens(session, wire)
    })))

  it.live(
    "a connection that ends or breaks at any byte of an answer costs an attempt, and the turn ends well",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const session = memory()
        const whole = lengthOf(wire, replyEvents(wire, answer).length)
        const step = Math.ceil(whole / 24)
        let cuts = 0
        const scope = yield* Scope.make()
        const peer = yield* server()
        const harness = yield* Scope.provide(openOver(session, yield* model(wire, peer.url)), scope)
        for (const how of ["destroy", "end"] as const) {
          for (let afterBytes = 0; afterBytes < whole; afterBytes += step) {
            cuts++
            const done = `done ${cuts}`
            // What was cut so late that it is whole all the same goes on with the call's result.
            peer.reply({ ...answer, stop: { afterBytes, how } })
            peer.always((request) => JSON.stringify(request.body).includes(`go ${cuts}.`) ? { text: done } : answer)
            const outcome = yield* Effect.flatMap(harness.main.send(user(`go ${cuts}.`)), (input) => input.wait)
            expect(outcome, `${how} after ${afterBytes} of ${whole} bytes`).toMatchObject({ text: done })
          }
        }
        expect(cuts).toBeGreaterThan(40)
        yield* isWhole(session, harness)
        yield* Scope.close(scope, Exit.void)
        yield* reopens(session, wire)
      })),
    60_000
  )

  it.live("a provider that stutters byte by byte, and is late with each, says what it says", () =>
    Effect.scoped(Effect.gen(function*() {
      const session = memory()
      const peer = yield* server({ ...answer, chunks: 7, delayMillis: 1 }, { text: "done", chunks: 1 })
      const harness = yield* openOver(session, yield* model(wire, peer.url))
      const before = (yield* harness.main.snapshot).revision
      expect(yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)).toMatchObject({
        text: "done"
      })
      const [, first] = (yield* harness.main.snapshot).view.entries
      expect(JSON.stringify(first?.model)).toContain("one two three")
      // A commit for each frame that is due, not for each byte.
      expect((yield* harness.main.snapshot).revision - before).toBeLessThan(40)
      yield* isWhole(session, harness)
    })))

  it.live("a provider that is down for all attempts fails the turn and says why; the next input tries anew", () =>
    Effect.scoped(Effect.gen(function*() {
      const session = memory()
      const down = {
        status: 503,
        json: { type: "error", error: { type: "overloaded_error", message: "we are closed" } }
      }
      const peer = yield* server(down, { ...answer, stop: { afterBytes: 40, how: "destroy" } }, down, { text: "open" })
      const harness = yield* openOver(session, yield* model(wire, peer.url))
      const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
      expect(outcome).toMatchObject({
        status: "unanswered",
        reason: "failed",
        error: { kind: "unavailable", message: expect.stringContaining("we are closed") }
      })
      expect(peer.requests.length).toBe(3)
      expect(yield* Effect.flatMap(harness.main.send(user("again")), (input) => input.wait)).toMatchObject({
        text: "open"
      })
      yield* isWhole(session, harness)
    })))

  it.live("a provider that lies in its events ends no more than its own attempts", () =>
    Effect.scoped(Effect.gen(function*() {
      const session = memory()
      const peer = yield* server()
      const scope = yield* Scope.make()
      const harness = yield* Scope.provide(openOver(session, yield* model(wire, peer.url)), scope)
      const honest = replyEvents(wire, answer).join("")
      const lies: ReadonlyArray<string> = [
        "data: {\n\n",
        "data: null\n\n",
        "data: []\n\n",
        'data: "text"\n\n',
        "data: [DONE]\n\n",
        'event: error\ndata: {"type":"error"}\n\n',
        ": only a comment\n\n".repeat(1_000),
        "\u0000\u0001\u0002",
        "data: ".repeat(10_000),
        `data: ${"x".repeat(1_000_000)}\n\n`,
        sse({ choices: [] }),
        sse({ choices: null }, { choices: [{ delta: null, finish_reason: "stop" }] }),
        sse(chunk({ content: 7 }), chunk({}, "stop")),
        sse(chunk({ tool_calls: [{ index: -1, function: { name: null, arguments: 7 } }] }), chunk({}, "tool_calls")),
        sse(
          chunk({ tool_calls: [{ index: 1e9, id: "", function: { name: "echo", arguments: "{}" } }] }),
          chunk({}, "x")
        ),
        sse({ type: "content_block_delta", index: 9, delta: { type: "text_delta", text: "from nowhere" } }),
        sse({ type: "message_start", message: null }, { type: "message_stop" }),
        sse({ type: "content_block_start", index: 0, content_block: { type: "tool_use", id: null, name: 3 } }),
        honest.replaceAll('"text"', '"test"'),
        honest.replaceAll("echo", "no_such_tool"),
        honest.replaceAll("index", "indexes"),
        honest + honest,
        honest.split("\n\n").toReversed().join("\n\n")
      ]
      for (const [index, body] of lies.entries()) {
        peer.reply({ body })
        peer.always({ text: "the truth" })
        const outcome = yield* Effect.flatMap(harness.main.send(user(`lie ${index}`)), (input) => input.wait)
        expect(outcome.status, `lie ${index}: ${body.slice(0, 80)}`).toMatch(/done|unanswered/)
      }
      yield* isWhole(session, harness)
      yield* Scope.close(scope, Exit.void)
      yield* reopens(session, wire)
    })))

  it.live(
    "events that come in another order, twice, late or not at all, at any place, end no more than their attempt",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const session = memory()
        const peer = yield* server()
        const scope = yield* Scope.make()
        const harness = yield* Scope.provide(openOver(session, yield* model(wire, peer.url)), scope)
        const events = replyEvents(wire, answer)
        const at = (index: number, ...put: ReadonlyArray<string>) => events.toSpliced(index, 1, ...put)
        let asked = 0
        for (const [index, event] of events.entries()) {
          const next = events[index + 1] ?? ""
          const swapped = events.toSpliced(index, 2, next, event)
          for (const lines of [swapped, at(index), at(index, event, event), [...at(index), event]]) {
            peer.reply({ body: lines.join("") })
            peer.always({ text: "the truth" })
            const outcome = yield* Effect.flatMap(harness.main.send(user(`${asked++}`)), (input) => input.wait)
            expect(outcome.status, `event ${index} of ${events.length}`).toMatch(/done|unanswered/)
          }
          const cut = Buffer.byteLength(events.slice(0, index).join(""))
          peer.reply({ body: events.join(""), chunks: { at: [cut] }, delayMillis: 15 }, { text: "the truth" })
          const late = yield* Effect.flatMap(harness.main.send(user(`${asked++}`)), (input) => input.wait)
          expect(late).toMatchObject({ text: "the truth" })
        }
        expect(asked).toBe(events.length * 5)
        yield* isWhole(session, harness)
        yield* Scope.close(scope, Exit.void)
        yield* reopens(session, wire)
      })),
    60_000
  )

  it.live(
    "events whose bytes are changed anywhere end no more than their own attempt",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const session = memory()
        const peer = yield* server()
        const scope = yield* Scope.make()
        const harness = yield* Scope.provide(openOver(session, yield* model(wire, peer.url)), scope)
        const honest = Buffer.from(replyEvents(wire, answer).join(""))
        const change = fc.record({
          at: fc.nat(honest.length - 1),
          length: fc.integer({ min: 0, max: 40 }),
          put: fc.uint8Array({ maxLength: 20 })
        })
        const changed = fc.sample(fc.array(change, { minLength: 1, maxLength: 3 }), { numRuns: 150, seed: 20_261_130 })
        let done = 0
        for (const [index, edits] of changed.entries()) {
          let bytes = honest
          for (const { at, length, put } of edits) {
            bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + length)])
          }
          peer.reply({ body: bytes })
          peer.always({ text: "the truth" })
          const outcome = yield* Effect.flatMap(harness.main.send(user(`${index}`)), (input) => input.wait)
          if (outcome.status === "done") done++
        }
        expect(done).toBeGreaterThan(100)
        yield* isWhole(session, harness)
        yield* Scope.close(scope, Exit.void)
        yield* reopens(session, wire)
      })),
    60_000
  )
})
