/**
 * Transports: a pair of ends that carry text frames, in order, both ways, until one of them closes.
 *
 * Everything above works on frames, so a socket differs from memory only in how it makes an end. One frame is one message
 * of `effect/rpc` as JSON. A peer that sends something else is disconnected; no other peer notices.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcClientError from "effect/rpc/RpcClientError"
import type { FromClientEncoded, FromServerEncoded } from "effect/rpc/RpcMessage"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ServiceError, ServiceErrorCode } from "../service/index.ts"
import { tooLong } from "./framing.ts"
import { EncodedItem } from "./waiting.ts"

export interface Transport {
  /** Completes when the frame is on its way: false when the connection is closed and it never will be. */
  readonly send: (frame: string) => Effect.Effect<boolean>
  /** Gives each frame to the handler, one after another, and completes when the connection is closed. */
  readonly run: (onFrame: (frame: string) => Effect.Effect<void>) => Effect.Effect<void>
  readonly close: Effect.Effect<void>
  /** Closes after telling the peer why, as far as it still reads. Whatever else waited to be sent is dropped. */
  readonly dismiss: (reason: ServiceError) => Effect.Effect<void>
  /** Completes when the connection is closed and what had arrived by then is handled. */
  readonly closed: Effect.Effect<void>
  /** Longest frame in bytes; whoever sends checks it. */
  readonly frameLimit: number
}

/** The last frame to a peer that is sent away. */
export const farewell = (reason: ServiceError): string =>
  JSON.stringify({ _tag: "Goodbye", code: reason.code, message: reason.message })

const Goodbye = Schema.Struct({ _tag: Schema.Literal("Goodbye"), code: ServiceErrorCode, message: Schema.String })
const decodeGoodbye = Schema.decodeUnknownOption(Goodbye)

/** Why the peer sent us away; undefined for any other frame. */
const asFarewell = (message: { readonly _tag: string }): ServiceError | undefined => {
  if (message._tag !== "Goodbye") return undefined
  const { code, message: words } = Option.getOrElse(decodeGoodbye(message), () => ({
    code: "disconnected" as const,
    message: "The far side closed the connection."
  }))
  return new ServiceError({ code, message: words })
}

/**
 * What a side has sent when it says so. A stream never loses or repeats a frame, but what stands between two hosts may; then
 * a subscription would wait forever for what is lost. The client asks now and then, and a connection whose counts differ
 * is closed.
 */
interface Tally {
  readonly _tag: "Tally" | "Tallied"
  readonly sent: number
}

const asTally = (message: { readonly _tag: string }): Tally | undefined =>
  (message._tag === "Tally" || message._tag === "Tallied") && "sent" in message && typeof message.sent === "number"
    ? { _tag: message._tag, sent: message.sent }
    : undefined

