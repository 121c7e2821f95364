/**
 * A model provider on loopback: a real HTTP server that speaks the streams of OpenAI chat completions
 * (`POST …/chat/completions`) and of Anthropic messages (`POST …/messages`), with answers from a script.
 *
 * For tests and benchmarks of everything above the wire. It records requests, writes bytes in any chunks one asks for, and
 * fails in all the ways providers fail: statuses, bodies that never end, streams that break or just stop. Plain promises, so
 * that a process without Effect can use it. It checks no key and no request.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { JsonObject, JsonValue } from "../json/index.ts"
import { chatCompletionsEvents, messagesEvents } from "./model-wire.ts"

/** One call in an answer. `args` as text is sent as it is, also when it is no JSON. */
export interface ServerCall {
  readonly id?: string
  readonly name: string
  readonly args: string | JsonObject
}

export interface StopAfter {
  readonly afterBytes: number
  readonly how: "end" | "destroy" | "hang"
}

export interface Delivery {
  /** Bytes of the body in each write: one event each (default), all at once, so many bytes, or cut at these offsets. */
  readonly chunks?: "event" | "whole" | number | { readonly at: ReadonlyArray<number> }
  /** Milliseconds between writes. */
  readonly delayMillis?: number
  /** Write only so many bytes, then: `end` the body in order, `destroy` the connection, or `hang` and keep it open. */
  readonly stop?: StopAfter | { readonly afterBytes: number; readonly then: StopAfter["how"] }
  readonly headers?: { readonly [name: string]: string }
}

/** An answer, put into whichever wire is asked. */
export interface AnswerReply extends Delivery {
  /** One delta for each member. */
  readonly text?: string | ReadonlyArray<string>
  readonly reasoning?: string | ReadonlyArray<string>
  /** Anthropic only: the signature of the reasoning. */
  readonly signature?: string
  readonly calls?: ReadonlyArray<ServerCall>
  /** Characters of arguments in each delta. Default: 16. */
  readonly argumentChunk?: number
  /** In OpenAI's words (`stop`, `length`, `tool_calls`), translated for Anthropic; `null`: the stream ends without one. */
  readonly finish?: string | null
  readonly usage?: { readonly input: number; readonly output: number; readonly cacheRead?: number }
}

/** The body of a stream, as it is. */
export interface RawReply extends Delivery {
  readonly body: string | Uint8Array
}

/** A failure: a status with a body, which may never end. */
export interface StatusReply extends Delivery {
  readonly status: number
  readonly json?: JsonValue
  readonly text?: string
}

export type ServerReply = AnswerReply | RawReply | StatusReply

export interface RecordedRequest {
  readonly wire: "openai" | "anthropic"
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: JsonObject
  /** Resolves when the connection is gone; `true` if the client closed it before the answer was complete. */
  readonly closed: Promise<boolean>
}

export type ScriptedReply = ServerReply | ((request: RecordedRequest) => ServerReply)

export interface ModelServer {
  /** Base URL for both wires, ending in `/v1`. */
  readonly url: string
  readonly port: number
  readonly requests: ReadonlyArray<RecordedRequest>
  /** Adds replies; each answers one request. */
  readonly reply: (...replies: ReadonlyArray<ScriptedReply>) => void
  /** Answers whatever the script has no reply for; without it, that is status 500. */
  readonly always: (reply: ScriptedReply) => void
  readonly close: () => Promise<void>
}

