/**
 * The fetch that provider packages get from us.
 *
 * It reads the body of a failed answer in bounds, so that one which never ends, or is huge, cannot hold a turn; it refuses
 * what is plainly not a stream; it does not follow redirects, which would hand the key to another place; it ends a
 * stream at its `[DONE]`, even if the server forgets to close it; and it hands on the deltas that arrived together as one
 * (`sse-deltas.ts`). Plain asynchronous TypeScript: this is the hot path.
 */
import { httpFetch } from "./http-fetch.ts"
import { HttpHeaders, HttpResponse } from "./http-response.ts"
import { makeDeltaJoiner } from "./sse-deltas.ts"

/** A successful answer that is a document where a stream was expected, or a redirect. */
export class NotAStream extends Error {
  readonly status: number
  /** Where a redirect leads, or `null`. */
  readonly location: string | null
  readonly contentType: string | null
  readonly body: string
  constructor(
    options: {
      readonly status: number
      readonly location: string | null
      readonly contentType: string | null
      readonly body: string
    }
  ) {
    super("The answer is not a stream")
    this.name = "NotAStream"
    this.status = options.status
    this.location = options.location
    this.contentType = options.contentType
    this.body = options.body
  }
}

export interface ProviderFetchOptions {
  /** Bytes of a failed answer that are read at most. */
  readonly maxErrorBytes?: number
  /** Milliseconds that reading a failed answer may take. */
  readonly errorBodyMillis?: number
}

export type ProviderFetch = typeof globalThis.fetch

export const makeProviderFetch = (options: ProviderFetchOptions = {}): ProviderFetch => {
  const { errorBodyMillis = 2_000, maxErrorBytes = 64 * 1024 } = options
  return async (input, init) => {
    const response = await httpFetch(input, { ...init, redirect: "manual" })
    const contentType = response.headers.get("content-type")
    const redirected = response.status >= 300 && response.status < 400
    const stream = response.ok &&
      !(contentType !== null && /^(text\/html|application\/json)\b/i.test(contentType.trim()))
    if (stream) return toEvents(response)
    const body = await readBounded(response, maxErrorBytes, errorBodyMillis)
    if (response.ok || redirected) {
      throw new NotAStream({ status: response.status, location: response.headers.get("location"), contentType, body })
    }
    const headers = new HttpHeaders(response.headers)
    // The body below is decoded and may be cut: these would describe another one.
    headers.delete("content-encoding")
    headers.delete("content-length")
    return answer(response, new Blob([body]).stream(), headers)
  }
}

const readBounded = async (response: Response, maxBytes: number, millis: number): Promise<string> => {
  if (response.body === null) return ""
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), millis)
  })
  let text = ""
  let bytes = 0
  try {
    for (;;) {
      const next = await Promise.race([reader.read(), late])
      if (next === null || next.done) break
      const chunk = next.value.subarray(0, maxBytes - bytes)
      bytes += chunk.byteLength
      text += decoder.decode(chunk, { stream: true })
      if (bytes >= maxBytes) break
    }
  } catch {
    // A body that breaks off says as much as has arrived: the status is what counts.
  } finally {
    clearTimeout(timer)
    reader.cancel().catch(() => {})
  }
  return text
}

/** The same answer with another body. */
const answer = (
  { status, statusText, url }: Response,
  body: ReadableStream<Uint8Array>,
  headers: Headers
): HttpResponse => new HttpResponse(body, { status, statusText, url, headers: new HttpHeaders(headers) })

const doneLine = /(?:^|[\r\n])data: ?\[DONE\][\r\n]/
/** Characters of the line, with the line ends around it, before its last one. */
const overlap = "\ndata: [DONE]".length
/** Milliseconds that a server has to end its answer after `[DONE]`, so that the connection can be used again. */
const endMillis = 250

/** The same answer, whose deltas come joined, and whose body ends once the line `data: [DONE]` has arrived. */
const toEvents = (response: Response): Response => {
  if (response.body === null) return response
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  const join = makeDeltaJoiner()
  let tail = ""
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = await reader.read()
      if (next.done) return controller.close()
      const chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength)
      // Of one byte each: what is looked for is all ASCII, and no byte of another character looks like it.
      const text = chunk.toString("latin1")
      const joined = join(text)
      controller.enqueue(joined === text ? next.value : Buffer.from(joined, "latin1"))
      const seen = tail + text
      // Within an event's JSON a line end is always escaped, so the line can only be the protocol's own.
      if (seen.includes("[DONE]") && doneLine.test(seen)) {
        controller.close()
        void readToEnd(reader)
        return
      }
      tail = seen.slice(-overlap)
    },
    cancel: (reason) => reader.cancel(reason)
  }, { highWaterMark: 0 })
  return answer(response, body, response.headers)
}

/** Reads what is left of an answer that is over. A connection that was cut off cannot be used for the next request. */
const readToEnd = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> => {
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), endMillis)
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer was whole before.
  } finally {
    clearTimeout(timer)
  }
}