const miscounted = new ServiceError({
  code: "disconnected",
  message: "Frames were lost or repeated on the way; the connection is made anew."
})

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
  transport: Transport,
  link: {
    readonly onFarewell: (reason: ServiceError) => void
    /** Is given the effect that compares the counts of both sides. */
    readonly onCheck: (check: Effect.Effect<void>) => void
  }
): Effect.Effect<RpcClient.Protocol["Service"], never, Scope.Scope> =>
  RpcClient.Protocol.make(Effect.fnUntraced(function*(write) {
    // Known from its first message: the answer can be there before the client has begun to listen, and is kept for it.
    const clients = new Set<number>()
    const everyone = (message: FromServerEncoded) =>
      Effect.forEach([...clients], (id) => write(id, message), { discard: true })
    let sent = 0
    let received = 0
    link.onCheck(Effect.suspend(() => Effect.asVoid(transport.send(JSON.stringify({ _tag: "Tally", sent })))))
    yield* transport.run((frame) => {
      const message = parse(frame)
      if (!isMessage(message)) return garbage(transport, "The host")
      const reason = asFarewell(message)
      if (reason !== undefined) {
        link.onFarewell(reason)
        return transport.close
      }
      const tally = asTally(message)
      if (tally !== undefined) return tally.sent === received ? Effect.void : transport.dismiss(miscounted)
      received++
      // What the far side of this connection says is checked by `effect/rpc` and by the codecs of the wire.
      return everyone(message as FromServerEncoded)
    }).pipe(
      Effect.andThen(Effect.suspend(() => everyone({ _tag: "ClientProtocolError", error: lost() }))),
      Effect.forkScoped
    )
    return {
      send: (id, message) =>
        Effect.suspend(() => {
          clients.add(id)
          const frame = JSON.stringify(message)
          if (tooLong(frame, transport.frameLimit)) return Effect.fail(tooLarge(transport.frameLimit))
          return Effect.flatMap(transport.send(frame), (taken) => {
            if (!taken) return Effect.fail(lost())
            sent++
            return Effect.void
          })
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

/** The reason of a client error that is the sender's own refusal; its `cause` is what the caller is told. */
const tooLarge = (limit: number) =>
  new RpcClientError.RpcClientError({
    reason: new RpcClientError.RpcClientDefect({ message: "The frame is too large.", cause: overlong(limit) })
  })

const overlong = (limit: number): ServiceError =>
  new ServiceError({
    code: "overloaded",
    message: `This takes more than ${limit} bytes, which is the limit of a message; send it in parts.`
  })

/** What a failed send means to a caller. */
export const refusalOf = (error: RpcClientError.RpcClientError): ServiceError | undefined =>
  error.reason._tag === "RpcClientDefect" && error.reason.cause instanceof ServiceError ? error.reason.cause : undefined

/** The server's side over one transport, which is one client. */
export const serverProtocol = (
  transport: Transport
): Effect.Effect<RpcServer.Protocol["Service"], never, Scope.Scope> =>
  RpcServer.Protocol.make(Effect.fnUntraced(function*(write) {
    const disconnects = yield* Queue.unbounded<number>()
    let sent = 0
    let received = 0
    let newest = -1
    const send = (frame: string): Effect.Effect<void> =>
      Effect.map(transport.send(frame), () => {
        sent++
      })
    yield* transport.run((frame) => {
      const message = parse(frame)
      if (!isMessage(message)) return garbage(transport, "A client")
      if (asFarewell(message) !== undefined) return transport.close
      const tally = asTally(message)
      if (tally !== undefined) {
        return tally.sent === received
          ? Effect.asVoid(transport.send(JSON.stringify({ _tag: "Tallied", sent })))
          : transport.dismiss(miscounted)
      }
      received++
      // A request that comes twice would be done twice.
      const id = message._tag === "Request" && "id" in message ? message.id : undefined
      if (typeof id === "number") {
        if (id <= newest) return transport.dismiss(miscounted)
        newest = id
      }
      // It interrupts itself over a request that it has, or after the end; that must not end the reading.
      return Effect.catchCause(write(0, message as FromClientEncoded), () => Effect.void)
    }).pipe(
      Effect.ensuring(Effect.sync(() => Queue.offerUnsafe(disconnects, 0))),
      Effect.forkScoped
    )
    return {
      disconnects,
      send: (_id, message) =>
        Effect.suspend(() => {
          const frame = encode(message)
          if (!tooLong(frame, transport.frameLimit)) return send(frame)
          if (message._tag !== "Exit" && message._tag !== "Chunk") return transport.dismiss(overlong(transport.frameLimit))
          const answer = send(JSON.stringify(refused(message.requestId, overlong(transport.frameLimit))))
          // The stream behind a chunk that cannot be sent has nobody to send to.
          return message._tag === "Exit"
            ? answer
            : Effect.andThen(answer, write(0, { _tag: "Interrupt", requestId: message.requestId }))
        }),
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

/** Items of a subscription are text already; everything else becomes it here. */
const encode = (message: FromServerEncoded): string => {
  if (message._tag !== "Chunk") return JSON.stringify(message)
  const values = message.values.map((value) => value instanceof EncodedItem ? value.text : JSON.stringify(value))
  return `{"_tag":"Chunk","requestId":${JSON.stringify(message.requestId)},"values":[${values.join(",")}]}`
}

/** An answer that says, in the form of the wire, why there is none. */
const refused = (requestId: string | number, error: ServiceError) => ({
  _tag: "Exit",
  requestId,
  exit: {
    _tag: "Failure",
    cause: [{ _tag: "Fail", error: { type: "service", code: error.code, message: error.message } }]
  }
})

const garbage = (transport: Transport, who: string): Effect.Effect<void> =>
  Effect.andThen(
    Effect.logWarning(`${who} sent a frame that is no message; the connection is closed.`),
    transport.dismiss(new ServiceError({ code: "invalid_arguments", message: "A frame was no message." }))
  )
