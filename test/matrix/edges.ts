/** Contracts at the edges of what a schema can say, and values that a contract cannot, as one text for every transport. */
import {
  type Implementation,
  MutableDurableEvents,
  MutableRemoteEvents,
  MutableRemoteState,
  RemoteService,
  ServiceError
} from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { drained } from "../eventually.ts"
import { connected, eventually, makeHost, parentOf, recordSpans, type TransportUnderTest, until } from "./harness.ts"

const Shape = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("at"), at: Schema.Date }),
  Schema.Struct({ kind: Schema.Literal("bytes"), bytes: Schema.Uint8Array })
])
const Sparse = Schema.Struct({ key: Schema.optionalKey(Schema.Int), value: Schema.optional(Schema.String) })

interface Nested {
  readonly inner: Nested | null
}
const Nested: Schema.Codec<Nested> = Schema.Struct({
  inner: Schema.NullOr(Schema.suspend((): Schema.Codec<Nested> => Nested))
})
const nest = (depth: number): Nested => {
  let nested: Nested = { inner: null }
  for (let level = 1; level < depth; level++) nested = { inner: nested }
  return nested
}

const codecs = {
  nothing: Schema.Void,
  none: Schema.Null,
  absent: Schema.UndefinedOr(Schema.String),
  date: Schema.Date,
  bytes: Schema.Uint8Array,
  large: Schema.BigInt,
  option: Schema.Option(Schema.Int),
  map: Schema.ReadonlyMap(Schema.String, Schema.Date),
  number: Schema.Number,
  shape: Shape,
  sparse: Sparse,
  nested: Nested
}

class Values extends RemoteService.make("test.values")({ state: codecs }) {}

const method = <S extends Schema.Top>(schema: S) => ({ payload: schema, success: schema })

class Echoes extends RemoteService.make("test.echoes")({
  methods: {
    nothing: method(codecs.nothing),
    none: method(codecs.none),
    absent: method(codecs.absent),
    date: method(codecs.date),
    bytes: method(codecs.bytes),
    large: method(codecs.large),
    option: method(codecs.option),
    number: method(codecs.number),
    shape: method(codecs.shape),
    sparse: method(codecs.sparse),
    nested: method(codecs.nested),
    fail: { error: Schema.Union([Schema.Date, Schema.Undefined]) }
  }
}) {}

const Small = Schema.Int.check(Schema.isLessThan(10))
const Told = Schema.Struct({ type: Schema.Literal("told"), number: Schema.Int })
const ToldSmall = Schema.Struct({ type: Schema.Literal("told"), number: Small })

/** Says less than the sources behind it can, and one of them in another form. */
class Narrow extends RemoteService.make("test.narrow")({
  state: {
    number: Small,
    at: Schema.Date.check(Schema.makeFilter((at) => at.getTime() < 10)),
    text: Schema.FiniteFromString
  },
  events: { told: ToldSmall, kept: { schema: ToldSmall, durable: true } }
}) {}

class Wide extends RemoteService.make("test.wide")({
  state: { number: Schema.Int, text: Schema.Struct({ text: Schema.String }) },
  events: { told: Told, kept: { schema: Told, durable: true } }
}) {}

/** As a client of another version knows it. */
class WideAsNarrow extends RemoteService.make("test.wide")({
  events: { told: ToldSmall, kept: { schema: ToldSmall, durable: true }, gone: ToldSmall }
}) {}

class OnlyTold extends RemoteService.make("test.told")({ events: { told: Told } }) {}
class Plain extends RemoteService.make("test.plain")({ methods: { act: {} } }) {}

const told = (number: number) => ({ type: "told" as const, number })

