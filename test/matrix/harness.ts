/**
 * What the matrix runs on: a service host, clients that reach it over the transport under test, every frame that crossed
 * and every span that was made.
 */
import {
  Connection,
  type ConnectionOptions,
  type ConnectionShape,
  type EndpointOptions,
  type EndpointShape,
  type Transport
} from "@bezel/core/rpc"
import type { Replica, ReplicaStatus } from "@bezel/core/service"
import { Effect, Option, type Scope, Stream, Tracer } from "effect"
import { makeServiceHost } from "../../packages/core/src/testing/service.ts"

/** A way from a client to an endpoint. The matrix runs the same text over each. */
export interface TransportUnderTest {
  readonly name: string
  readonly connect: (endpoint: EndpointShape) => Effect.Effect<Transport, never, Scope.Scope>
}

export interface Frames {
  readonly sent: Array<string>
  readonly received: Array<string>
}

/** Also remembers what goes through. */
const tapped = (transport: Transport, frames: Frames): Transport => ({
  ...transport,
  send: (frame) => Effect.andThen(Effect.sync(() => frames.sent.push(frame)), transport.send(frame)),
  run: (onFrame) =>
    transport.run((frame) => Effect.andThen(Effect.sync(() => frames.received.push(frame)), onFrame(frame)))
})

export const makeHost = (transport: TransportUnderTest, options?: EndpointOptions) =>
  Effect.map(makeServiceHost(options), (host) => {
    const connectWith = (overrides: Partial<ConnectionOptions> = {}) =>
      Effect.gen(function*() {
        const frames: Frames = { sent: [], received: [] }
        const connection = yield* Connection.make({
          connect: Effect.map(transport.connect(host.endpoint), (end) => tapped(end, frames)),
          label: "test",
          retry: { first: 0, longest: 0 },
          ...overrides
        })
        yield* connected(connection)
        return { connection, frames }
      })
    return {
      ...host,
      connectWith,
      client: Effect.map(connectWith(), ({ connection }) => connection)
    }
  })

/** Waits for a value, through the stream a consumer would use. */
export const until = <A>(
  source: { readonly changes: Stream.Stream<A> },
  predicate: (value: A) => boolean
): Effect.Effect<A> =>
  Effect.map(
    Stream.runHead(Stream.filter(source.changes, predicate)),
    (found) => Option.getOrThrowWith(found, () => new Error("the stream ended before the value came"))
  )

export const untilStatus = (replica: Replica<unknown>, status: ReplicaStatus): Effect.Effect<void> =>
  Effect.asVoid(until({ changes: replica.statuses }, (now) => now === status))

export const connected = (connection: ConnectionShape) =>
  until(connection.state, (state) => state.status === "connected")

/** Waits for something that has no stream, by letting everything else run. Fails when it does not come. */
export const eventually = (predicate: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (let turn = 0; turn < 10_000; turn++) {
      if (predicate()) return
      yield* Effect.yieldNow
      if (turn % 100 === 99) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
    return yield* Effect.die(new Error("what the test waits for did not happen"))
  })

export interface Spans {
  readonly all: Array<Tracer.Span>
  readonly named: (name: string) => Tracer.Span
  readonly traced: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const recordSpans = (): Spans => {
  const all: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      all.push(span)
      return span
    }
  })
  return {
    all,
    named: (name) => {
      const span = all.find((candidate) => candidate.name === name)
      if (span === undefined) throw new Error(`no span "${name}", there are ${all.map((one) => one.name).join(", ")}`)
      return span
    },
    traced: (effect) => Effect.provideService(effect, Tracer.Tracer, tracer)
  }
}

export const parentOf = (span: Tracer.Span): string | undefined => Option.getOrUndefined(span.parent)?.spanId
