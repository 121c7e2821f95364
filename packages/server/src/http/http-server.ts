/**
 * The HTTP server: a port of Node that takes requests for the API and upgrades for its hook, behind one guard.
 *
 *     connection ──▶ guard: host, origin, token ──▶ API or hook ──▶ one answer
 *                      └ refused: the same shape of error, and nothing behind it sees the request
 *
 * Everything that a client can hold on to is bounded: headers, bodies, connections, requests at a time, and what waits for a
 * reader who does not read. Every request that was taken gets an answer, also while the server closes.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import type { Caller, Tokens } from "../serve/caller.ts"
import { AddressUnavailable, explain, urlHost } from "../serve/listen.ts"
import { endWith, type Headers, type HttpApi, type Responder } from "./api.ts"
import { ApiFailure, failure } from "./failure.ts"
import { type Guard, makeGuard, preflightHeaders, tokenOf } from "./guard.ts"
import type { Metrics } from "./metrics.ts"
import type { StaticPages } from "./pages.ts"
import { refuseUpgrade, socketRefusals } from "./raw-answers.ts"
import { streamWriter } from "./stream-writer.ts"

export interface HttpLimits {
  /** Bytes of a body; default 32 MiB. */
  readonly bodyBytes: number
  /** Bytes of all headers; default 16 KiB. */
  readonly headerBytes: number
  /** For the headers of a request; default 10 s. */
  readonly headersMillis: number
  /** For a request whole; default 60 s. */
  readonly requestMillis: number
  /** Connections at a time; default 2,000. */
  readonly connections: number
  /** Requests at a time whose answer is not an event stream; default 1,000. */
  readonly requests: number
  /** Bytes that wait for a reader before its stream waits too; default 256 KiB. */
  readonly waitingBytes: number
  /** How long a stream waits for a reader who does not read before it ends; default 60 s. */
  readonly stalledMillis: number
  /** For requests that are under way when the server closes; default 2 s. */
  readonly closingMillis: number
  /** How long connections on which nothing is under way are heard out then; default 250 ms. */
  readonly lingerMillis: number
  /** Failed authentications of one address in a minute; default 20. */
  readonly failuresPerMinute: number
}

export const defaultLimits: HttpLimits = {
  bodyBytes: 32 * 1_048_576,
  headerBytes: 16_384,
  headersMillis: 10_000,
  requestMillis: 60_000,
  connections: 2_000,
  requests: 1_000,
  waitingBytes: 262_144,
  stalledMillis: 60_000,
  closingMillis: 2_000,
  lingerMillis: 250,
  failuresPerMinute: 20
}

export interface HttpServerOptions {
  readonly tokens: Tokens
  /** Default 127.0.0.1. Binding beyond loopback is the caller's decision to make. */
  readonly host?: string
  /** Default 0: any that is free. */
  readonly port?: number
  readonly allowedHosts?: ReadonlyArray<string>
  readonly allowedOrigins?: ReadonlyArray<string>
  readonly limits?: Partial<HttpLimits>
  /** Takes a WebSocket upgrade of `/rpc` whose caller has the scope for it. Without it, there is no such route. */
  readonly onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller) => void
}

export interface HttpServer {
  readonly host: string
  readonly port: number
  /** `http://127.0.0.1:4096`. */
  readonly url: string
}

const publicPaths: ReadonlySet<string> = new Set(["/health", "/login"])

const common = { "cache-control": "no-store", "x-content-type-options": "nosniff" }

const readBody = (request: IncomingMessage, limit: number): Effect.Effect<Uint8Array, ApiFailure> =>
  Effect.callback((resume) => {
    const tooLarge = () =>
      resume(Effect.fail(
        new ApiFailure({
          code: "too_large",
          message: `The body is larger than ${limit} bytes.`,
          headers: { connection: "close" }
        })
      ))
    if (Number(request.headers["content-length"] ?? 0) > limit) return tooLarge()
    const chunks: Array<Buffer> = []
    let length = 0
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (length <= limit) chunks.push(chunk)
      else {
        request.pause()
        tooLarge()
      }
    })
    request.on(
      "end",
      () => resume(Effect.succeed(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)))
    )
    request.on("error", () => resume(Effect.fail(failure("invalid_request", "The body ended before it was whole."))))
  })