export const edges = (transport: TransportUnderTest) => {
  it.effect("a state of any schema is the authority's value, first and after a change", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const make = MutableRemoteState.make
      const values = {
        nothing: yield* make(codecs.nothing, undefined),
        none: yield* make(codecs.none, null),
        absent: yield* make(codecs.absent, undefined),
        date: yield* make(codecs.date, new Date(1)),
        bytes: yield* make(codecs.bytes, new Uint8Array([1, 2])),
        large: yield* make(codecs.large, 2n ** 70n),
        option: yield* make(codecs.option, Option.some(1)),
        map: yield* make(codecs.map, new Map([["a", new Date(1)]])),
        number: yield* make(codecs.number, 1),
        shape: yield* make(codecs.shape, { kind: "at", at: new Date(1) }),
        sparse: yield* make(codecs.sparse, { value: undefined }),
        nested: yield* make(codecs.nested, nest(1))
      }
      yield* host.directory.provide(Values, values)
      const seen = yield* (yield* host.client).use(Values)
      yield* seen.ready
      const here = () => Object.entries(values).map(([name, { value }]) => [name, value])
      const there = () => Object.keys(values).map((name) => [name, Reflect.get(seen, name).value])
      expect(there()).toEqual(here())
      yield* values.absent.set("there")
      yield* values.date.set(new Date(2))
      yield* values.bytes.set(new Uint8Array([3]))
      yield* values.large.set(-1n)
      yield* values.option.set(Option.none())
      yield* values.map.set(new Map([["b", new Date(2)]]))
      yield* values.shape.set({ kind: "bytes", bytes: new Uint8Array([4]) })
      yield* values.sparse.set({ key: 3 })
      yield* values.nested.set(nest(200))
      yield* values.number.set(Number.NaN)
      yield* until(seen.number, Number.isNaN)
      expect(there()).toEqual(here())
    }))

  it.effect("a payload, a result and an error may be of any schema", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const same = <A>(value: A) => Effect.succeed(value)
      let failures = 0
      const echoes: Implementation<typeof Echoes> = {
        nothing: same,
        none: same,
        absent: same,
        date: same,
        bytes: same,
        large: same,
        option: same,
        number: same,
        shape: same,
        sparse: same,
        nested: same,
        fail: () => Effect.fail(failures++ === 0 ? new Date(1) : undefined)
      }
      yield* host.directory.provide(Echoes, echoes)
      const echo = yield* (yield* host.client).use(Echoes)
      expect(yield* echo.nothing(undefined)).toBeUndefined()
      expect(yield* echo.none(null)).toBeNull()
      expect([yield* echo.absent(undefined), yield* echo.absent("here")]).toEqual([undefined, "here"])
      expect(yield* echo.date(new Date(5))).toEqual(new Date(5))
      expect(yield* echo.bytes(new Uint8Array([1, 255]))).toEqual(new Uint8Array([1, 255]))
      expect(yield* echo.large(2n ** 80n)).toBe(2n ** 80n)
      expect(yield* echo.option(Option.none())).toEqual(Option.none())
      expect([yield* echo.number(Number.NaN), yield* echo.number(Infinity)]).toEqual([Number.NaN, Infinity])
      expect(yield* echo.shape({ kind: "at", at: new Date(2) })).toEqual({ kind: "at", at: new Date(2) })
      expect(yield* echo.sparse({ value: undefined })).toEqual({ value: undefined })
      expect(yield* echo.nested(nest(200))).toEqual(nest(200))
      expect(yield* Effect.flip(echo.nested(nest(20_000)))).toMatchObject({ code: "invalid_arguments" })
      expect([yield* Effect.flip(echo.fail()), yield* Effect.flip(echo.fail())]).toEqual([new Date(1), undefined])
    }))

  it.effect("a value that its token cannot express is not shown, and the next one that it can is", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const number = yield* MutableRemoteState.make(Schema.Int, 1)
      const source = yield* MutableRemoteEvents.make(Told)
      const kept = yield* MutableDurableEvents.make(Told)
      const at = yield* MutableRemoteState.make(Schema.Date, new Date(1))
      const text = yield* MutableRemoteState.make(Schema.Finite, 1)
      yield* host.directory.provide(Narrow, { number, at, text, told: source, kept })
      const { connection, frames } = yield* host.connectWith()
      const narrow = yield* connection.use(Narrow)
      yield* narrow.ready
      const seen: Array<number | "gap"> = []
      yield* Effect.forkScoped(narrow.told.forEach((event) => Effect.sync(() => seen.push(event.number))))
      const found: Array<number | "gap"> = []
      yield* Effect.forkScoped(
        Stream.runForEach(
          narrow.kept.after(null),
          (event) => Effect.sync(() => found.push(event.type === "gap" ? "gap" : event.value.number))
        )
      )
      yield* eventually(() => {
        Effect.runSync(Effect.andThen(source.emit(told(0)), kept.emit(told(0))))
        return seen.length > 0 && found.length > 0
      })
      yield* drained
      seen.length = 0
      found.length = 0
      for (const value of [1, 99, 2]) {
        yield* number.set(value)
        yield* source.emit(told(value))
        yield* kept.emit(told(value))
        if (value === 99) {
          yield* eventually(() => narrow.number.status !== "live")
          yield* drained
          expect([narrow.number.value, narrow.number.status]).toEqual([1, "stale"])
        }
      }
      yield* until(narrow.number, (value) => value === 2)
      yield* at.set(new Date(99))
      yield* eventually(() => narrow.at.status !== "live")
      yield* drained
      yield* at.set(new Date(2))
      yield* until(narrow.at, (value) => value.getTime() === 2)
      expect(narrow.text.value).toBe(1)
      const subscriptions = () => frames.sent.filter((frame) => frame.includes(`"type":"states"`)).length
      const before = subscriptions()
      yield* text.set(2)
      yield* until(narrow.text, (value) => value === 2)
      expect([narrow.text.status, subscriptions()]).toEqual(["live", before])
      yield* eventually(() => seen.length === 2 && found.length === 3)
      expect([seen, found]).toEqual([[1, 2], [1, "gap", 2]])
    }))

  it.effect("an event that only the client's contract cannot read is missing there, and a gap of a durable source", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const source = yield* MutableRemoteEvents.make(Told)
      const kept = yield* MutableDurableEvents.make(Told)
      yield* host.directory.provide(Wide, {
        number: yield* MutableRemoteState.make(Schema.Int, 1),
        text: yield* MutableRemoteState.make(Wide.contract.state.text, { text: "" }),
        told: source,
        kept
      })
      const { connection, frames } = yield* host.connectWith()
      const narrow = yield* connection.use(WideAsNarrow)
      yield* kept.emit(told(0))
      const first = yield* Effect.forkChild(Stream.runHead(kept.after(null)), { startImmediately: true })
      yield* Effect.yieldNow
      yield* kept.emit(told(1))
      const start = Option.match(yield* Fiber.join(first), { onNone: () => "", onSome: ({ id }) => id })
      yield* kept.emit(told(99))
      yield* kept.emit(told(2))
      const found = yield* Stream.runCollect(Stream.take(narrow.kept.after(start), 2))
      expect(found.map((event) => event.type === "gap" ? "gap" : event.value.number)).toEqual(["gap", 2])
      // One that the host does not have is asked for once a second.
      const asked = () => frames.sent.filter((frame) => frame.includes(`"member":"gone"`)).length
      yield* Effect.forkScoped(Stream.runDrain(narrow.gone))
      yield* eventually(() => asked() === 1)
      yield* drained
      expect(asked()).toBe(1)
      yield* TestClock.adjust("1 second")
      yield* eventually(() => asked() === 2)
    }))

  it.effect("nothing is said to be lost because a connection was", () => {
    const logged: Array<string> = []
    const logger = Logger.make((entry) => {
      logged.push(Logger.formatJson.log(entry))
    })
    return Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const source = yield* MutableRemoteEvents.make(Told)
      const kept = yield* MutableDurableEvents.make(Told)
      yield* host.directory.provide(Wide, {
        number: yield* MutableRemoteState.make(Schema.Int, 1),
        text: yield* MutableRemoteState.make(Wide.contract.state.text, { text: "" }),
        told: source,
        kept
      })
      const { connection } = yield* host.connectWith({ retry: { first: "1 second", longest: "1 second" } })
      const wide = yield* connection.use(Wide)
      const seen: Array<number> = []
      yield* Effect.forkScoped(wide.told.forEach((event) => Effect.sync(() => seen.push(event.number))))
      const probe = (number: number) =>
        eventually(() => {
          Effect.runSync(source.emit(told(number)))
          return seen.includes(number)
        })
      yield* probe(1)
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      for (let number = 2; number < 20; number++) yield* source.emit(told(number))
      yield* TestClock.adjust("1 second")
      yield* connected(connection)
      yield* probe(20)
      yield* drained
      expect(logged.join("\n")).not.toContain("were lost")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("the plain stream of a durable source begins with what comes, also where another one has read before", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const source = yield* MutableRemoteEvents.make(Told)
      const kept = yield* MutableDurableEvents.make(Told)
      yield* host.directory.provide(Wide, {
        number: yield* MutableRemoteState.make(Schema.Int, 1),
        text: yield* MutableRemoteState.make(Wide.contract.state.text, { text: "" }),
        told: source,
        kept
      })
      const { connection } = yield* host.connectWith({ idle: 0 })
      const wide = yield* connection.use(Wide)
      const first = (number: number) =>
        Effect.gen(function*() {
          const reading = yield* Effect.forkChild(Stream.runHead(wide.kept))
          yield* eventually(() => {
            Effect.runSync(kept.emit(told(number)))
            return reading.pollUnsafe() !== undefined
          })
          return Option.map(yield* Fiber.join(reading), (event) => event.number)
        })
      expect(yield* first(1)).toEqual(Option.some(1))
      yield* TestClock.adjust(1)
      yield* drained
      yield* kept.emit(told(2))
      expect(yield* first(3)).toEqual(Option.some(3))
    }))

  it.effect("what every object has is no member of a service", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* host.directory.provide(OnlyTold, { told: yield* MutableRemoteEvents.make(Told) })
      const raw = yield* host.raw
      const answers: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const watch = { type: "events", service: "test.told", member: "toString" }
      yield* raw.send(JSON.stringify({ _tag: "Request", id: "1", tag: "watch", payload: watch, headers: [] }))
      yield* eventually(() => answers.length === 1)
      expect(answers[0]).toContain("unknown_member")
    }))

  it.effect("what a client does is under its own trace, never under that of whoever opened the endpoint", () => {
    const spans = recordSpans()
    return spans.traced(Effect.gen(function*() {
      const above: Array<string> = []
      const note = Effect.flatMap(Effect.option(Effect.currentParentSpan), (parent) =>
        Effect.sync(() => {
          above.push(Option.match(parent, { onNone: () => "nothing", onSome: (span) => span.spanId }))
        }))
      const host = yield* Effect.withSpan(makeHost(transport, { attach: () => note }), "the opener")
      yield* host.directory.provide(OnlyTold, { told: yield* MutableRemoteEvents.make(Told) })
      yield* host.directory.provide(Plain, { act: () => Effect.void })
      const raw = yield* Effect.withSpan(host.raw, "the listener")
      const answers: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const send = (id: string, tag: string, payload: object) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] }))
      yield* send("1", "control", { type: "select", session: "s" })
      yield* send("2", "call", { service: "test.plain", member: "act", payload: null })
      yield* eventually(() => answers.length === 2)
      expect(above).toEqual(["nothing"])
      expect(parentOf(spans.named("rpc.server test.plain.act"))).toBeUndefined()
    }))
  })

  it.effect("a session that is refused when the connection is made again is shown no more", () =>
    Effect.gen(function*() {
      let refused = false
      const host = yield* makeHost(transport, {
        attach: () =>
          refused ? Effect.fail(new ServiceError({ code: "unauthorized", message: "Not any more." })) : Effect.void
      })
      const client = yield* host.client
      yield* client.select("one")
      refused = true
      yield* client.drop
      yield* until(client.session, (session) => session === null)
      yield* connected(client)
      expect(client.session.value).toBeNull()
    }))
}
