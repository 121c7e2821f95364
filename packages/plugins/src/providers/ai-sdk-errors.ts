/**
 * What goes wrong with a provider, in the terms of a turn: what kind it is, whether repeating can help, when, and one
 * sentence for a person. Errors are read by shape, for provider packages bring their own copies of the error classes.
 * Keys and headers never get into a message.
 */
import { ModelError, type ModelErrorKind } from "@bezel/core/model"
import { NotAStream } from "./ai-sdk-fetch.ts"

export interface ErrorContext {
  /** The provider's name, for people. */
  readonly provider: string
  /** The package that speaks to it. */
  readonly package: string
  readonly model: string
  /** Values that a message must not contain. */
  readonly secrets: ReadonlyArray<string>
  /** Milliseconds since the epoch, for a `retry-after` that is a date. */
  readonly now: number
}

type Fields = { readonly [key: string]: unknown }

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null

const text = (value: unknown): string => typeof value === "string" ? value : ""

const makeError = (
  kind: ModelErrorKind,
  message: string,
  retryable: boolean,
  retryAfterMs: number | null = null
): ModelError => new ModelError({ kind, message, retryable, retryAfterMs })

/** Classifies whatever a provider package threw or put into its stream. */
export const classifyError = (error: unknown, context: ErrorContext): ModelError => {
  if (error instanceof ModelError) return error
  if (error instanceof NotAStream) return notAStream(error, context)
  const fields: Fields = isFields(error) ? error : { message: String(error) }
  const cause = chain(fields)
  const notStream = cause.find((one) => one instanceof NotAStream)
  if (notStream instanceof NotAStream) return notAStream(notStream, context)
  const name = text(fields["name"])
  if (
    /^(Syntax|AI_(JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoContentGenerated))Error$/.test(name)
  ) {
    return makeError(
      "malformed",
      sentence(`${context.provider} sent a stream that cannot be read`, fields["message"], context),
      true
    )
  }
  if (/^AI_Load(APIKey|Setting)Error$/.test(name)) {
    return makeError(
      "auth",
      `${context.provider} needs an API key: set it in the environment or as providers.….options.apiKey`,
      false
    )
  }
  if (/^AI_(UnsupportedFunctionality|InvalidPrompt|InvalidArgument|NoSuchModel|TooManyEmbeddingValues)/.test(name)) {
    return makeError(
      "invalid_request",
      sentence(`The request cannot be sent to ${context.provider}`, fields["message"], context),
      false
    )
  }
  const status = statusOf(fields)
  // A stream that has begun and then broke keeps the status of its beginning.
  if (status === null || (status >= 200 && status < 300)) return broken(fields, cause, context)
  return refused(status, fields, context)
}

/** Every cause below an error, itself first; bounded, for a cause may lead back to itself. */
const chain = (error: Fields): ReadonlyArray<Fields> => {
  const found: Array<Fields> = []
  let current: unknown = error
  while (isFields(current) && found.length < 8) {
    found.push(current)
    current = current["cause"]
  }
  return found
}

const statusOf = (fields: Fields): number | null => {
  const own = fields["statusCode"]
  if (typeof own === "number") return own
  // An error event inside a stream names its kind by a code or type, some by the status.
  const code = fields["code"]
  if (typeof code === "number" && code >= 400 && code < 600) return code
  const kind = `${text(fields["type"])} ${text(code)}`
  if (/rate_limit|too_many_requests/.test(kind)) return 429
  if (/quota/.test(kind)) return 429
  if (/overloaded|server_error|api_error|internal|unavailable/.test(kind)) return 503
  if (/authentication|invalid_api_key|permission/.test(kind)) return 401
  if (/not_found/.test(kind)) return 404
  if (/invalid_request|context_length/.test(kind)) return 400
  return null
}

const overflow =
  /context.{0,12}(length|window|size)|maximum context|(prompt|input|request) (is |was )?too (long|large|many)|too many (input )?tokens|exceeds? .{0,40}(maximum|max|limit).{0,40}tokens|tokens? .{0,40}exceeds?|reduce the length/i
const contentRefused = /content[_ -]?(policy|filter|management)|moderation|safety (system|policy)|flagged/i
const noQuota = /insufficient_quota|exceeded your current quota|billing|credit balance/i

/** A status of 400 and above, or an error event that amounts to one. */
const refused = (status: number, fields: Fields, context: ErrorContext): ModelError => {
  const said = `${text(fields["message"])} ${text(fields["type"])} ${text(fields["code"])} ${
    text(fields["responseBody"]).slice(0, 4_096)
  }`
  const retryAfterMs = retryAfter(isFields(fields["responseHeaders"]) ? fields["responseHeaders"] : {}, context.now)
  const say = (start: string): string => sentence(`${start} (HTTP ${status})`, fields["message"], context)
  const { model, provider } = context
  if (status === 429 && noQuota.test(said)) {
    return makeError("rate_limit", say(`${provider} says that the account has no quota left`), false, retryAfterMs)
  }
  if (status === 429) return makeError("rate_limit", say(`${provider} got too many requests`), true, retryAfterMs)
  if (status === 401 || status === 403) {
    return contentRefused.test(said)
      ? makeError("refused", say(`${provider} refused the content`), false)
      : makeError("auth", say(`${provider} did not accept the API key`), false)
  }
  if (status === 402) return makeError("auth", say(`${provider} wants to be paid first`), false)
  if (status === 404) {
    return makeError(
      "unknown_model",
      say(`${provider} does not know the model ${model}, or its baseURL is wrong`),
      false
    )
  }
  if (status === 408 || status === 425) {
    return makeError("transport", say(`${provider} gave up waiting for the request`), true, retryAfterMs)
  }
  if (status === 409) {
    return makeError("unavailable", say(`${provider} could not take the request now`), true, retryAfterMs)
  }
  if (status >= 500) return makeError("unavailable", say(`${provider} failed`), true, retryAfterMs)
  if (status === 413 || overflow.test(said)) {
    return makeError("overflow", say(`The conversation does not fit ${model}`), false)
  }
  if (contentRefused.test(said)) return makeError("refused", say(`${provider} refused the content`), false)
  return makeError("invalid_request", say(`${provider} did not accept the request`), false)
}

