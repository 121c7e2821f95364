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
import { ClientCalls } from "./call-client.ts"
import { tooLong } from "./framing.ts"
import type { OnFrame } from "./inbox.ts"
import { Parts, partsOf } from "./parts.ts"
import type { ServedCalls } from "./served-calls.ts"
import { EncodedItem } from "./waiting.ts"

export interface Transport {
  /** Whether the frame is on its way; false when the connection is closed and it never will be. */
  readonly post: (frame: string) => boolean
  /** The same as an effect. */
  readonly send: (frame: string) => Effect.Effect<boolean>
  /** Gives each frame to the handler, one after another, and completes when the connection is closed. */
  readonly run: (onFrame: OnFrame) => Effect.Effect<void>
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

/** So many checks in a row without a frame of the host: where a network swallows all of them, nothing else tells. */
const patience = 6

const unheard = new ServiceError({
  code: "disconnected",
  message: "Nothing has come from the host for a while, not even to what it is asked; the connection is made anew."
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

/** What a link gets of its transport beside `effect/rpc`. */
export interface ClientParts {
  readonly calls: ClientCalls
  /** For `effect/rpc`, so that its numbers are none of the calls'. */
  readonly nextId: () => number
  /** Compares the counts of both sides; closes the connection to a host of which nothing has come for some checks. */
  readonly check: Effect.Effect<void>
  /** Why the far side closed the connection, if it said so. */
  readonly farewell: () => ServiceError | null
}

/** The client's side over one transport. Calls in flight fail when it closes. */
export const clientProtocol = (
  transport: Transport
): Effect.Effect<readonly [RpcClient.Protocol["Service"], ClientParts], never, Scope.Scope> =>
  Effect.gen(function*() {
    let sent = 0
    let ids = 0
    let unanswered = 0
    let reason: ServiceError | null = null
    const post = (frame: string): ServiceError | null => {
      if (tooLong(frame, transport.frameLimit)) return overlong(transport.frameLimit)
      if (!transport.post(frame)) return disconnected()
      sent++
      return null
    }
    const nextId = () => ids++
    const calls = new ClientCalls({ post, nextId })
    yield* Effect.addFinalizer(() => Effect.sync(() => calls.fail(disconnected())))
    const protocol = yield* RpcClient.Protocol.make(Effect.fnUntraced(function*(write) {
      // Known from its first message: the answer can be there before the client has begun to listen, and is kept for it.
      const clients = new Set<number>()
      const everyone = (message: FromServerEncoded) =>
        Effect.forEach([...clients], (id) => write(id, message), { discard: true })
      let received = 0
      const parts = new Parts(transport.frameLimit)
      yield* transport.run((frame) => {
        unanswered = 0
        let message = parse(frame)
        if (!isMessage(message)) return garbage(transport, "The host")
        if (message._tag === "Part") {
          const whole = parts.take(message)
          if (whole === "wrong") return garbage(transport, "The host")
          // The last one counts as the message that it completes.
          if (whole === "more") {
            received++
            return null
          }
          message = parse(whole.text)
          if (!isMessage(message)) return garbage(transport, "The host")
        }
        const parting = asFarewell(message)
        if (parting !== undefined) {
          reason = parting
          return transport.close
        }
        const tally = asTally(message)
        if (tally !== undefined) return tally.sent === received ? null : transport.dismiss(miscounted)
        received++
        if (calls.answer(message)) return null
        // What the far side of this connection says is checked by `effect/rpc` and by the codecs of the wire.
        return everyone(message as FromServerEncoded)
      }).pipe(
        Effect.andThen(Effect.suspend(() => {
          calls.fail(disconnected())
          return everyone({ _tag: "ClientProtocolError", error: refusedToSend(disconnected()) })
        })),
        Effect.forkScoped
      )
      return {
        send: (id, message) =>
          Effect.suspend(() => {
            clients.add(id)
            const refused = post(JSON.stringify(message))
            return refused === null ? Effect.void : Effect.fail(refusedToSend(refused))
          }),
        supportsAck: true,
        supportsTransferables: false,
        codecFor: RpcSerialization.json.codecFor
      }
    }))
    const check = Effect.suspend(() => {
      if (unanswered++ >= patience) {
        reason = unheard
        return transport.close
      }
      transport.post(JSON.stringify({ _tag: "Tally", sent }))
      return Effect.void
    })
    return [protocol, { calls, nextId, check, farewell: () => reason }]
  })

export const disconnected = (): ServiceError =>
  new ServiceError({
    code: "disconnected",
    message: "The connection to the host was lost, or is not there; whether the host applied the call is not known."
  })

/** An error of the protocol that says what its callers are told. */
const refusedToSend = (cause: ServiceError) =>
  new RpcClientError.RpcClientError({ reason: new RpcClientError.RpcClientDefect({ message: cause.message, cause }) })

const overlong = (limit: number): ServiceError =>
  new ServiceError({
    code: "overloaded",
    message: `This takes more than ${limit} bytes, which is the limit of a message; send it in parts.`,
    data: { maxBytes: limit }
  })

/** What a failed send means to a caller. */
export const refusalOf = (error: RpcClientError.RpcClientError): ServiceError | undefined =>
  error.reason._tag === "RpcClientDefect" && error.reason.cause instanceof ServiceError ? error.reason.cause : undefined

/** The server's side over one transport, which is one client. */
export const serverProtocol = (
  transport: Transport,
  calls: ServedCalls
): Effect.Effect<RpcServer.Protocol["Service"], never, Scope.Scope> =>
  RpcServer.Protocol.make(Effect.fnUntraced(function*(write) {
    const disconnects = yield* Queue.unbounded<number>()
    let sent = 0
    let received = 0
    let newest = -1
    const post = (frame: string): void => {
      transport.post(frame)
      sent++
    }
    /** Sends an answer, or in its place the reason why it cannot be sent. */
    const answer = (frame: string, requestId: string | number): boolean => {
      const fits = !tooLong(frame, transport.frameLimit)
      post(fits ? frame : JSON.stringify(refused(requestId, overlong(transport.frameLimit))))
      return fits
    }
    calls.over((frame, requestId) => void answer(frame, requestId))
    yield* transport.run((frame) => {
      const message = parse(frame)
      if (!isMessage(message)) return garbage(transport, "A client")
      if (asFarewell(message) !== undefined) return transport.close
      const tally = asTally(message)
      if (tally !== undefined) {
        if (tally.sent !== received) return transport.dismiss(miscounted)
        transport.post(JSON.stringify({ _tag: "Tallied", sent }))
        return null
      }
      received++
      // A request that comes twice would be done twice.
      const id = message._tag === "Request" && "id" in message ? message.id : undefined
      if (typeof id === "number") {
        if (id <= newest) return transport.dismiss(miscounted)
        newest = id
      }
      if (calls.take(message)) return null
      // It interrupts itself over a request that it has, or after the end; that must not end the reading.
      return Effect.catchCause(write(0, message as FromClientEncoded), () => Effect.void)
    }).pipe(
      Effect.ensuring(Effect.sync(() => {
        Queue.offerUnsafe(disconnects, 0)
        calls.end()
      })),
      Effect.forkScoped
    )
    return {
      disconnects,
      send: (_id, message) =>
        Effect.suspend(() => {
          const frame = encode(message)
          if (message._tag !== "Exit" && message._tag !== "Chunk") {
            if (tooLong(frame, transport.frameLimit)) return transport.dismiss(overlong(transport.frameLimit))
            post(frame)
            return Effect.void
          }
          const parts = message._tag === "Chunk" && tooLong(frame, transport.frameLimit)
            ? partsOf(frame, transport.frameLimit)
            : null
          if (parts !== null) {
            for (const part of parts) post(part)
            return Effect.void
          }
          // The stream behind a chunk that cannot be sent has nobody to send to.
          return answer(frame, message.requestId) || message._tag === "Exit"
            ? Effect.void
            : write(0, { _tag: "Interrupt", requestId: message.requestId })
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
