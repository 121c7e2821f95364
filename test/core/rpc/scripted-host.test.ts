/** What a client does about a host that answers out of order, late, or wrongly: every frame of the host is written here. */
import { Connection, makeMemoryPair } from "@bezel/core/rpc"
import { RemoteService } from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { connected, eventually, until } from "../../matrix/harness.ts"

class Note extends RemoteService.make("test.note")({
  state: { note: Schema.Struct({ text: Schema.String }) },
  methods: { write: { success: Schema.String } }
}) {}

interface Request {
  readonly id: string
  readonly tag: string
  readonly payload: { readonly type?: string; readonly service?: string; readonly session?: string | null }
}

/** A client, and a host that says only what a test tells it to. Control messages are answered with null. */
const scripted = Effect.gen(function*() {
  const requests: Array<Request> = []
  const acknowledged: Array<string> = []
  let say: (message: object) => Effect.Effect<unknown> = () => Effect.void
  const exit = (id: string, value: unknown) => say({ _tag: "Exit", requestId: id, exit: { _tag: "Success", value } })
  const connect = Effect.gen(function*() {
    const [client, server] = makeMemoryPair()
    say = (message) => server.send(JSON.stringify(message))
    yield* Effect.forkScoped(server.run((frame) =>
      Effect.suspend(() => {
        const message = JSON.parse(frame)
        if (message._tag === "Ack") acknowledged.push(message.requestId)
        if (message._tag !== "Request") return Effect.void
        requests.push(message)
        if (message.tag !== "control" || message.payload.type === "select") return Effect.void
        return exit(message.id, message.payload.type === "hello" ? { client: "c", epoch: "e" } : null)
      })
    ))
    return client
  })
  const connection = yield* Connection.make({ connect, label: "test", retry: { first: 0, longest: 0 } })
  yield* connected(connection)
  const request = (matches: (request: Request) => boolean) =>
    Effect.as(eventually(() => requests.some(matches)), undefined).pipe(
      Effect.map(() => requests.findLast(matches)?.id ?? "none")
    )
  return {
    connection,
    requests,
    exit,
    say: (message: object) => say(message),
    watching: (nth = 1) =>
      Effect.andThen(
        eventually(() => requests.filter((one) => one.payload.type === "states").length >= nth),
        request((one) => one.payload.type === "states")
      ),
    selecting: request((one) => one.payload.type === "select"),
    calling: request((one) => one.tag === "call"),
    items: (id: string, ...values: ReadonlyArray<object>) =>
      Effect.gen(function*() {
        const before = acknowledged.length
        yield* say({ _tag: "Chunk", requestId: id, values })
        yield* eventually(() => acknowledged.length > before)
        // Acknowledged is received; give it the turns to be applied, or, as some tests hope, not to be.
        for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
      })
  }
})

const snapshot = (text: string, sequence: number, instance = 1, session: string | null = null) => ({
  type: "snapshot",
  instance,
  session,
  states: { note: { sequence, value: { text } } }
})
const append = (text: string, sequence: number, instance = 1) => ({
  type: "delta",
  instance,
  member: "note",
  sequence,
  operations: [["append", ["text"], text]]
})

