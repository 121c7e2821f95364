/**
 * One connection to a server, for the life of a scope: the handshake, requests with a time limit and progress, and the one
 * moment at which it is lost.
 *
 *     connecting ──answered in time──▶ connected ──its process or its address is gone──▶ lost (told once, with why)
 *          └──────── 30 s, refused ──▶ failed
 *
 * Interrupting a request tells the server that it is cancelled. What comes from the server is not trusted: answers are bounded
 * in size and depth, and are decoded by whoever asked.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import { type Bearer, makeBearer, type Wanted } from "./bearer-fetch.ts"
import { boundedFetch } from "./bounded-fetch.ts"
import type { McpServer } from "./contract.ts"
import type { ElicitationAnswer } from "./elicitation.ts"
import { McpFailure } from "./failure.ts"
import { startProcess } from "./process.ts"
import type * as sdkModule from "./sdk.ts"
import { isShallow, oneLine } from "./text.ts"

export interface Progress {
  readonly progress: number
  readonly total: number | null
  readonly message: string | null
}

export interface RequestOptions {
  /** Without an answer or progress for so long it fails; default 30 seconds. */
  readonly timeout?: Duration.Input
  readonly onProgress?: (progress: Progress) => Effect.Effect<void>
}

export interface Connection {
  /** What the server calls itself and says of itself, as it came. */
  readonly title: string
  readonly instructions: string
  /** Whether it has taken the token of a sign-in. */
  readonly signedIn: () => boolean
  readonly has: { readonly tools: boolean; readonly resources: boolean; readonly prompts: boolean }
  readonly request: (
    method: string,
    params: { readonly [name: string]: unknown },
    options?: RequestOptions
  ) => Effect.Effect<{ readonly [name: string]: unknown }, McpFailure>
  /** Gives a value whenever the server says that its tools or prompts have changed. */
  readonly changed: Effect.Effect<void>
  /** Completes when the connection is gone, with the reason. */
  readonly lost: Effect.Effect<string>
}

export interface ConnectOptions {
  readonly location: string
  readonly version: string
  /** For the log. */
  readonly log: (line: string) => void
  /** The token of a sign-in to an address, or another one in place of one that was refused. */
  readonly token: (refused: Redacted.Redacted | null) => Effect.Effect<Redacted.Redacted | null, McpFailure>
  /** What is said where somebody has to sign in. */
  readonly wanted: (why: Wanted) => McpFailure
  /** What the server asks a person, answered by one. */
  readonly elicit: (params: unknown) => Effect.Effect<ElicitationAnswer>
}

/** How long a server may take to answer at all: many are fetched from a registry when they are first started. */
export const connectLimit: Duration.Input = "30 seconds"
const requestLimit: Duration.Input = "30 seconds"
const probeLimit: Duration.Input = "5 seconds"
const goodbyeLimit: Duration.Input = "500 millis"
const maxDepth = 100
/** The library's own timers are not used: its longest one. */
const never = 2 ** 31 - 1

type Sdk = typeof sdkModule

const loadSdk: Effect.Effect<Sdk> = Effect.promise(() => import("./sdk.ts"))

const cause = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? cause(error.cause) : error

const failureOf = (sdk: Sdk, bearer: Bearer | null) => (error: unknown): McpFailure => {
  const hidden = (text: string) => bearer === null ? text : bearer.hide(text)
  if (error instanceof McpFailure) return error
  if (error instanceof sdk.ProtocolError) {
    const message = error.message.replace(/^(?:MCP error -?\d+: )+/, "")
    return message === "Connection closed"
      ? new McpFailure({ message: "the connection was lost", lost: true })
      : new McpFailure({ message: oneLine(hidden(message), 2_000) })
  }
  if (error instanceof sdk.StreamableHTTPError) {
    const code = error.code ?? 0
    const refusal = bearer?.refusal(code) ?? null
    if (refusal !== null) return refusal
    const hint = code === 401 || code === 403 ? "; say who you are in its headers" : ""
    const text = oneLine(hidden(error.message.replace(/^Streamable HTTP error: /, "")), 300)
    return new McpFailure({ message: code >= 100 ? `it answered with HTTP status ${code}${hint}: ${text}` : text })
  }
  const root = cause(error)
  const text = root instanceof Error ? root.message : String(root)
  if (text === "Not connected") return new McpFailure({ message: "the connection was lost", lost: true })
  return new McpFailure({ message: oneLine(text === "" ? "it cannot be reached" : hidden(text), 300) })
}

