/**
 * The fetch that provider packages get from us.
 *
 * It reads the body of a failed answer in bounds, so that one which never ends, or is huge, cannot hold a turn; it refuses
 * what is plainly not a stream; it does not follow redirects, which would hand the key to another place; and it ends a
 * stream at its `[DONE]`, even if the server forgets to close it. Plain asynchronous TypeScript: this is the hot path.
 */

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
    const response = await globalThis.fetch(input, { ...init, redirect: "manual" })
    const contentType = response.headers.get("content-type")
    const redirected = response.status >= 300 && response.status < 400
    const stream = response.ok &&
      !(contentType !== null && /^(text\/html|application\/json)\b/i.test(contentType.trim()))
    if (stream) return endingAtDone(response)
    const body = await readBounded(response, maxErrorBytes, errorBodyMillis)
    if (response.ok || redirected) {
      throw new NotAStream({ status: response.status, location: response.headers.get("location"), contentType, body })
    }
    const headers = new Headers(response.headers)
    // The body below is decoded and may be cut: these would describe another one.
    headers.delete("content-encoding")
    headers.delete("content-length")
    return new Response(body, { status: response.status, statusText: response.statusText, headers })
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

const done = Buffer.from("[DONE]")
const doneLine = /(?:^|[\r\n])data: ?\[DONE\][\r\n]/
/** Bytes of the line, with the line ends around it, before its last one. */
const overlap = "\ndata: [DONE]".length

/** The same answer, whose body ends once the line `data: [DONE]` has arrived. */
const endingAtDone = (response: Response): Response => {
  if (response.body === null) return response
  const reader = response.body.getReader()
  let tail = Buffer.alloc(0)
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = await reader.read()
      if (next.done) return controller.close()
      controller.enqueue(next.value)
      const chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength)
      const seen = tail.length === 0 ? chunk : Buffer.concat([tail, chunk])
      // Within an event's JSON a line end is always escaped, so the line can only be the protocol's own.
      if (seen.includes(done) && doneLine.test(seen.toString("latin1"))) {
        controller.close()
        reader.cancel().catch(() => {})
        return
      }
      tail = Buffer.from(seen.subarray(-overlap))
    },
    cancel: (reason) => reader.cancel(reason)
  }, { highWaterMark: 0 })
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers })
}
