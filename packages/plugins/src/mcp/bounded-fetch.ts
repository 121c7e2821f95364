/**
 * `fetch` for servers over HTTP, with bounded answers: a body may not be larger than a message, and of a stream of events no
 * event may. What goes over it ends the body with an error.
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

export const boundedFetch = (maxBytes: number, base: Fetch = fetch): Fetch => async (url, init) => {
  const response = await base(url, init)
  if (response.body === null) return response
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true
  const count = isStream ? eventCounter() : totalCounter()
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        if (count(chunk) > maxBytes) controller.error(new Error(`its answer was over the limit of ${sizeOf(maxBytes)}`))
        else controller.enqueue(chunk)
      }
    })
  )
  const { headers, status, statusText } = response
  return new Response(body, { headers, status, statusText })
}
