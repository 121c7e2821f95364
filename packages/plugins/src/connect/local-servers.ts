/**
 * Servers of models on this machine, where they listen when nobody has said otherwise.
 *
 * They are asked only when somebody wants to connect one, on loopback alone (or where `OLLAMA_HOST` says), and shortly.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { discoverModels } from "../providers/discover.ts"

export interface LocalServer {
  readonly id: string
  readonly name: string
  /** With the version: what its chat completions are under. */
  readonly url: string
}

/** How long one may take to answer: it is on this machine. */
const limitMillis = 500

/** `OLLAMA_HOST` has many forms: `0.0.0.0`, `:11434`, `box:11434`, `http://box`. Where it listens everywhere, it is here. */
const ollamaURL = (written: string | null): string => {
  const fallback = "http://127.0.0.1:11434/v1"
  if (written === null || written.trim() === "") return fallback
  const text = written.trim()
  const withScheme = /^https?:\/\//.test(text) ? text : `http://${text.startsWith(":") ? "127.0.0.1" : ""}${text}`
  const url = URL.parse(withScheme)
  if (url === null) return fallback
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = "127.0.0.1"
  if (url.port === "" && !/^https?:\/\//.test(text)) url.port = "11434"
  return `${url.origin}/v1`
}

export const localServers: Effect.Effect<ReadonlyArray<LocalServer>, Config.ConfigError> = Effect.map(
  Config.option(Config.String("OLLAMA_HOST")),
  (host) => [
    { id: "ollama", name: "Ollama", url: ollamaURL(Option.getOrNull(host)) },
    { id: "lmstudio", name: "LM Studio", url: "http://127.0.0.1:1234/v1" },
    { id: "llamacpp", name: "llama.cpp", url: "http://127.0.0.1:8080/v1" }
  ]
)

export interface AnsweringServer extends LocalServer {
  readonly models: number
}

/** Those that answer with a list of models, in order. */
export const answering = (
  servers: ReadonlyArray<LocalServer>
): Effect.Effect<ReadonlyArray<AnsweringServer>> =>
  Effect.map(
    Effect.forEach(servers, (server) =>
      discoverModels({ name: server.name, baseURL: server.url, anthropic: false, keyCheck: null, headers: {} }, null)
        .pipe(
          Effect.timeout(limitMillis),
          Effect.map((models): ReadonlyArray<AnsweringServer> => [{ ...server, models: models.length }]),
          Effect.orElseSucceed((): ReadonlyArray<AnsweringServer> => [])
        ), { concurrency: "unbounded" }),
    (found) =>
      found.flat()
  )

/** Host and port, for people. */
export const placeOf = ({ url }: LocalServer): string => new URL(url).host
