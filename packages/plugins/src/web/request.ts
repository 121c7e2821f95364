/**
 * One HTTP request to the public internet, bounded in size and time.
 *
 * The address that is connected to is what is judged, after DNS: every address that a name stands for must be public, and the
 * socket's own is looked at again. Through a proxy of the environment it is the proxy that connects; then what the name stands
 * for here is judged, if it stands for anything here. Nothing of this machine goes along: no cookies, no credentials, no referrer. A redirect is
 * followed on the same host only; whoever was asked about one host was not asked about another.
 */
import { ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { lookup as resolveName, type LookupAddress } from "node:dns"
import type * as http from "node:http"
import { isIP, type LookupFunction } from "node:net"
import type { Readable } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib"
import { isPrivateAddress } from "./address.ts"
import { proxyFor } from "./proxy.ts"

export interface WebResponse {
  readonly url: URL
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
  /** The body went on beyond the bound. */
  readonly cut: boolean
}

export interface WebRequest {
  readonly url: URL
  readonly maxBytes: number
  readonly maxSeconds: number
  /** Whether a host may be at an address that is not public. */
  readonly mayBePrivate: (url: URL) => boolean
}

const maxRedirects = 5

class Refused extends Error {}

/** What is wrong with a connection, in words. */
const reasons: { readonly [code: string]: string } = {
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "its name could not be looked up; is there a network?",
  ECONNREFUSED: "it refused the connection",
  ECONNRESET: "it broke the connection off",
  ETIMEDOUT: "it did not answer",
  EHOSTUNREACH: "it cannot be reached",
  ENETUNREACH: "it cannot be reached; is there a network?",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is signed by itself",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host"
}

const failure = (url: URL, cause: unknown): ToolFailure => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  const why = cause instanceof Refused
    ? cause.message
    : reasons[code] ?? (cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause))
  return new ToolFailure({ message: `Cannot fetch ${url.href.slice(0, 200)}: ${why}.` })
}

const refusal = (host: string, address: string) =>
  new Refused(
    `${host} is at ${address}, an address of this machine or of a private network, which is not fetched from (the setting web.privateHosts allows it)`
  )

const bare = (host: string): string => host.replace(/^\[|\]$/g, "")

/** Looks a name up and gives its addresses only if all of them are public. */
const publicLookup: LookupFunction = (host, options, callback) => {
  resolveName(host, { ...options, all: true }, (error, found) => {
    const addresses: ReadonlyArray<LookupAddress> = error === null ? found : []
    const wrong = addresses.find(({ address }) => isPrivateAddress(address))
    const [first] = addresses
    if (error !== null) callback(error, "", 0)
    else if (wrong !== undefined) callback(refusal(host, wrong.address), "", 0)
    else if (options.all === true) callback(null, [...addresses])
    else if (first === undefined) callback(new Refused(`${host} has no address`), "", 0)
    else callback(null, first.address, first.family)
  })
}

/** Loaded when it is needed: most runs fetch no page. */
const client = (protocol: string) =>
  protocol === "https:" ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http")

const decoded = (response: http.IncomingMessage): Readable => {
  switch (response.headers["content-encoding"]?.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return response.pipe(createGunzip())
    case "br":
      return response.pipe(createBrotliDecompress())
    case "deflate":
      return response.pipe(createInflate())
    default:
      return response
  }
}

const readBody = async (response: http.IncomingMessage, maxBytes: number) => {
  const chunks: Array<Buffer> = []
  let size = 0
  const stream = decoded(response)
  // What breaks before it is piped breaks what is read.
  response.once("error", (error) => stream.destroy(error))
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk as Uint8Array)
    chunks.push(bytes.subarray(0, maxBytes - size))
    size += bytes.length
    if (size > maxBytes) return { body: Buffer.concat(chunks), cut: true }
  }
  return { body: Buffer.concat(chunks), cut: false }
}

/** Fails where a name is known here to stand for an address that is not public. */
const refuseKnown = (url: URL): Effect.Effect<void, ToolFailure> =>
  Effect.callback((resume) => {
    publicLookup(bare(url.hostname), { all: true }, (error) => {
      resume(error instanceof Refused ? Effect.fail(failure(url, error)) : Effect.void)
    })
  })

/** An agent of its own: a connection that somebody else has opened was not judged here. */
const agentFor = (url: URL, proxy: string | null) => {
  if (proxy === null) return false
  const options = { proxyEnv: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy } }
  const { Agent } = client(url.protocol)
  return new Agent(options)
}

/** One exchange, without following redirects. */
const exchange = (url: URL, request: WebRequest): Effect.Effect<WebResponse, ToolFailure> => {
  const isFree = request.mayBePrivate(url)
  const proxy = isFree ? null : proxyFor(url)
  const sent = send(url, request.maxBytes, isFree, proxy)
  return proxy === null ? sent : Effect.andThen(refuseKnown(url), sent)
}

const send = (
  url: URL,
  maxBytes: number,
  isFree: boolean,
  proxy: string | null
): Effect.Effect<WebResponse, ToolFailure> =>
  Effect.callback((resume) => {
    const host = bare(url.hostname)
    if (!isFree && isIP(host) !== 0 && isPrivateAddress(host)) {
      return resume(Effect.fail(failure(url, refusal(url.hostname, host))))
    }
    const fail = (cause: unknown) => resume(Effect.fail(failure(url, cause)))
    const request = client(url.protocol).request(url, {
      agent: agentFor(url, proxy),
      ...(isFree || proxy !== null ? {} : { lookup: publicLookup }),
      headers: {
        "user-agent": "Bezel",
        accept: "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5",
        "accept-encoding": "gzip, br, deflate"
      }
    }, (response) => {
      readBody(response, maxBytes).then(({ body, cut }) => {
        request.destroy()
        resume(Effect.succeed({ url, status: response.statusCode ?? 0, headers: response.headers, body, cut }))
      }, fail)
    })
    request.on("error", fail)
    request.on("socket", (socket) =>
      socket.once("connect", () => {
        const { remoteAddress } = socket
        if (isFree || proxy !== null || (remoteAddress !== undefined && !isPrivateAddress(remoteAddress))) return
        request.destroy(refusal(url.hostname, remoteAddress ?? "an unknown address"))
      }))
    request.end()
    return Effect.sync(() => request.destroy())
  })

const redirectOf = ({ headers, status, url }: WebResponse): URL | null =>
  [301, 302, 303, 307, 308].includes(status) && headers.location !== undefined && URL.canParse(headers.location, url)
    ? new URL(headers.location, url)
    : null

/** The answer, behind redirects of the same host. One that leads elsewhere is told with where it leads. */
export const fetchWeb = (request: WebRequest): Effect.Effect<WebResponse, ToolFailure> =>
  Effect.gen(function*() {
    let url = request.url
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const response = yield* exchange(url, request)
      const next = redirectOf(response)
      if (next === null) return response
      if (next.host !== url.host || (next.protocol !== url.protocol && next.protocol !== "https:")) {
        return yield* new ToolFailure({
          message: `${url.href.slice(0, 200)} redirects to ${next.href.slice(0, 500)}. Fetch that if you need it.`
        })
      }
      url = next
    }
    return yield* failure(request.url, new Refused(`it redirects more than ${maxRedirects} times`))
  }).pipe(
    Effect.timeoutOption(request.maxSeconds * 1_000),
    Effect.flatMap((found) =>
      Option.isSome(found)
        ? Effect.succeed(found.value)
        : Effect.fail(failure(request.url, new Refused(`it took longer than ${request.maxSeconds} seconds`)))
    )
  )
