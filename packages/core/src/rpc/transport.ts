/**
 * Transports: a pair of ends that carry text frames, in order, both ways, until one of them closes.
 *
 * Everything above works on frames, so a socket differs from memory only in how it makes an end. One frame is one message
 * of `effect/rpc` as JSON. A peer that sends something else is disconnected; no other peer notices.
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcClientError from "effect/rpc/RpcClientError"
import type { FromClientEncoded, FromServerEncoded } from "effect/rpc/RpcMessage"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import type * as Scope from "effect/Scope"

export interface Transport {
  /** Completes when the frame is on its way: false when the connection is closed and it never will be. */
  readonly send: (frame: string) => Effect.Effect<boolean>
  /** Gives each frame to the handler, one after another, and completes when the connection is closed. */
  readonly run: (onFrame: (frame: string) => Effect.Effect<void>) => Effect.Effect<void>
  readonly close: Effect.Effect<void>
  readonly closed: Effect.Effect<void>
}

/** Two connected ends in this process. What goes through is text, as on a socket, so the boundary is the same. */
export const makeMemoryPair = (): readonly [client: Transport, server: Transport] => {
  const closed = Deferred.makeUnsafe<void>()
  const toServer = Effect.runSync(Queue.unbounded<string, Cause.Done>())
  const toClient = Effect.runSync(Queue.unbounded<string, Cause.Done>())
  const close = Effect.sync(() => {
    Queue.endUnsafe(toServer)
    Queue.endUnsafe(toClient)
    Deferred.doneUnsafe(closed, Effect.void)
  })
  const end = (out: Queue.Queue<string, Cause.Done>, into: Queue.Queue<string, Cause.Done>): Transport => ({
    send: (frame) => Effect.sync(() => Queue.offerUnsafe(out, frame)),
    run: (onFrame) =>
      Effect.forever(Effect.flatMap(Queue.take(into), onFrame), { disableYield: true }).pipe(
        Effect.catch(() => Effect.void)
      ),
    close,
    closed: Deferred.await(closed)
  })
  return [end(toServer, toClient), end(toClient, toServer)]
}

const parse = (frame: string): unknown => {
  try {
    return JSON.parse(frame)
  } catch {
    return undefined
  }
}

const isMessage = (value: unknown): value is { readonly _tag: string } =>
  typeof value === "object" && value !== null && "_tag" in value && typeof value._tag === "string"

/** The client's side of `effect/rpc` over one transport. Calls in flight fail when it closes. */
export const clientProtocol = (
  transport: Transport
): Effect.Effect<RpcClient.Protocol["Service"], never, Scope.Scope> =>
  RpcClient.Protocol.make(Effect.fnUntraced(function*(write) {
    // Known from its first message: the answer can be there before the client has begun to listen, and is kept for it.
    const clients = new Set<number>()
    const everyone = (message: FromServerEncoded) =>
      Effect.forEach([...clients], (id) => write(id, message), { discard: true })
    yield* transport.run((frame) => {
      const message = parse(frame)
      // What the far side of this connection says is checked by `effect/rpc` and by the codecs of the wire.
      return isMessage(message) ? everyone(message as FromServerEncoded) : garbage(transport, "The host")
    }).pipe(
      Effect.andThen(everyone({ _tag: "ClientProtocolError", error: lost() })),
      Effect.forkScoped
    )
    return {
      send: (id, message) =>
        Effect.suspend(() => {
          clients.add(id)
          return Effect.flatMap(transport.send(JSON.stringify(message)), (sent) =>
            sent ? Effect.void : Effect.fail(lost()))
        }),
      supportsAck: true,
      supportsTransferables: false,
      codecFor: RpcSerialization.json.codecFor
    }
  }))

const lost = () =>
  new RpcClientError.RpcClientError({
    reason: new RpcClientError.RpcClientDefect({ message: "The connection was lost.", cause: "closed" })
  })

/** The server's side over one transport, which is one client. */
export const serverProtocol = (
  transport: Transport
): Effect.Effect<RpcServer.Protocol["Service"], never, Scope.Scope> =>
  RpcServer.Protocol.make(Effect.fnUntraced(function*(write) {
    const disconnects = yield* Queue.unbounded<number>()
    yield* transport.run((frame) => {
      const message = parse(frame)
      return isMessage(message) ? write(0, message as FromClientEncoded) : garbage(transport, "A client")
    }).pipe(
      Effect.andThen(Effect.sync(() => Queue.offerUnsafe(disconnects, 0))),
      Effect.forkScoped
    )
    return {
      disconnects,
      send: (_id, message) => Effect.asVoid(transport.send(JSON.stringify(message))),
      end: () => Effect.void,
      clientIds: Effect.succeed(new Set([0])),
      initialMessage: Effect.succeedNone,
      supportsAck: true,
      supportsTransferables: false,
      supportsSpanPropagation: false,
      supportsNotifications: false,
      codecFor: RpcSerialization.json.codecFor
    }
  }))

const garbage = (transport: Transport, who: string): Effect.Effect<void> =>
  Effect.andThen(
    Effect.logWarning(`${who} sent a frame that is no message; the connection is closed.`),
    transport.close
  )
