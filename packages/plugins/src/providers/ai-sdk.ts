/**
 * A model made of a provider package of the Vercel AI SDK (LanguageModelV4).
 *
 * The package speaks the wire; this adapter asks it for one streamed answer with the tools declared, and translates. It
 * never runs a tool and never retries: that is the turn's business. Interrupting the stream aborts the request, which
 * closes the connection. Nothing of a package is loaded before a model of it is first asked.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { type Model, ModelError, type ModelInfo, type ModelPart, type ModelRequest } from "@bezel/core/model"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { classifyError } from "./ai-sdk-errors.ts"
import { addCopies, fileMarks, type FileOptions, type ImageCopies } from "./ai-sdk-files.ts"
import { noGuard, type StreamGuard } from "./ai-sdk-guard.ts"
import { toPrompt, toTools } from "./ai-sdk-prompt.ts"
import { makePump } from "./ai-sdk-pump.ts"
import { makeTranslator, type StreamFault } from "./ai-sdk-stream.ts"
import type { ImageLimit } from "./fit-image.ts"

export interface AiSdkModelOptions {
  readonly info: ModelInfo
  /** The provider's name, for people. */
  readonly providerName: string
  /** The package that `load` loads, for people. */
  readonly packageName: string
  /** Loads the package and makes its model; run at the first request, once. A failure is classified like any other. */
  readonly load: () => Promise<LanguageModelV4>
  /** Values that an error message must not contain. */
  readonly secrets: ReadonlyArray<string>
  /** Watches the raw events, where the wire is known. */
  readonly guard?: () => StreamGuard
  /** Whether results of tools may hold files. Default: false. */
  readonly filesInResults?: boolean
  /** What an image may have to be sent, of a larger one a copy is; default: whatever it has. */
  readonly imageLimit?: ImageLimit
  /** Whether `thinking: "off"` must be said; by default nothing is said then. */
  readonly saysNoThinking?: boolean
  /** Changes the call before it is made, for what one provider has alone, such as cache marks. */
  readonly adjust?: (call: LanguageModelV4CallOptions, request: ModelRequest) => LanguageModelV4CallOptions
}

/**
 * A file that a provider cannot use makes it refuse every request of a conversation from then on. So a request that is refused
 * and has files is made once more with these described in words; if that is answered, they are not sent again.
 */
export const aiSdkModel = (options: AiSdkModelOptions): Model => {
  const refused = new Set<string>()
  const copies: ImageCopies = new Map()
  let loaded: Promise<LanguageModelV4> | null = null
  const load = (): Promise<LanguageModelV4> => {
    loaded ??= options.load().catch((error: unknown) => {
      // A failure to load may pass (a file that is just being installed): the next request tries again.
      loaded = null
      throw error
    })
    return loaded
  }
  return {
    info: options.info,
    stream: (request) =>
      Stream.unwrap(Effect.gen(function*() {
        const { signal } = yield* Effect.acquireRelease(
          Effect.sync(() => new AbortController()),
          (controller) => Effect.sync(() => controller.abort())
        )
        if (options.info.images && options.imageLimit !== undefined) {
          yield* addCopies(request.messages, options.imageLimit, copies)
        }
        const ask = attempt(options, async () => {
          const model = await load()
          return model.doStream(toCall(options, request, { refused, copies }, signal))
        })
        const result = yield* Effect.catchIf(ask, ({ kind }) => kind === "invalid_request", (error) => {
          const shown = [...fileMarks(request.messages)].filter((mark) => !refused.has(mark))
          if (shown.length === 0) return Effect.fail(error)
          for (const mark of shown) refused.add(mark)
          // Refused without them too, it was not they.
          return Effect.tapError(ask, () => Effect.sync(() => shown.forEach((mark) => refused.delete(mark))))
        })
        const reader = yield* Effect.acquireRelease(
          Effect.sync(() => result.stream.getReader()),
          (open) =>
            Effect.sync(() => {
              // Not awaited: the abort above ends it, and a package's stream may never answer.
              open.cancel().catch(() => {})
            })
        )
        return Stream.fromPull(Effect.sync(() => pull(options, reader)))
      }))
  }
}

