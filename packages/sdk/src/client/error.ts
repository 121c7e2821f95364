/** What a call of the client fails with: the server's own refusal, or that it could not be asked. */
import * as Data from "effect/Data"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as Schema from "effect/Schema"
import { type ApiErrorBody, type ApiErrorCode, statusOfCode } from "../api/error.ts"

/** Branch on `code`. `unreachable`: nobody answered; `malformed`: somebody did, and it was no answer of this API. */
export class BezelError extends Data.TaggedError("BezelError")<{
  readonly code: ApiErrorCode | "unreachable" | "malformed"
  readonly message: string
  /** Of HTTP; 0 where there was no answer. */
  readonly status: number
  readonly data?: Schema.Json
  readonly cause?: unknown
}> {}

/** A refusal of the server, from its body. */
export const refusalOf = ({ error: { code, data, message } }: ApiErrorBody): BezelError =>
  new BezelError({ code, message, status: statusOfCode[code], ...(data === undefined ? {} : { data }) })

const isBody = (value: unknown): value is ApiErrorBody => {
  const error: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "error") : null
  return typeof error === "object" && error !== null && "code" in error && "message" in error
}

/** The failure of a derived client, whatever it is. */
export const toBezelError = (failure: unknown): BezelError => {
  if (failure instanceof BezelError) return failure
  if (isBody(failure)) return refusalOf(failure)
  if (HttpClientError.isHttpClientError(failure)) {
    const { reason } = failure
    // An answer that breaks off in the middle is none, whatever had come of it.
    const isLost = reason._tag === "DecodeError"
      ? !(reason.cause instanceof SyntaxError)
      : reason._tag !== "StatusCodeError" && reason._tag !== "EmptyBodyError"
    if (isLost) {
      return new BezelError({
        code: "unreachable",
        status: 0,
        message: `No Bezel server answers on ${withoutSecrets(reason.request.url)}, or the connection was lost.`,
        cause: failure
      })
    }
  }
  return new BezelError({
    code: "malformed",
    status: 0,
    message: "What answers is no Bezel server, or one of another version.",
    cause: failure
  })
}

const withoutSecrets = (url: string): string => url.replace(/[?#].*$/s, "").replace(/\/\/[^/@]*@/, "//")