describe("a client", () => {
  it.effect("subscribes again when a sequence number is missing, and does not show what came after the gap", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const first = yield* host.watching()
      yield* host.items(first, snapshot("a", 3), append("b", 4))
      expect(note.note.value).toEqual({ text: "ab" })
      yield* host.say({ _tag: "Chunk", requestId: first, values: [append("d", 6)] })
      const second = yield* host.watching(2)
      expect(second).not.toBe(first)
      expect(note.note.value).toEqual({ text: "ab" })
      yield* host.items(second, snapshot("abcd", 6))
      yield* until(note.note, (value) => value.text === "abcd")
      expect(note.note.status).toBe("live")
    }))

  it.effect("subscribes again when operations do not fit its value", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const first = yield* host.watching()
      yield* host.items(first, snapshot("a", 0))
      yield* host.say({
        _tag: "Chunk",
        requestId: first,
        values: [{ ...append("x", 1), operations: [["append", ["nowhere", "at", "all"], "x"]] }]
      })
      yield* host.watching(2)
      expect(note.note.value).toEqual({ text: "a" })
    }))

  it.effect("ignores deliveries of an instance that was replaced", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const watch = yield* host.watching()
      yield* host.items(
        watch,
        snapshot("old", 0, 1),
        snapshot("new", 0, 2),
        append(" of the old", 1, 1),
        append("!", 1, 2)
      )
      expect(note.note.value).toEqual({ text: "new!" })
    }))

  it.effect("never takes a snapshot of a session that it has left, however late it comes", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const watch = yield* host.watching()
      const toOne = yield* Effect.forkChild(host.connection.select("one"))
      yield* host.exit(yield* host.selecting, null)
      yield* Fiber.join(toOne)
      yield* host.items(watch, snapshot("of one", 0, 1, "one"))
      const toTwo = yield* Effect.forkChild(host.connection.select("two"))
      yield* eventually(() => host.requests.filter((one) => one.payload.type === "select").length === 2)
      yield* host.exit(yield* host.selecting, null)
      yield* Fiber.join(toTwo)
      expect([note.note.value, note.note.status]).toEqual([undefined, "hydrating"])
      yield* host.items(watch, append(" late", 1, 1), snapshot("of one again", 2, 1, "one"))
      expect(note.note.value).toBeUndefined()
      yield* host.items(watch, snapshot("of two", 0, 2, "two"))
      expect(note.note.value).toEqual({ text: "of two" })
    }))

  it.effect("fails a call with invalid_result when its result does not fit the contract", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const call = yield* Effect.forkChild(Effect.flip(note.write()))
      yield* host.exit(yield* host.calling, { secret: "value" })
      const error = yield* Fiber.join(call)
      expect(error.code).toBe("invalid_result")
      expect(error.message).not.toContain("value")
    }))

  it.effect("fails a call, and only that, when the host answers with a defect, an interruption or an unknown error", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const answers = [
        [{ _tag: "Die", defect: "stack of the host" }, "internal"],
        [{ _tag: "Interrupt", fiberId: 1 }, "cancelled"],
        [{ _tag: "Fail", error: { type: "mystery" } }, "invalid_result"],
        [{ _tag: "Fail", error: { type: "declared", error: 1 } }, "invalid_result"]
      ] as const
      const calls = () => host.requests.filter((one) => one.tag === "call")
      for (const [reason, code] of answers) {
        const before = calls().length
        const call = yield* Effect.forkChild(Effect.flip(note.write()))
        yield* eventually(() => calls().length > before)
        yield* host.say({
          _tag: "Exit",
          requestId: calls().at(-1)?.id,
          exit: { _tag: "Failure", cause: [reason] }
        })
        const error = yield* Fiber.join(call)
        expect(error.code).toBe(code)
        expect(error.message).not.toContain("stack of the host")
      }
      expect(host.connection.state.value.status).toBe("connected")
    }))

  it.effect("says why a service is not ready, asks again later, and is ready then", () =>
    Effect.gen(function*() {
      const host = yield* scripted
      const note = yield* host.connection.use(Note)
      const first = yield* host.watching()
      const waiting = yield* Effect.forkChild(Effect.flip(note.ready))
      yield* host.say({
        _tag: "Exit",
        requestId: first,
        exit: {
          _tag: "Failure",
          cause: [{ _tag: "Fail", error: { type: "service", code: "unknown_service", message: "No such service." } }]
        }
      })
      expect(yield* Fiber.join(waiting)).toMatchObject({ code: "unknown_service" })
      yield* TestClock.adjust("1 second")
      yield* host.items(yield* host.watching(2), snapshot("here", 0))
      yield* note.ready
      expect(note.note.value).toEqual({ text: "here" })
    }))
})