const toCall = (
  options: AiSdkModelOptions,
  request: ModelRequest,
  files: Pick<FileOptions, "refused" | "copies">,
  abortSignal: AbortSignal
): LanguageModelV4CallOptions => {
  const { adjust, filesInResults = false, imageLimit, info, saysNoThinking = false } = options
  const maxOutput = request.maxOutput ?? info.maxOutput
  const call: LanguageModelV4CallOptions = {
    prompt: toPrompt(request.messages, {
      images: info.images,
      filesInResults,
      ...files,
      ...(imageLimit === undefined ? {} : { imageLimit })
    }),
    abortSignal,
    ...(request.tools.length === 0 ? {} : { tools: toTools(request.tools), toolChoice: { type: "auto" } }),
    ...(maxOutput === null ? {} : { maxOutputTokens: maxOutput }),
    ...(!info.reasoning || request.thinking === "off" && !saysNoThinking
      ? {}
      : { reasoning: request.thinking === "off" ? "none" : request.thinking }),
    ...(options.guard === undefined ? {} : { includeRawChunks: true })
  }
  return adjust === undefined ? call : adjust(call, request)
}

/** Takes what has come, until the stream has ended and all of it was given. */
const pull = (
  options: AiSdkModelOptions,
  reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>
): Effect.Effect<readonly [ModelPart, ...Array<ModelPart>], ModelError | Cause.Done<void>> => {
  const guard = (options.guard ?? noGuard)()
  const pump = makePump(reader, makeTranslator(guard))
  return Effect.gen(function*() {
    const taken = yield* Effect.promise(() => pump.take())
    if ("finished" in taken) return yield* Cause.done()
    // Parts that came before a fault have been given by now: they are what was seen of the answer.
    if ("fault" in taken) return yield* toError(options, taken.fault, guard)
    if ("failed" in taken) return yield* Effect.flatMap(classify(options, taken.failed), Effect.fail)
    const [first, ...rest] = taken
    return first === undefined ? yield* Cause.done() : [first, ...rest] as const
  })
}

const toError = Effect.fnUntraced(function*(
  options: AiSdkModelOptions,
  fault: StreamFault,
  guard: StreamGuard
): Effect.fn.Return<never, ModelError> {
  const provider = options.providerName
  if (fault.fault !== "provider") {
    const message = `${provider}: ${fault.message}`
    return yield* new ModelError({ kind: fault.fault, message, retryable: fault.retryable, retryAfterMs: null })
  }
  const error = yield* classify(options, fault.error)
  if (error.kind !== "malformed" || guard.finished()) return yield* error
  // The package reports an early end as a response that it cannot make sense of. Only the end itself is that.
  return yield* isInvalidResponse(fault.error)
    ? new ModelError({
      kind: "truncated",
      message: `${provider}: The answer broke off before its end.`,
      retryable: true,
      retryAfterMs: null
    })
    : error
})

const isInvalidResponse = (error: unknown): boolean =>
  error instanceof Error && error.name === "AI_InvalidResponseDataError"

const classify = (options: AiSdkModelOptions, error: unknown): Effect.Effect<ModelError> =>
  Effect.map(Clock.currentTimeMillis, (now) =>
    classifyError(error, {
      provider: options.providerName,
      package: options.packageName,
      model: options.info.model,
      secrets: options.secrets,
      now
    }))

/** A promise of the package, whose failure is classified. */
const attempt = <A>(options: AiSdkModelOptions, run: () => Promise<A> | PromiseLike<A>): Effect.Effect<A, ModelError> =>
  Effect.catch(
    Effect.tryPromise({ try: async () => run(), catch: (error) => ({ error }) }),
    ({ error }) => Effect.flatMap(classify(options, error), Effect.fail)
  )