const responderOf = (
  response: ServerResponse,
  extra: Headers,
  limits: HttpLimits,
  metrics: Metrics,
  streaming: () => void,
  isClosing: () => boolean
): Responder => ({
  end: (status, headers, body) => {
    if (response.headersSent) return
    const last = isClosing() ? { connection: "close" } : {}
    response.writeHead(status, { ...common, ...extra, "content-length": Buffer.byteLength(body), ...headers, ...last })
    response.end(body)
  },
  open: (status, headers) => {
    streaming()
    response.writeHead(status, { ...common, ...extra, "x-accel-buffering": "no", ...headers })
    response.flushHeaders()
    return streamWriter(response, { ...limits, dropped: metrics.streams.dropped })
  }
})

interface Parts {
  readonly api: HttpApi
  readonly pages: StaticPages
  readonly metrics: Metrics
  readonly guard: Guard
  readonly limits: HttpLimits
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
}

/** Requests under way, so that closing can wait for them, and then end them. */
interface UnderWay {
  readonly fiber: Fiber.Fiber<void>
  readonly respond: Responder
  isStream: boolean
}

const requestListener = ({ api, guard, limits, metrics, pages, run }: Parts) => {
  const underWay = new Set<UnderWay>()
  let count = 0
  let closing = false

  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const { headers, refusal } = guard.admit(request)
    const entry: { isStream: boolean } = { isStream: false }
    const respond = responderOf(response, headers, limits, metrics, () => {
      entry.isStream = true
      count--
      metrics.streams.opened()
      response.once("close", metrics.streams.closed)
    }, () => closing)
    response.on("error", () => {})
    // An answer without its request read whole: what is left of the body must not hold the connection.
    response.once("finish", () => {
      if (!request.complete) request.socket.destroySoon()
    })
    if (refusal !== null) return endWith(refusal, respond)
    const { method = "", url = "" } = request
    if (method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined) {
      return respond.end(204, preflightHeaders, "")
    }
    const page = method === "GET" ? pages(url) : null
    if (page !== null) return respond.end(200, page.headers, page.text)
    if (closing) return endWith(failure("unavailable", "The server is closing."), respond)
    if (count >= limits.requests) {
      return endWith(
        new ApiFailure({
          code: "overloaded",
          message: `The server works on ${limits.requests} requests already; try again in a moment.`,
          headers: { "retry-after": "1" }
        }),
        respond
      )
    }
    // What is public is asked for without a token, which is no failed attempt.
    const token = tokenOf(request)
    const isPublic = token === null && publicPaths.has(url.split("?", 1)[0] ?? "")
    const caller = isPublic
      ? failure("unauthorized", "The request shows no token.")
      : guard.authenticate(request, token)
    count++
    const fiber = run(api.handle({
      method,
      target: url,
      header: (name) => {
        const value = request.headers[name]
        return Array.isArray(value) ? value.join(", ") : value
      },
      body: readBody(request, limits.bodyBytes),
      caller,
      refuse: (why) => guard.refuse(request, why)
    }, respond))
    const item: UnderWay = Object.assign(entry, { fiber, respond })
    underWay.add(item)
    fiber.addObserver(() => {
      underWay.delete(item)
      if (!item.isStream) count--
      // A stream that has said everything, or an answer that nobody could give any more.
      if (!response.writableEnded) response.end()
    })
    response.once("close", () => {
      if (!response.writableFinished) fiber.interruptUnsafe()
    })
  }

  const drain = Effect.gen(function*() {
    closing = true
    for (const { fiber, isStream } of underWay) if (isStream) fiber.interruptUnsafe()
    const rest = [...underWay].map(({ fiber }) => fiber)
    yield* Effect.timeoutOption(Fiber.awaitAll(rest), limits.closingMillis)
    for (const { fiber, respond } of underWay) {
      endWith(failure("unavailable", "The server closed before the request was answered."), respond)
      fiber.interruptUnsafe()
    }
    yield* Fiber.awaitAll([...underWay].map(({ fiber }) => fiber))
  })

  return { listener, drain }
}

