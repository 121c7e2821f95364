/**
 * `fetch` over Node's own HTTP client, as far as provider packages use it.
 *
 * The platform's fetch hands on each piece of a chunked body by itself, through several promises; a model sends a piece per
 * delta. Here a read of the body gives all that has arrived, and loading it costs a tenth. It uses the global agents, so
 * connections are kept and a proxy is used where Node is told to (`NODE_USE_ENV_PROXY`). It never follows a redirect. What
 * it cannot do (a body that is a form or a stream, another protocol) the platform's fetch does.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http"
import type { Readable } from "node:stream"
import { HttpHeaders, HttpResponse } from "./http-response.ts"

/** Milliseconds until a connection must be there. */
const connectMillis = 10_000
/** Milliseconds that a server may be silent: from the request to its answer, and while somebody waits for more of that. */
const silentMillis = 300_000

/** Through `getBuiltinModule`, for an import of the module reads all of its members, of which some load the platform's fetch. */
const load = (secure: boolean) =>
  secure ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http")

export const httpFetch: typeof globalThis.fetch = async (input, init = {}) => {
  const body = init.body ?? null
  const plain = body === null || typeof body === "string" || body instanceof Uint8Array
  if (!plain || typeof input !== "string" && !(input instanceof URL)) return globalThis.fetch(input, init)
  const url = parse(input)
  if (url.protocol !== "http:" && url.protocol !== "https:") return globalThis.fetch(input, init)
  const signal = init.signal ?? null
  signal?.throwIfAborted()
  const headers = new HttpHeaders(init.headers ?? undefined)
  if (!headers.has("accept")) headers.set("accept", "*/*")
  const method = (init.method ?? "GET").toUpperCase()
  const message = await send(url, { method, headers: Object.fromEntries(headers) }, body, signal)
  return toResponse(url, method, message, signal)
}

const parse = (input: string | URL): URL => {
  try {
    return new URL(input)
  } catch (cause) {
    throw failed(cause)
  }
}

/** The words by which callers of fetch know that there was no answer at all. */
const failed = (cause: unknown): TypeError => new TypeError("fetch failed", { cause })

const coded = (message: string, code: string): Error => Object.assign(new Error(message), { code })

const send = (
  url: URL,
  options: RequestOptions,
  body: string | Uint8Array | null,
  signal: AbortSignal | null
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    let answered = false
    let request: ClientRequest
    try {
      request = load(url.protocol === "https:").request(url, options)
    } catch (cause) {
      return reject(failed(cause))
    }
    const abort = () => request.destroy()
    const timer = setTimeout(
      () => request.destroy(coded(`no connection within ${connectMillis / 1_000} s`, "ETIMEDOUT")),
      connectMillis
    )
    const connected = () => clearTimeout(timer)
    request.once("socket", (socket) => {
      if (socket.connecting) socket.once("connect", connected)
      else connected()
    })
    const silent = setTimeout(() => request.destroy(silence()), silentMillis)
    // Stays for as long as the request lives: a request without one who listens would end the process.
    request.on("error", (error) => {
      if (answered) return
      if (signal?.aborted === true) reject(signal.reason)
      // The server has closed a connection that was kept, before it read this; the next one is another, at last a new one.
      else if (request.reusedSocket && isClosed(error)) resolve(send(url, options, body, signal))
      else reject(failed(error))
    })
    request.once("close", () => {
      connected()
      clearTimeout(silent)
      signal?.removeEventListener("abort", abort)
    })
    request.once("response", (message) => {
      // From here on the message says what becomes of it.
      answered = true
      clearTimeout(silent)
      resolve(message)
    })
    signal?.addEventListener("abort", abort, { once: true })
    request.end(body ?? undefined)
  })

const isClosed = (error: Error): boolean => "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE")

const silence = (): Error => coded(`nothing was heard for ${silentMillis / 1_000} s`, "ESILENT")

const toResponse = (url: URL, method: string, message: IncomingMessage, signal: AbortSignal | null): HttpResponse => {
  const headers = new HttpHeaders()
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2) {
    headers.append(message.rawHeaders[index] ?? "", message.rawHeaders[index + 1] ?? "")
  }
  const status = message.statusCode ?? 0
  const empty = method === "HEAD" || status === 204 || status === 205 || status === 304
  if (empty) message.resume()
  return new HttpResponse(empty ? null : toBody(message, headers.get("content-encoding"), signal), {
    status,
    statusText: message.statusMessage ?? "",
    headers,
    url: url.href
  })
}

/** A body whose reads give all that has arrived. A reader that does not read stops the connection's flow. */
const toBody = (
  message: IncomingMessage,
  encoding: string | null,
  signal: AbortSignal | null
): ReadableStream<Uint8Array> => {
  const source = decoded(message, encoding)
  let ended = false
  let error: unknown = null
  let wake: (() => void) | null = null
  const notify = () => {
    wake?.()
    wake = null
  }
  const fail = (cause: unknown) => {
    error ??= signal?.aborted === true ? signal.reason : broken(cause)
    notify()
  }
  source.on("readable", notify)
  source.once("end", () => {
    ended = true
    notify()
  })
  source.on("error", fail)
  if (source !== message) message.on("error", fail)
  // A destroyed message ends without an error of its own where it was we who closed.
  message.once("close", () => {
    if (!message.complete) fail(null)
  })
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      for (;;) {
        // Without a size it might be the first of what has arrived; more than the mark would raise the mark.
        const size = Math.min(source.readableLength, source.readableHighWaterMark)
        const chunk: unknown = source.read(size === 0 ? undefined : size)
        if (chunk instanceof Uint8Array) return controller.enqueue(chunk)
        if (error !== null) throw error
        if (ended) return controller.close()
        const silent = setTimeout(() => {
          fail(silence())
          message.destroy()
        }, silentMillis)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        clearTimeout(silent)
      }
    },
    cancel: () => {
      message.destroy()
      source.destroy()
    }
  }, { highWaterMark: 0 })
}

const broken = (cause: unknown): Error => {
  const known = cause instanceof Error && cause.message !== "aborted"
  return known ? cause : coded("the other side closed it too early", "ECONNRESET")
}

/** Nothing is asked for, but some servers and proxies compress all the same. */
const decoded = (message: IncomingMessage, encoding: string | null): Readable => {
  const zlib = () => process.getBuiltinModule("node:zlib")
  switch (encoding?.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
    case "deflate":
      return message.pipe(
        zlib().createUnzip({ flush: zlib().constants.Z_SYNC_FLUSH, finishFlush: zlib().constants.Z_SYNC_FLUSH })
      )
    case "br":
      return message.pipe(zlib().createBrotliDecompress({ flush: zlib().constants.BROTLI_OPERATION_FLUSH }))
    default:
      return message
  }
}
