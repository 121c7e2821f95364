/**
 * `fetch` for servers over HTTP, with bounded answers: a body may not be larger than a message, and of a stream of events no
 * event may. What goes over it ends the body, with an error for the request that it answers.
 */
import { sizeOf } from "@bezel/core/tool"

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

const LF = 10
const CR = 13

/** Bytes since the last empty line, over chunks that may be cut anywhere. */
export const eventCounter = (): (chunk: Uint8Array) => number => {
  let bytes = 0
  let newlines = 0
  return (chunk) => {
    let largest = bytes
    for (const byte of chunk) {
      bytes++
      if (byte === LF) newlines++
      else if (byte !== CR) newlines = 0
      if (newlines >= 2) {
        largest = Math.max(largest, bytes)
        bytes = 0
      }
    }
    return Math.max(largest, bytes)
  }
}

const totalCounter = (): (chunk: Uint8Array) => number => {
  let bytes = 0
  return (chunk) => bytes += chunk.byteLength
}

/** The id of the request in a body, if it is one. */
const requestOf = (body: RequestInit["body"]): string | number | null => {
  try {
    const message: unknown = typeof body === "string" ? JSON.parse(body) : null
    const id = typeof message === "object" && message !== null && "id" in message && "method" in message
      ? message.id
      : null
    return typeof id === "string" || typeof id === "number" ? id : null
  } catch {
    return null
  }
}

/** Ends the event that is too long, and answers the request: who waits for an event would not hear of an error of the body. */
const errorEvent = (id: string | number, message: string): Uint8Array =>
  new TextEncoder().encode(
    `\n\nevent: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message } })}\n\n`
  )

export const boundedFetch = (maxBytes: number, base: Fetch = fetch): Fetch => async (url, init) => {
  const response = await base(url, init)
  if (response.body === null) return response
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true
  const count = isStream ? eventCounter() : totalCounter()
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        if (count(chunk) <= maxBytes) return controller.enqueue(chunk)
        const message = `its answer was over the limit of ${sizeOf(maxBytes)}`
        const id = isStream ? requestOf(init?.body) : null
        if (id === null) return controller.error(new Error(message))
        controller.enqueue(errorEvent(id, message))
        controller.terminate()
      }
    })
  )
  const { headers, status, statusText } = response
  return new Response(body, { headers, status, statusText })
}