const upgradeListener =
  (guard: Guard, onUpgrade: HttpServerOptions["onUpgrade"]) =>
  (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on("error", () => {})
    const { refusal } = guard.admit(request)
    if (refusal !== null) return refuseUpgrade(socket, refusal)
    const caller = guard.authenticate(request, tokenOf(request))
    if (caller instanceof ApiFailure) return refuseUpgrade(socket, caller)
    if (onUpgrade === undefined || (request.url ?? "").split("?", 1)[0] !== "/rpc") {
      return refuseUpgrade(socket, failure("not_found", "Only /rpc takes WebSockets."))
    }
    if (caller.scope !== "admin") {
      return refuseUpgrade(
        socket,
        failure("forbidden", `This needs a token of scope admin; the one that was shown has ${caller.scope}.`)
      )
    }
    onUpgrade(request, socket, head, caller)
  }

const listen = (server: Server, host: string, port: number): Effect.Effect<number, AddressUnavailable> =>
  Effect.callback((resume) => {
    const refused = (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new AddressUnavailable({ message: explain({ host, port }, error) })))
    server.once("error", refused)
    server.listen({ host, port }, () => {
      server.off("error", refused)
      // Of single connections; the server itself goes on.
      server.on("error", () => {})
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port))
    })
  })

/**
 * Completes when nobody is connected any more, or the time is up. A client that has just sent a request, on a connection that
 * it has kept, is told that the server closes; if the connection were closed under it, it could not know what became of its
 * request.
 */
const whenNone = (server: Server, millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const end = performance.now() + millis
    const look = () => {
      server.getConnections((_, count) => {
        if (count > 0 && performance.now() < end) setTimeout(look, 10)
        else resume(Effect.void)
      })
    }
    look()
  })

/** Listens for the length of the scope. */
export const makeHttpServer = (
  parts: { readonly api: HttpApi; readonly pages: StaticPages; readonly metrics: Metrics },
  options: HttpServerOptions
): Effect.Effect<HttpServer, AddressUnavailable, Scope.Scope> =>
  Effect.gen(function*() {
    const limits = { ...defaultLimits, ...options.limits }
    const host = options.host ?? "127.0.0.1"
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const guard = makeGuard({
      tokens: options.tokens,
      host,
      allowedHosts: options.allowedHosts ?? [],
      allowedOrigins: options.allowedOrigins ?? [],
      failuresPerMinute: limits.failuresPerMinute,
      refusedToken: parts.metrics.refusedToken,
      log: (message) => {
        run(Effect.logWarning(message))
      }
    })
    const { drain, listener } = requestListener({ ...parts, guard, limits, run })
    const server = createServer({
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMillis,
      requestTimeout: limits.requestMillis,
      connectionsCheckingInterval: Math.min(2_000, limits.headersMillis),
      highWaterMark: 65_536,
      // Longer than clients keep theirs, or a request would now and then meet a connection that is being closed.
      keepAliveTimeout: 75_000,
      // A missing one is refused by the guard, in the shape of all errors.
      requireHostHeader: false,
      noDelay: true
    }, listener)
    server.maxConnections = limits.connections
    const upgrade = upgradeListener(guard, options.onUpgrade)
    // Node closes no connection that has become something else, and waits for it.
    const upgraded = new Set<Duplex>()
    server.on("upgrade", (request, socket, head) => {
      upgraded.add(socket)
      socket.once("close", () => upgraded.delete(socket))
      upgrade(request, socket, head)
    })
    server.on("clientError", socketRefusals(limits.headerBytes))
    const port = yield* Effect.acquireRelease(
      listen(server, host, options.port ?? 0),
      () =>
        Effect.gen(function*() {
          yield* drain
          for (const socket of upgraded) socket.destroy()
          yield* whenNone(server, limits.lingerMillis)
          const closed = new Promise<void>((resolve) => {
            server.close(() => resolve())
          })
          server.closeAllConnections()
          yield* Effect.promise(() => closed)
        })
    )
    return { host, port, url: `http://${urlHost(host)}:${port}` }
  })
