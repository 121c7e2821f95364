/**
 * The client in effects: one function for each route, derived from the definition of the API, and streams of events.
 *
 * Nothing is repeated that may have been done, with one exception: a prompt has a `requestID`, made here if the caller has
 * none, so it is sent again when its answer was lost, and is still one prompt.
 */
import * as Effect from "effect/Effect"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { BezelApi } from "../api/definition.ts"
import type { FleetEvent, SessionEvent } from "../api/events.ts"
import type {
  AnswerBody,
  ConfigPatch,
  ModelRef,
  PromptBody,
  SessionMessage,
  WaitResult
} from "../api/session-schemas.ts"
import { type BezelError, toBezelError } from "./error.ts"
import { type EventOptions, eventStream, type Placed } from "./event-stream.ts"
import { type ClientTool, offerTool } from "./tool-offer.ts"

export interface ClientOptions {
  /** Where the server is: `http://127.0.0.1:4747`. */
  readonly url: string
  /** A token of that server. */
  readonly token: string
  /** What carries the requests; default: the runtime's `fetch`. */
  readonly httpClient?: HttpClient.HttpClient
}

type Ref = { readonly [K in keyof typeof ModelRef.Type]: (typeof ModelRef.Type)[K] }

export interface ListQuery {
  /** Only sessions of this directory. */
  readonly location?: string
  /** Only children of this session; `none`: only those that are nobody's child. */
  readonly parent?: string
  /** Part of the title, in any case. */
  readonly text?: string
  readonly archived?: boolean
  readonly limit?: number
  readonly cursor?: string
}

export interface CreateInput {
  /** A directory; default: that of the server. */
  readonly location?: string
  readonly title?: string
  readonly agent?: string | null
  readonly model?: Ref | null
  readonly parentID?: string | null
}

export interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
  readonly conversation?: string
}

export type PromptInput = typeof PromptBody.Type

export interface RevertOptions {
  /** Only says what would be done. */
  readonly dryRun?: boolean
  /** `keep` leaves files as they are that are not as the session left them; default: nothing is done then. */
  readonly conflicts?: "refuse" | "keep"
}

export interface WaitOptions {
  /** Waits for this input to end, and not for the session to be idle. */
  readonly input?: string
  /** Seconds; default: as long as it takes. */
  readonly timeout?: number
}

/** Seconds of one request of a wait: proxies give up on longer ones. */
const waitSeconds = 50

const lost = (error: BezelError): boolean => error.code === "unreachable"

/** The first delay before it is tried again; each is twice the one before. */
const again = Schedule.exponential("100 millis")

const withToken = (options: ClientOptions): HttpClient.HttpClient =>
  HttpClient.mapRequest(options.httpClient ?? fetching, (request) =>
    HttpClientRequest.bearerToken(
      HttpClientRequest.prependUrl(request, options.url.replace(/\/+$/, "")),
      options.token
    ))

/** The client of the runtime's own `fetch`. */
const fetching: HttpClient.HttpClient = Effect.runSync(
  Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
)

