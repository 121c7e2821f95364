/**
 * The body of a request as JSON: bounded in size and in depth, and told apart from what is none.
 *
 * Depth is looked at before anything walks the value: what recurses over a document of 100,000 brackets would not come back.
 */
import { type ApiFailure, failure } from "./failure.ts"

export const deepest = 200

/** Whether brackets stand deeper than anything that is meant seriously. */
const isTooDeep = (bytes: Uint8Array): boolean => {
  let depth = 0
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inString = false
    } else if (byte === 0x22) {
      inString = true
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > deepest) return true
    } else if (byte === 0x5d || byte === 0x7d) {
      depth--
    }
  }
  return false
}

const decoder = new TextDecoder("utf-8", { fatal: true })

/** What a body says; an empty one says `{}`, for routes whose fields are all optional. */
export const parseJson = (bytes: Uint8Array): { readonly value: unknown } | ApiFailure => {
  if (bytes.length === 0) return { value: {} }
  if (isTooDeep(bytes)) {
    return failure("invalid_request", `The body is nested deeper than ${deepest} levels; send a flatter document.`)
  }
  try {
    return { value: JSON.parse(decoder.decode(bytes)) }
  } catch {
    return failure("invalid_request", "The body is no JSON in UTF-8.")
  }
}

/** Whether a content type says JSON. */
export const saysJson = (contentType: string): boolean =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType.trim())