/** Starts a server on a free port of loopback. */
export const startModelServer = async (...script: ReadonlyArray<ScriptedReply>): Promise<ModelServer> => {
  const replies: Array<ScriptedReply> = [...script]
  const requests: Array<RecordedRequest> = []
  let fallback: ScriptedReply = {
    status: 500,
    json: { error: { message: "The script of the server has no reply left.", type: "server_error" } }
  }
  const server = http.createServer((incoming, outgoing) => {
    const path = incoming.url ?? "/"
    const wire = path.split("?", 1)[0]?.endsWith("/messages") === true ? "anthropic" : "openai"
    let complete = false
    const closed = new Promise<boolean>((resolve) => outgoing.once("close", () => resolve(!complete)))
    outgoing.once("finish", () => {
      complete = true
    })
    // A client may vanish at any moment; that is what `closed` is for.
    outgoing.on("error", () => {})
    void readBody(incoming).then(async (body) => {
      const request: RecordedRequest = { wire, path, headers: incoming.headers, body, closed }
      requests.push(request)
      const scripted = replies.shift() ?? fallback
      await send(outgoing, wire, typeof scripted === "function" ? scripted(request) : scripted)
    }).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    reply: (...more) => {
      replies.push(...more)
    },
    always: (reply) => {
      fallback = reply
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}

const readBody = async (incoming: http.IncomingMessage): Promise<JsonObject> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of incoming) if (chunk instanceof Buffer) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString("utf8")
  const parsed: unknown = text === "" ? {} : JSON.parse(text)
  return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? parsed as JsonObject : {}
}

/** The events of a reply as they go over the wire. */
export const replyEvents = (wire: "openai" | "anthropic", reply: AnswerReply): ReadonlyArray<string> =>
  wire === "anthropic" ? messagesEvents(reply) : chatCompletionsEvents(reply)

const send = async (outgoing: http.ServerResponse, wire: "openai" | "anthropic", reply: ServerReply): Promise<void> => {
  if ("status" in reply) {
    const body = reply.json === undefined ? reply.text ?? "" : JSON.stringify(reply.json)
    outgoing.writeHead(reply.status, {
      ...reply.json === undefined ? {} : { "content-type": "application/json" },
      ...reply.headers
    })
    return write(outgoing, [Buffer.from(body)], reply)
  }
  outgoing.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    ...reply.headers
  })
  if ("body" in reply) return write(outgoing, [Buffer.from(reply.body)], { chunks: "whole", ...reply })
  return write(outgoing, replyEvents(wire, reply).map((event) => Buffer.from(event)), reply)
}

const cutAt = (whole: Buffer, offsets: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const cuts = [0, ...offsets.filter((offset) => offset > 0 && offset < whole.length), whole.length]
  return cuts.slice(1).map((end, index) => whole.subarray(cuts[index], end))
}

const split = (events: ReadonlyArray<Buffer>, chunks: NonNullable<Delivery["chunks"]>): ReadonlyArray<Buffer> => {
  if (chunks === "event") return events
  const whole = Buffer.concat(events)
  if (chunks === "whole") return [whole]
  if (typeof chunks === "object") return cutAt(whole, chunks.at)
  return cutAt(whole, Array.from({ length: Math.ceil(whole.length / chunks) }, (_, index) => index * chunks))
}

const write = async (
  outgoing: http.ServerResponse,
  events: ReadonlyArray<Buffer>,
  delivery: Delivery
): Promise<void> => {
  const { chunks = "event", delayMillis, stop } = delivery
  const pieces = split(events, chunks)
  const separate = chunks !== "event" && chunks !== "whole"
  outgoing.socket?.setNoDelay(true)
  outgoing.flushHeaders()
  let left = stop?.afterBytes ?? Infinity
  for (const piece of pieces) {
    if (outgoing.destroyed || left <= 0) break
    const part = piece.subarray(0, left)
    left -= part.length
    const room = outgoing.write(part)
    if (!room) await new Promise<void>((resolve) => outgoing.once("drain", resolve).once("close", () => resolve()))
    if (delayMillis !== undefined) await new Promise((resolve) => setTimeout(resolve, delayMillis))
    // Without a turn of the event loop, writes can reach the client as one.
    else if (separate) await new Promise((resolve) => setImmediate(resolve))
  }
  const how = stop === undefined ? "end" : "how" in stop ? stop.how : stop.then
  if (how === "end") outgoing.end()
  else if (how === "destroy") outgoing.destroy()
}
