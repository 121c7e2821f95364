/**
 * Asks a provider which models it has: `GET …/models`, which OpenAI's and Anthropic's interface and most servers of one's own
 * have alike. The answer is read in bounds and only ids and names are taken from it.
 */
import { ModelError, type ProviderKey } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

const limitMillis = 10_000
const maxBytes = 4 * 1024 * 1024
const maxModels = 2_000

const Answer = Schema.fromJsonString(Schema.Struct({
  data: Schema.Array(Schema.Struct({
    id: Schema.NonEmptyString,
    name: Schema.optionalKey(Schema.NullOr(Schema.String)),
    display_name: Schema.optionalKey(Schema.NullOr(Schema.String))
  }))
}))

const readBounded = async (response: Response): Promise<string> => {
  if (response.body === null) return ""
  const decoder = new TextDecoder()
  let text = ""
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > maxBytes) throw new Error("too long")
  }
  return text
}

export interface Place {
  readonly name: string
  readonly baseURL: string
  /** Whether the key goes as Anthropic wants it. */
  readonly anthropic: boolean
  /** A path that is asked with the key first; `null`: the list itself is for those with a key only. */
  readonly keyCheck: string | null
  readonly headers: { readonly [name: string]: Redacted.Redacted }
}

/** The models of a provider, in its order; ids that nobody could write are left out. */
export const discoverModels = Effect.fnUntraced(function*(place: Place, key: ProviderKey | null) {
  const { name } = place
  const wrong = (what: string) =>
    new ModelError({
      kind: "unavailable",
      message: `${name} did not say which models it has: ${what}.`,
      retryable: false,
      retryAfterMs: null
    })
  const authorization: Record<string, string> = key === null
    ? {}
    : place.anthropic && key.kind === "key"
    ? { "x-api-key": Redacted.value(key.value) }
    : { authorization: `Bearer ${Redacted.value(key.value)}` }
  const ask = (path: string) =>
    Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(`${place.baseURL.replace(/\/+$/, "")}${path}`, {
          headers: {
            accept: "application/json",
            ...(place.anthropic ? { "anthropic-version": "2023-06-01" } : {}),
            ...authorization,
            ...Object.fromEntries(
              Object.entries(place.headers).map(([header, value]) => [header, Redacted.value(value)])
            )
          },
          // A redirect would hand the key to another place.
          redirect: "error",
          signal
        })
        return { ok: response.ok, status: response.status, text: await readBounded(response) }
      },
      catch: () => wrong("it could not be reached")
    }).pipe(Effect.timeoutOrElse({
      duration: limitMillis,
      orElse: () => Effect.fail(wrong(`it did not answer within ${limitMillis / 1000} seconds`))
    }))
  const refuses = (status: number) => status === 401 || status === 403
  const refused = (status: number) =>
    new ModelError({
      kind: "auth",
      message: `${name} ${key === null ? "asks for a key" : "does not accept the key"} (status ${status}).`,
      retryable: false,
      retryAfterMs: null
    })
  if (place.keyCheck !== null && key !== null) {
    const { status } = yield* ask(place.keyCheck)
    if (refuses(status)) return yield* refused(status)
  }
  const { ok, status, text } = yield* ask("/models")
  if (refuses(status)) return yield* refused(status)
  if (!ok) return yield* wrong(`it answered with status ${status}`)
  const answer = Option.getOrNull(Schema.decodeUnknownOption(Answer)(text))
  if (answer === null) return yield* wrong("its answer is no list of models")
  return answer.data.slice(0, maxModels).flatMap(({ display_name, id, name: called }) =>
    /^[\x21-\x7e]{1,200}$/.test(id) ? [{ model: id, name: plain(display_name ?? called ?? null) }] : []
  )
})

const plain = (text: string | null): string | null => {
  const shown = text?.replace(/\p{Cc}+/gu, " ").trim().slice(0, 100) ?? ""
  return shown === "" ? null : shown
}