/** Answers are decoded where they are used; the library is not asked to compile schemas that a server sends. */
const noValidator = {
  getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "nothing is checked here" } as const)
}

const makeClient = (
  sdk: Sdk,
  options: ConnectOptions,
  onChange: () => void,
  elicit: (params: unknown) => Promise<ElicitationAnswer>
): Client => {
  const client = new sdk.Client({ name: "bezel", title: "Bezel", version: options.version }, {
    capabilities: { roots: {}, elicitation: { form: {} } },
    jsonSchemaValidator: noValidator
  })
  const root = { uri: pathToFileURL(options.location).href, name: basename(options.location) }
  client.setRequestHandler(sdk.ListRootsRequestSchema, () => ({ roots: [root] }))
  client.setRequestHandler(sdk.ElicitRequestSchema, async ({ params }) => {
    const answer = await elicit(params)
    return answer.action === "accept"
      ? { action: answer.action, content: copyOf(answer.content) }
      : { action: answer.action }
  })
  client.setNotificationHandler(sdk.ToolListChangedNotificationSchema, onChange)
  client.setNotificationHandler(sdk.PromptListChangedNotificationSchema, onChange)
  client.setNotificationHandler(sdk.LoggingMessageNotificationSchema, ({ params }) => {
    const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data)
    options.log(oneLine(`${params.level}: ${text.slice(0, 2_000)}`, 300))
  })
  return client
}

/** As the library's types want it. */
const copyOf = (content: { readonly [field: string]: string | number | boolean | ReadonlyArray<string> }) =>
  Object.fromEntries(
    Object.entries(content).map(([name, value]) => [name, typeof value === "object" ? [...value] : value])
  )

interface Opened {
  readonly transport: Transport
  /** Why it has ended, if it has. */
  readonly reason: () => string | null
  readonly goodbye: Effect.Effect<void>
  /** `null`: no sign-in is needed there, or its headers say who one is. */
  readonly bearer: Bearer | null
}

const openTransport = (
  sdk: Sdk,
  server: McpServer,
  options: ConnectOptions
): Effect.Effect<Opened, McpFailure, Scope.Scope> =>
  Effect.gen(function*() {
    if ("command" in server) {
      const process = yield* startProcess(server, options.location, options.log)
      const transport = new sdk.StdioTransport(process)
      return { transport, reason: () => transport.reason, goodbye: Effect.void, bearer: null }
    }
    const headers = Object.fromEntries(
      Object.entries(server.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])
    )
    const { MAX_MESSAGE_BYTES } = yield* Effect.promise(() => import("./stdio.ts"))
    const run = yield* FiberSet.makeRuntimePromise<never>()
    const base = boundedFetch(MAX_MESSAGE_BYTES)
    const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === "authorization")
    const bearer = isNamed ? null : makeBearer({
      url: server.url,
      base,
      wanted: options.wanted,
      token: (refused) => run(options.token(refused))
    })
    const transport = yield* Effect.try({
      try: () =>
        new sdk.StreamableHTTPClientTransport(new URL(server.url), {
          requestInit: { headers },
          fetch: bearer?.fetch ?? base
        }),
      catch: failureOf(sdk, bearer)
    })
    const goodbye = Effect.tryPromise(() => transport.terminateSession())
    return {
      // Its `sessionId` is a getter of `string | undefined`, which an optional member may not be here.
      transport: transport as Transport,
      bearer,
      reason: () => null,
      goodbye: Effect.ignore(Effect.timeoutOption(goodbye, goodbyeLimit))
    }
  })

