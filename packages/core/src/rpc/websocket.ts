/**
 * WebSockets: one message is one frame. The client's side works in any runtime with a `WebSocket`; the server's side takes
 * the upgrades of a Node server. Whoever listens authenticates before it accepts: the socket itself proves nothing.
 *
 * A server pings its clients, so one that vanished without a word is noticed. What a browser has no means for, such as
 * holding up what arrives, is not promised there.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { ServiceError } from "../service/index.ts"
import { defaultFrameLimit, makeFramed } from "./framed.ts"
import type { FrameOptions } from "./framed.ts"
import { tooLong } from "./framing.ts"
import type { Transport } from "./transport.ts"

/** Bytes that may stand in the socket's own buffer before more waits here. */
const highWater = 262_144

/** How long a client may be silent, without even answering a ping. */
const heartbeatMillis = 30_000

export interface ConnectWebSocketOptions extends FrameOptions {
  readonly protocols?: ReadonlyArray<string>
  /** Headers of the request, as for a token. Node sends them; browsers have no means to, and there they are refused. */
  readonly headers?: { readonly [name: string]: string }
}

/** For `ConnectionOptions.connect`: one connection to a `ws:` or `wss:` address. Its scope closes it. */
export const connectWebSocket = (
  url: string,
  options: ConnectWebSocketOptions = {}
): Effect.Effect<Transport, ServiceError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<WebSocket, ServiceError>((resume) => {
      let socket: WebSocket
      try {
        const { headers, protocols = [] } = options
        socket = headers === undefined
          ? new WebSocket(url, [...protocols])
          : new WebSocket(url, { protocols: [...protocols], headers })
      } catch {
        return resume(Effect.fail(unreachable(url)))
      }
      const refuse = () => resume(Effect.fail(unreachable(url)))
      socket.addEventListener("error", refuse)
      socket.addEventListener("close", refuse)
      socket.addEventListener("open", () => {
        socket.removeEventListener("error", refuse)
        socket.removeEventListener("close", refuse)
        resume(Effect.succeed(socket))
      }, { once: true })
      return Effect.sync(() => socket.close())
    }),
    (socket) => Effect.sync(() => socket.close())
  ).pipe(Effect.map((socket) => clientTransport(socket, options)))

const unreachable = (url: string): ServiceError =>
  new ServiceError({ code: "disconnected", message: `No host answers on ${withoutSecrets(url)}.` })

/** A query may hold a token. */
const withoutSecrets = (url: string): string => url.replace(/[?#].*$/s, "").replace(/\/\/[^/@]*@/, "//")

const clientTransport = (socket: WebSocket, options: FrameOptions): Transport => {
  const limit = options.frameLimit ?? defaultFrameLimit
  let polling: ReturnType<typeof setInterval> | undefined
  const framed = makeFramed(
    {
      write: (frames) => {
        for (const frame of frames) socket.send(frame)
        if (socket.bufferedAmount < highWater) return true
        // The interface says nothing when its buffer has room again.
        polling ??= setInterval(() => {
          if (socket.bufferedAmount >= highWater) return
          clearInterval(polling)
          polling = undefined
          framed.drained()
        }, 5)
        return false
      },
      end: () => socket.close(1_000),
      destroy: () => socket.close(1_000)
    },
    null,
    options
  )
  socket.addEventListener("message", (event) => {
    const frame: unknown = event.data
    if (typeof frame !== "string") framed.binary()
    else if (tooLong(frame, limit)) framed.oversized()
    else framed.received([frame])
  })
  socket.addEventListener("close", () => {
    clearInterval(polling)
    framed.gone()
  })
  return framed.transport
}

/** The part of an accepted socket that is used; `ws` has it. */
interface ServerSocket {
  readonly bufferedAmount: number
  send(data: string, done: (error?: Error) => void): void
  close(code?: number, reason?: string): void
  terminate(): void
  pause(): void
  resume(): void
  ping(): void
  on(event: "message", listener: (data: { toString(): string }, isBinary: boolean) => void): unknown
  on(event: "close" | "pong" | "error", listener: () => void): unknown
}

/**
 * Why a client is sent away, for those who do not read frames: the numbers are of RFC 6455 and of IANA's registry. What is
 * not here breaks the rules of this server (1008).
 */
const closeCodes: { readonly [code in ServiceError["code"]]?: number } = {
  internal: 1_011,
  overloaded: 1_013,
  timeout: 1_013,
  unavailable: 1_013
}

/** The protocol allows 123 bytes. */
const closeText = (message: string): string => {
  let text = message
  while (Buffer.byteLength(text) > 123) text = text.slice(0, -1)
  return text
}

const serverTransport = (socket: ServerSocket, options: FrameOptions): Transport => {
  let inFlight = 0
  let blocked = false
  let alive = true
  const framed = makeFramed(
    {
      write: (frames) => {
        const sent = frames.reduce((length, frame) => length + frame.length, 0)
        inFlight += sent
        blocked = inFlight >= highWater
        let left = frames.length
        for (const frame of frames) {
          socket.send(frame, () => {
            if (--left > 0) return
            inFlight -= sent
            if (!blocked || inFlight >= highWater) return
            blocked = false
            framed.drained()
          })
        }
        return !blocked
      },
      end: (reason) => {
        if (reason === null) socket.close(1_000)
        else socket.close(closeCodes[reason.code] ?? 1_008, closeText(reason.message))
      },
      destroy: () => socket.terminate()
    },
    { pause: () => socket.pause(), resume: () => socket.resume() },
    options
  )
  const heartbeat = setInterval(() => {
    if (!alive) return socket.terminate()
    alive = false
    socket.ping()
  }, heartbeatMillis)
  heartbeat.unref()
  socket.on("pong", () => {
    alive = true
  })
  socket.on("message", (data, isBinary) => {
    alive = true
    if (isBinary) framed.binary()
    else framed.received([data.toString()])
  })
  socket.on("error", () => {})
  socket.on("close", () => {
    clearInterval(heartbeat)
    framed.gone()
  })
  return framed.transport
}

/**
 * Takes the upgrades of a Node server: `server.on("upgrade", (request, socket, head) => accept(request, socket, head))`
 * after the request was authenticated. The transport is served by `serve`; connections end with the scope.
 */
export const acceptWebSockets = (
  options: FrameOptions & { readonly serve: (transport: Transport, request: IncomingMessage) => void }
): Effect.Effect<(request: IncomingMessage, socket: Duplex, head: Buffer) => void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { WebSocketServer } = yield* Effect.promise(() => import("@effect/platform-node/NodeWS"))
    const server = yield* Effect.acquireRelease(
      Effect.sync(() =>
        new WebSocketServer({
          noServer: true,
          maxPayload: options.frameLimit ?? defaultFrameLimit,
          perMessageDeflate: false
        })
      ),
      (server) =>
        Effect.sync(() => {
          for (const client of server.clients) client.terminate()
          server.close()
        })
    )
    return (request, socket, head) =>
      server.handleUpgrade(request, socket, head, (client) => options.serve(serverTransport(client, options), request))
  })
