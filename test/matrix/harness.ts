/**
 * What the matrix runs on: a service host, clients that reach it over the transport under test, every frame that crossed
 * and every span that was made.
 */
import {
  acceptWebSockets,
  Connection,
  type ConnectionOptions,
  type ConnectionShape,
  connectWebSocket,
  type EndpointOptions,
  type EndpointShape,
  loopback,
  portTransport,
  type Transport
} from "@bezel/core/rpc"
import type { Replica, ReplicaStatus, ServiceError } from "@bezel/core/service"
import { makeServiceHost, recordFrames, unixSocketTo } from "@bezel/core/testing"
import { Effect, FiberSet, Option, type Scope, Stream } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { MessageChannel } from "node:worker_threads"

/** A way from a client to an endpoint. The matrix runs the same text over each. */
export interface TransportUnderTest {
  readonly name: string
  /** Makes the endpoint reachable for the length of the scope, and gives the way to it. */
  readonly open: (
    endpoint: EndpointShape
  ) => Effect.Effect<Effect.Effect<Transport, ServiceError, Scope.Scope>, never, Scope.Scope>
}

export const overLoopback: TransportUnderTest = {
  name: "loopback",
  open: (endpoint) => Effect.succeed(loopback(endpoint))
}

/** A real socket file in a folder of its own. */
export const overUnixSocket: TransportUnderTest = { name: "a unix socket", open: unixSocketTo }

/** A real server on a port of loopback, and the WebSocket of the runtime. */
export const overWebSocket: TransportUnderTest = {
  name: "a WebSocket",
  open: (endpoint) =>
    Effect.gen(function*() {
      const run = yield* FiberSet.makeRuntime<never>()
      const accept = yield* acceptWebSockets({ serve: (end) => run(endpoint.serve(end)) })
      const server = createServer()
      server.on("upgrade", accept)
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => {
          server.listen(0, "127.0.0.1", () => resume(Effect.void))
        }),
        () => Effect.sync(() => server.close())
      )
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("the server has no port")
      return connectWebSocket(`ws://127.0.0.1:${address.port}/rpc`)
    })
}

/** Two ends of a message channel, as a worker thread has them. */
export const overPort: TransportUnderTest = {
  name: "a worker's port",
  open: (endpoint) =>
    Effect.map(FiberSet.makeRuntime<never>(), (run) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => new MessageChannel()),
          ({ port1, port2 }) =>
            Effect.sync(() => {
              port1.close()
              port2.close()
            })
        ),
        ({ port1, port2 }) => {
          run(endpoint.serve(portTransport(port2)))
          return portTransport(port1)
        }
      ))
}

export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bezel-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

export const makeHost = (transport: TransportUnderTest, options?: EndpointOptions) =>
  Effect.gen(function*() {
    const host = yield* makeServiceHost(options)
    const connect = yield* transport.open(host.endpoint)
    const connectWith = (overrides: Partial<ConnectionOptions> = {}) =>
      Effect.gen(function*() {
        const { connect: tapped, frames } = recordFrames(connect)
        const connection = yield* Connection.make({
          connect: tapped,
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
      /** A connection whose frames are the test's own. */
      raw: Effect.orDie(connect),
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

export { parentOf, recordSpans } from "@bezel/core/testing"
export { eventually } from "../eventually.ts"
