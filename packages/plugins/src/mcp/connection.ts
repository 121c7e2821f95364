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
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { AsyncLocalStorage } from "node:async_hooks"
import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import type { Bearer } from "./bearer-fetch.ts"
import type { RunningCall } from "./calls.ts"
import type { McpServer } from "./contract.ts"
import type { ElicitationAnswer } from "./elicitation.ts"
import { McpFailure } from "./failure.ts"
import { isShallow, oneLine } from "./text.ts"
import { failureOf, loadSdk, openTransport, type Sdk, type TransportOptions } from "./transport.ts"

export interface Progress {
  readonly progress: number
  readonly total: number | null
  readonly message: string | null
}

export interface RequestOptions {
  /** Without an answer or progress for so long it fails; default 30 seconds. */
  readonly timeout?: Duration.Input
  readonly onProgress?: (progress: Progress) => Effect.Effect<void>
  /** The call that it is made for, given back with what the server asks on its behalf. */
  readonly call?: RunningCall
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

export interface ConnectOptions extends TransportOptions {
  readonly version: string
  /** What the server asks a person, answered by one. `call`: on whose behalf, where that can be told. */
  readonly elicit: (params: unknown, call: RunningCall | null) => Effect.Effect<ElicitationAnswer>
}

/** How long a server may take to answer at all: many are fetched from a registry when they are first started. */
export const connectLimit: Duration.Input = "30 seconds"
const requestLimit: Duration.Input = "30 seconds"
const probeLimit: Duration.Input = "5 seconds"
const maxDepth = 100
/** The library's own timers are not used: its longest one. */
const never = 2 ** 31 - 1

/** Answers are decoded where they are used; the library is not asked to compile schemas that a server sends. */
const noValidator = {
  getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "nothing is checked here" } as const)
}

const makeClient = (
  sdk: Sdk,
  options: ConnectOptions,
  onChange: () => void,
  elicit: (params: unknown) => Promise<ElicitationAnswer>,
  hide: (text: string) => string
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
    options.log(oneLine(`${params.level}: ${hide(text.slice(0, 2_000))}`, 300))
  })
  return client
}

/** As the library's types want it. */
const copyOf = (content: { readonly [field: string]: string | number | boolean | ReadonlyArray<string> }) =>
  Object.fromEntries(
    Object.entries(content).map(([name, value]) => [name, typeof value === "object" ? [...value] : value])
  )

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
    const hide = (text: string) => bearer === null ? text : bearer.hide(text)
    const run = yield* FiberSet.makeRuntimePromise<never>()
    // An address answers each request on a stream of its own, and asks on it what it asks for it. The library does not say
    // which stream a message came on, but it reads each as part of the request that has opened it.
    const calls = "command" in server ? null : new AsyncLocalStorage<RunningCall | null>()
    const elicit = (params: unknown) => {
      // Here and now: what is forked runs whenever it does.
      const call = calls?.getStore() ?? null
      return run(options.elicit(params, call))
    }
    const client = makeClient(
      sdk,
      options,
      () => {
        Queue.offerUnsafe(changes, undefined)
      },
      elicit,
      hide
    )
    Object.assign(client, {
      onerror: (error: Error) => {
        options.log(
          oneLine(`fault: ${hide(error.message.slice(0, 2_000))}`, 300)
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
      try: (signal) => {
        const begin = () => client.connect(opened.transport, { signal, timeout: never })
        return calls === null ? begin() : calls.run(null, begin)
      },
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
    const request = makeRequest(sdk, client, bearer, calls)
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
  calls: AsyncLocalStorage<RunningCall | null> | null
): Connection["request"] =>
(method, params, options = {}) =>
  Effect.gen(function*() {
    const limit = options.timeout ?? requestLimit
    const beats = yield* Queue.sliding<Progress>(1)
    const { call = null, onProgress } = options
    const send = (signal: AbortSignal) =>
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
      })
    const asked = Effect.tryPromise({
      try: (signal) => calls === null ? send(signal) : calls.run(call, () => send(signal)),
      catch: failureOf(sdk, bearer)
    })
    const overdue = Effect.gen(function*() {
      for (;;) {
        const beat = yield* Effect.timeoutOption(Queue.take(beats), limit)
        if (Option.isNone(beat)) {
          // A person may take their time.
          if (call !== null && call.questions > 0) continue
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