/** A client in effects. It holds nothing open. */
export const makeEffectClient = (options: ClientOptions) => {
  const http = withToken(options)
  const api = Effect.runSync(HttpApiClient.makeWith(BezelApi, { httpClient: http }))
  const run = <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<A, BezelError> =>
    Effect.mapError(effect, toBezelError)
  const path = (id: string) => ({ params: { id } })

  const wait = (id: string, { input, timeout }: WaitOptions = {}): Effect.Effect<WaitResult, BezelError> =>
    Effect.gen(function*() {
      let left = timeout ?? Infinity
      for (;;) {
        const seconds = Math.min(left, waitSeconds)
        const result = yield* run(api.session.wait({
          ...path(id),
          query: { timeout: seconds, ...(input === undefined ? {} : { input }) }
        }))
        left -= seconds
        if (result.status !== "running" || left <= 0) return result
      }
    })

  const prompt = (id: string, input: string | PromptInput) => {
    const body = typeof input === "string" ? { text: input } : input
    const payload = { requestID: crypto.randomUUID(), ...body }
    return Effect.retry(run(api.session.prompt({ ...path(id), payload })), { schedule: again, times: 4, while: lost })
  }

  const session = {
    /** A new session. */
    create: (input: CreateInput = {}) => run(api.session.create({ payload: input })),
    /** One page of sessions, newest activity first. */
    list: (query: ListQuery = {}) => run(api.session.list({ query })),
    get: (id: string) => run(api.session.get(path(id))),
    update: (
      id: string,
      patch: {
        readonly title?: string
        readonly agent?: string | null
        readonly model?: Ref | null
        readonly archived?: boolean
      }
    ) => run(api.session.update({ ...path(id), payload: patch })),
    /** Deletes it and its children. */
    remove: (id: string) => run(api.session.remove(path(id))),
    /** Ids of the sessions that work. */
    active: () => run(Effect.map(api.session.active(), ({ items }) => items)),

    /** Accepts a prompt durably; `wait` waits for the answer. */
    prompt,
    /** Prompts, and waits for how that ends: `text` is the answer. */
    ask: (id: string, input: string | PromptInput) =>
      Effect.flatMap(prompt(id, input), ({ inputID }) => wait(id, { input: inputID })),
    /** Waits until the session is idle, or an input has ended. */
    wait,
    command: (id: string, name: string, argument?: string) =>
      run(api.session.command({
        ...path(id),
        payload: { name, ...(argument === undefined ? {} : { arguments: argument }) }
      })),
    /** Durably ends the running turn, if there is one. */
    interrupt: (id: string, reason?: string) =>
      run(api.session.interrupt({ ...path(id), payload: reason === undefined ? {} : { reason } })),
    /** Starts work that is there: accepted prompts, and what a crash left. */
    resume: (id: string) => run(api.session.resume(path(id))),
    /** Starts over with a fresh context. */
    reset: (id: string, handoff?: string) =>
      run(api.session.reset({ ...path(id), payload: handoff === undefined ? {} : { handoff } })),
    configure: (id: string, patch: typeof ConfigPatch.Type) => run(api.session.config({ ...path(id), payload: patch })),
    abortInput: (id: string, inputID: string) =>
      run(Effect.map(api.session.abortInput({ params: { id, inputID } }), ({ status }) => status)),
    /** Summarizes the older part of the context. */
    compact: (id: string, instructions?: string) =>
      run(api.session.compact({ ...path(id), payload: instructions === undefined ? {} : { instructions } })),
    /** A new session whose transcript is this one's up to and including an entry. */
    fork: (id: string, at: string) => run(api.session.fork({ ...path(id), payload: { at } })),
    /** Takes back a turn and all after it, in the conversation and in files; `last` is the newest one. */
    revert: (id: string, to: string, options: RevertOptions = {}) =>
      run(api.session.revert({ ...path(id), payload: { to, ...options } })),
    /** Brings back what a revert took back, as long as the conversation has not gone on. */
    clearRevert: (id: string, options: RevertOptions = {}) =>
      run(api.session.clearRevert({ ...path(id), query: options })),

    /** One page of the transcript: the newest entries, oldest first; `next` leads to earlier ones. */
    messages: (id: string, query: PageQuery = {}) => run(api.session.messages({ ...path(id), query })),
    message: (id: string, messageID: string) => run(api.session.message({ params: { id, messageID } })),
    /** The whole transcript, oldest first. */
    transcript: (id: string): Effect.Effect<ReadonlyArray<SessionMessage>, BezelError> =>
      Effect.gen(function*() {
        const pages: Array<ReadonlyArray<SessionMessage>> = []
        for (let cursor: string | undefined, isMore = true; isMore;) {
          const query = cursor === undefined ? { limit: 1_000 } : { limit: 1_000, cursor }
          const page = yield* run(api.session.messages({ ...path(id), query }))
          pages.unshift(page.items)
          cursor = page.next
          isMore = cursor !== undefined
        }
        return pages.flat()
      }),
    /** What the model would see now, without system messages. */
    context: (id: string, conversation?: string) =>
      run(Effect.map(
        api.session.context({ ...path(id), query: conversation === undefined ? {} : { conversation } }),
        ({ items }) => items
      )),
    view: (id: string, conversation?: string) =>
      run(api.session.view({ ...path(id), query: conversation === undefined ? {} : { conversation } })),
    /** Durable commits after a sequence, oldest first. */
    history: (id: string, query: { readonly after?: number; readonly limit?: number } = {}) =>
      run(api.session.history({ ...path(id), query })),
    /** Events as they happen, without a gap across lost connections, or with a `gap` that says so. */
    events: (id: string, options?: EventOptions): Stream.Stream<Placed<SessionEvent>, BezelError> =>
      eventStream<SessionEvent>(http, `/session/${encodeURIComponent(id)}/event`, options),

    /** What the session asks a person and nobody has answered. */
    interactions: (id: string) => run(Effect.map(api.session.interactions(path(id)), ({ items }) => items)),
    /** Answers one: `{ response }`, or `{ declined: true }`. */
    answer: (id: string, interactionID: string, answer: typeof AnswerBody.Type) =>
      run(api.session.answer({ params: { id, interactionID }, payload: answer })),
    /**
     * Offers a tool to the session, whose calls run here; completes when the model can be told of it. It is there for the length
     * of the scope, also across lost connections. Takes a token of scope `admin`.
     */
    tool: (id: string, name: string, tool: ClientTool) => offerTool(http, id, name, tool),
    /** The session as one JSON document. */
    export: (id: string) => run(api.session.export(path(id))),
    import: (document: Schema.Json, location?: string) =>
      run(api.session.import({ payload: { session: document, ...(location === undefined ? {} : { location }) } }))
  }

  const at = (location: string | undefined) => ({ query: location === undefined ? {} : { location } })
  const location = {
    get: (directory?: string) => run(api.location.get({ query: directory === undefined ? {} : { directory } })),
    tools: (location?: string) => run(Effect.map(api.location.tools(at(location)), ({ items }) => items)),
    models: (location?: string) => run(Effect.map(api.location.models(at(location)), ({ items }) => items)),
    agents: (location?: string) => run(Effect.map(api.location.agents(at(location)), ({ items }) => items)),
    commands: (location?: string) => run(Effect.map(api.location.commands(at(location)), ({ items }) => items)),
    skills: (location?: string) => run(Effect.map(api.location.skills(at(location)), ({ items }) => items)),
    plugins: (location?: string) => run(Effect.map(api.location.plugins(at(location)), ({ items }) => items)),
    /** A file inside the location. */
    file: (path: string, location?: string) =>
      run(api.location.file({ query: { path, ...(location === undefined ? {} : { location }) } })),
    findFiles: (query: string, options: { readonly location?: string; readonly limit?: number } = {}) =>
      run(api.location.findFiles({ query: { query, ...options } }))
  }

  return {
    session,
    location,
    /** Whether the server answers, and its version. */
    health: () => run(api.server.health()),
    /** What happens to all sessions, and to the hosts where they run. */
    events: (options?: EventOptions): Stream.Stream<Placed<FleetEvent>, BezelError> =>
      eventStream<FleetEvent>(http, "/event", options),
    /** Measurements, in the text format of Prometheus. */
    metrics: () => run(api.server.metrics())
  }
}

export type BezelEffectClient = ReturnType<typeof makeEffectClient>