/** A fetch says by a TypeError, too, that there was no connection, or no more of it; these are the words of fetches. */
const fetchFailed = /^(fetch failed|failed to fetch|load failed|network ?error\b.*|terminated)$/i

/** Whether code went wrong and not the network: an error that a programming language throws, with no word of a connection. */
const isBug = (code: string, cause: ReadonlyArray<Fields>): boolean =>
  /^(Type|Reference|Range)Error$/.test(text(cause.at(-1)?.["name"])) &&
  (code === "" || code.startsWith("ERR_")) &&
  !cause.some((one) => fetchFailed.test(text(one["message"])))

/** No status: the connection failed, or the package itself. */
const broken = (fields: Fields, cause: ReadonlyArray<Fields>, context: ErrorContext): ModelError => {
  const code = cause.map((one) => text(one["code"])).find((one) => one !== "") ?? ""
  const inner = cause.at(-1)
  const why = text(inner?.["message"]) || text(fields["message"])
  if (code === "ERR_INVALID_CHAR" || code === "ERR_INVALID_HTTP_TOKEN") {
    return makeError(
      "auth",
      sentence(`The key or a header of ${context.provider} has a character that cannot be sent`, why, context),
      false
    )
  }
  if (isBug(code, cause)) {
    return makeError(
      "unknown_model",
      sentence(`The package ${context.package} failed by a fault of its own, not of the network`, why, context),
      false
    )
  }
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/.test(code)) {
    return makeError(
      "transport",
      sentence(
        `The certificate of ${context.provider} cannot be verified`,
        `${code}: set NODE_EXTRA_CA_CERTS if it is your own`,
        context
      ),
      false
    )
  }
  if (code === "ERR_INVALID_URL") {
    return makeError("unknown_model", `The baseURL of ${context.provider} is not an address that can be used`, false)
  }
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT/.test(code)) {
    return makeError("transport", sentence(`${context.provider} cannot be reached`, why || code, context), true)
  }
  return makeError("transport", sentence(`The connection to ${context.provider} broke`, why, context), true)
}

const notAStream = (error: NotAStream, context: ErrorContext): ModelError => {
  const { provider } = context
  if (error.location !== null) {
    return makeError(
      "unknown_model",
      sentence(`${provider} has moved; set its baseURL to the new place`, place(error.location), context),
      false
    )
  }
  if (/json/i.test(error.contentType ?? "")) {
    return makeError(
      "invalid_request",
      sentence(`${provider} answered with a document instead of a stream`, jsonMessage(error.body), context),
      false
    )
  }
  return makeError(
    "unknown_model",
    `${provider} answered with a web page instead of a stream: check its baseURL`,
    false
  )
}

const jsonMessage = (body: string): string => {
  try {
    const parsed: unknown = JSON.parse(body)
    const inner = isFields(parsed) && isFields(parsed["error"]) ? parsed["error"] : parsed
    return isFields(inner) ? text(inner["message"]) : ""
  } catch {
    return ""
  }
}

const place = (location: string): string => {
  if (!URL.canParse(location)) return ""
  const url = new URL(location)
  return `${url.protocol}//${url.host}${url.pathname}`
}

/** `start`, and what the provider says in addition, as one line without secrets. */
const sentence = (start: string, detail: unknown, context: ErrorContext): string => {
  const said = redact(text(detail), context.secrets).replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim()
  const short = said.length > 300 ? `${said.slice(0, 300).toWellFormed()}…` : said
  return short === "" ? start : `${start}: ${short}`
}

/** Takes out known secrets, and what looks like one: providers quote the key that they refuse. */
const redact = (message: string, secrets: ReadonlyArray<string>): string => {
  let out = message
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) {
    if (secret.length >= 4) out = out.replaceAll(secret, "[redacted]")
  }
  return out
    .replace(/\bBearer\s+\S+/gi, "Bearer [redacted]")
    .replace(/\b(sk|pk|rk|key|tok|xai|gsk|api)[-_][\w*.-]{6,}/gi, "[redacted]")
    .replace(/(:\/\/)[^/\s:@]+:[^/\s@]+@/g, "$1[redacted]@")
}

const httpDate =
  /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]+, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4})$/

/**
 * How long the provider asks to wait, in milliseconds: `retry-after-ms`, or `retry-after` as seconds or as a date (RFC 9110
 * §10.2.3). Finite and at least 0; `null` where nothing is said or it cannot be read.
 */
const retryAfter = (headers: { readonly [name: string]: unknown }, now: number): number | null => {
  const millis = number(headers["retry-after-ms"])
  if (millis !== null) return millis
  const value = text(headers["retry-after"]).trim()
  const seconds = number(value)
  if (seconds !== null) return Number.isFinite(seconds * 1_000) ? seconds * 1_000 : null
  // Date.parse alone would take "abc 5" for a day in 2001.
  if (!httpDate.test(value)) return null
  // The third form, of asctime, says no zone: it is GMT too.
  const at = Date.parse(value.endsWith("GMT") ? value : `${value} GMT`)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

const number = (value: unknown): number | null => {
  const written = text(value).trim()
  if (!/^\d+(\.\d+)?$/.test(written)) return null
  const parsed = Number(written)
  return Number.isFinite(parsed) ? parsed : null
}