/** Connects; fails if there is no answer in time. */
export const connect = (
  server: McpServer,
  options: ConnectOptions
): Effect.Effect<Connection, McpFailure, Scope.Scope> =>
  Effect.gen(function*() {
    const sdk = yield* loadSdk
    const lost = yield* Deferred.make<string>()
    const changes = yield* Queue.sliding<void>(1)
    const doubts = yield* Queue.sliding<void>(1)
    const opened = yield* openTransport(sdk, server, options)
    const { bearer } = opened
    const run = yield* FiberSet.makeRuntimePromise<never>()
    const asking = { count: 0 }
    const elicit = (params: unknown) =>
      run(Effect.acquireUseRelease(
        Effect.sync(() => asking.count++),
        () => options.elicit(params),
        () => Effect.sync(() => asking.count--)
      ))
    const client = makeClient(sdk, options, () => {
      Queue.offerUnsafe(changes, undefined)
    }, elicit)
    Object.assign(client, {
      onerror: (error: Error) => {
        options.log(
          oneLine(`fault: ${bearer?.hide(error.message.slice(0, 2_000)) ?? error.message.slice(0, 2_000)}`, 300)
        )
        Queue.offerUnsafe(doubts, undefined)
      },
      onclose: () => {
        Deferred.doneUnsafe(lost, Effect.succeed(opened.reason() ?? "it was closed"))
      }
    })
    yield* Effect.addFinalizer(() =>
      Effect.andThen(opened.goodbye, Effect.promise(() => client.close().catch(() => {})))
    )
    yield* Effect.tryPromise({
      try: (signal) => client.connect(opened.transport, { signal, timeout: never }),
      catch: failureOf(sdk, bearer)
    }).pipe(
      Effect.catch((failure) => {
        const reason = failure.lost === true ? opened.reason() : null
        return Effect.fail(reason === null ? failure : new McpFailure({ message: reason }))
      }),
      Effect.timeoutOrElse({
        duration: connectLimit,
        orElse: () =>
          Effect.fail(
            new McpFailure({
              message: `it did not answer within ${Duration.format(Duration.fromInputUnsafe(connectLimit))}`
            })
          )
      })
    )
    const request = makeRequest(sdk, client, bearer, asking)
    if (!("command" in server)) yield* Effect.forkScoped(watch(request, doubts, lost))
    const capabilities = client.getServerCapabilities()
    const version = client.getServerVersion()
    return {
      title: version?.title ?? version?.name ?? "",
      instructions: client.getInstructions() ?? "",
      signedIn: () => bearer?.signedIn() ?? false,
      has: {
        tools: capabilities?.tools !== undefined,
        resources: capabilities?.resources !== undefined,
        prompts: capabilities?.prompts !== undefined
      },
      request,
      changed: Queue.take(changes),
      lost: Deferred.await(lost)
    }
  })

/** An address has no moment at which it is gone: when something went wrong it is asked whether it is still there. */
const watch = (
  request: Connection["request"],
  doubts: Queue.Queue<void>,
  lost: Deferred.Deferred<string>
): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (;;) {
      yield* Queue.take(doubts)
      const answer = yield* Effect.result(request("ping", {}, { timeout: probeLimit }))
      if (answer._tag === "Failure") {
        yield* Deferred.succeed(lost, answer.failure.message)
        return
      }
      // The answer to this may have been a fault of its own.
      yield* Effect.sleep("1 second")
    }
  })

const makeRequest = (
  sdk: Sdk,
  client: Client,
  bearer: Bearer | null,
  asking: { readonly count: number }
): Connection["request"] =>
(method, params, options = {}) =>
  Effect.gen(function*() {
    const limit = options.timeout ?? requestLimit
    const beats = yield* Queue.sliding<Progress>(1)
    const { onProgress } = options
    const asked = Effect.tryPromise({
      try: (signal) =>
        client.request({ method, params: { ...params } }, sdk.ResultSchema, {
          signal,
          timeout: never,
          ...(onProgress === undefined ? {} : {
            onprogress: ({ message, progress, total }) => {
              Queue.offerUnsafe(beats, {
                progress,
                total: total ?? null,
                message: message === undefined ? null : oneLine(message, 300)
              })
            }
          })
        }),
      catch: failureOf(sdk, bearer)
    })
    const overdue = Effect.gen(function*() {
      for (;;) {
        const beat = yield* Effect.timeoutOption(Queue.take(beats), limit)
        if (Option.isNone(beat)) {
          // A person may take their time.
          if (asking.count > 0) continue
          return yield* new McpFailure({
            message: `it did not answer within ${Duration.format(Duration.fromInputUnsafe(limit))}`
          })
        }
        if (onProgress !== undefined) yield* onProgress(beat.value)
      }
    })
    const result: { readonly [name: string]: unknown } = yield* Effect.raceFirst(asked, overdue)
    if (!isShallow(result, maxDepth)) {
      return yield* new McpFailure({ message: "its answer is nested too deeply" })
    }
    return result
  })
