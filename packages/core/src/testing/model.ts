/**
 * A scripted model: answers each request with the next turn of a script, and remembers what it was asked.
 *
 * For tests of whatever sits above a model. Delays use the Effect clock, so a test clock drives them. A request beyond the
 * script fails with kind `invalid_request`, which nobody retries: a test that asks too often is told so.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { JsonValue } from "../json/index.ts"
import {
  malformedMetadata,
  type Model,
  ModelError,
  type ModelErrorKind,
  type ModelInfo,
  type ModelPart,
  type ModelRequest,
  type ModelSource
} from "../model/index.ts"

/** One step of a turn; see `say`, `think`, `call` and the others, which make them. */
export type ScriptedStep =
  | { readonly step: "parts"; readonly parts: ReadonlyArray<ModelPart>; readonly calls: boolean }
  | { readonly step: "wait"; readonly duration: Duration.Input }
  | { readonly step: "fail"; readonly error: ModelError }
  | { readonly step: "run"; readonly effect: Effect.Effect<void> }
  | { readonly step: "never" }
  | { readonly step: "finish"; readonly part: ModelPart }

/** A turn is a list of steps, or a function of the request that makes one. A string is `[say(string)]`. */
export type ScriptedTurn =
  | string
  | ReadonlyArray<ScriptedStep>
  | ((request: ModelRequest) => string | ReadonlyArray<ScriptedStep>)

export interface ScriptedModel extends Model {
  /** Each request so far, oldest first. */
  readonly requests: ReadonlyArray<ModelRequest>
  /** Tokens of deferred answers that were asked for. */
  readonly resumed: ReadonlyArray<string>
  /** Turns of the script that nobody has asked for yet. */
  readonly remaining: number
  /** This model under every name. */
  readonly source: ModelSource
  /** Adds turns to the end of the script. */
  readonly add: (...turns: ReadonlyArray<ScriptedTurn>) => void
}

let ids = 0
const nextID = (kind: string): string => `${kind}_${++ids}`

const parts = (list: ReadonlyArray<ModelPart>, calls = false): ScriptedStep => ({ step: "parts", parts: list, calls })

/** A block of text, streamed in the given deltas. */
export const say = (...deltas: ReadonlyArray<string>): ScriptedStep => {
  const id = nextID("text")
  return parts([
    { type: "text-start", id },
    ...deltas.map((delta): ModelPart => ({ type: "text-delta", id, delta })),
    { type: "text-end", id }
  ])
}

/** A block of reasoning. `metadata`, by provider, comes with its end, as signatures do. */
export const think = (
  text: string,
  metadata?: { readonly [provider: string]: { readonly [key: string]: JsonValue } }
): ScriptedStep => {
  const id = nextID("reasoning")
  return parts([
    { type: "reasoning-start", id },
    { type: "reasoning-delta", id, delta: text },
    { type: "reasoning-end", id, ...(metadata === undefined ? {} : { metadata }) }
  ])
}

/** A tool call, with its arguments streamed first as providers do. */
export const call = (name: string, params: JsonValue, id: string = nextID("call")): ScriptedStep =>
  parts([
    { type: "tool-params-start", id, name },
    { type: "tool-params-delta", id, delta: JSON.stringify(params) },
    { type: "tool-params-end", id },
    { type: "tool-call", id, name, params }
  ], true)

/** A tool call whose arguments, as written, cannot be read. */
export const brokenCall = (name: string, text: string, id: string = nextID("call")): ScriptedStep =>
  parts([
    { type: "tool-params-start", id, name },
    { type: "tool-params-delta", id, delta: text },
    { type: "tool-params-end", id },
    {
      type: "tool-call",
      id,
      name,
      params: {},
      metadata: malformedMetadata({ error: "The arguments are not valid JSON.", text })
    }
  ], true)

/** Waits, by the Effect clock, before the next step. */
export const wait = (duration: Duration.Input): ScriptedStep => ({ step: "wait", duration })

/** Runs an effect before the next step: a latch to wait for, a deferred to complete. */
export const run = (effect: Effect.Effect<void>): ScriptedStep => ({ step: "run", effect })

/** Stays silent until interrupted. */
export const never: ScriptedStep = { step: "never" }

/** Ends the turn without an answer: the next turn of the script is what asking again by this token gives. */
export const defer = (token: string, pollAfterMs: number): ScriptedStep => ({
  step: "finish",
  part: { type: "deferred", token, pollAfterMs }
})

/** Ends the stream with an error. By default rate limits and faults of the connection or provider are retryable. */
export const fail = (
  kind: ModelErrorKind,
  options: { readonly message?: string; readonly retryable?: boolean; readonly retryAfterMs?: number } = {}
): ScriptedStep => ({
  step: "fail",
  error: new ModelError({
    kind,
    message: options.message ?? `The scripted model failed (${kind}).`,
    retryable: options.retryable ?? ["rate_limit", "unavailable", "transport", "truncated", "malformed"].includes(kind),
    retryAfterMs: options.retryAfterMs ?? null
  })
})

type FinishPart = Extract<ModelPart, { type: "finish" }>

/** Ends the turn for a reason, and with token counts, of the script's choice. Without one, a turn ends by itself. */
export const finish = (
  reason: FinishPart["reason"],
  usage: { readonly input?: number; readonly output?: number; readonly cacheRead?: number } = {}
): ScriptedStep => {
  const { cacheRead = 0, input = 10, output = 5 } = usage
  return {
    step: "finish",
    part: {
      type: "finish",
      reason,
      usage: {
        inputTokens: { total: input, uncached: input - cacheRead, cacheRead, cacheWrite: 0 },
        outputTokens: { total: output, text: output, reasoning: 0 }
      }
    }
  }
}

const ends = (step: ScriptedStep): boolean => step.step === "fail" || step.step === "never" || step.step === "finish"

const stream = (step: ScriptedStep): Stream.Stream<ModelPart, ModelError> => {
  switch (step.step) {
    case "parts":
      return Stream.fromIterable(step.parts)
    case "wait":
      return Stream.drain(Stream.fromEffect(Effect.sleep(step.duration)))
    case "run":
      return Stream.drain(Stream.fromEffect(step.effect))
    case "fail":
      return Stream.fail(step.error)
    case "never":
      return Stream.never
    case "finish":
      return Stream.succeed(step.part)
  }
}

const defaults: ModelInfo = {
  provider: "test",
  model: "scripted",
  name: "Scripted",
  contextWindow: null,
  maxOutput: null,
  reasoning: true,
  images: true,
  cost: null
}

/** A model that follows `script`, one turn for each request. */
export const scriptedModel = (script: ReadonlyArray<ScriptedTurn>, info: Partial<ModelInfo> = {}): ScriptedModel => {
  const turns = [...script]
  const requests: Array<ModelRequest> = []
  const resumed: Array<string> = []
  const model: ScriptedModel = {
    resumed,
    info: { ...defaults, ...info },
    requests,
    get remaining() {
      return turns.length
    },
    add: (...more) => {
      turns.push(...more)
    },
    resume: (token, request) => {
      resumed.push(token)
      return model.stream(request)
    },
    stream: (request) =>
      Stream.suspend(() => {
        requests.push(request)
        const turn = turns.shift()
        if (turn === undefined) {
          return stream(
            fail("invalid_request", { message: `The script of the model has no turn for request ${requests.length}.` })
          )
        }
        const made = typeof turn === "function" ? turn(request) : turn
        const steps = typeof made === "string" ? [say(made)] : [...made]
        if (!steps.some(ends)) {
          steps.push(finish(steps.some((step) => step.step === "parts" && step.calls) ? "tool-calls" : "stop"))
        }
        return Stream.flatMap(Stream.fromIterable(steps), stream)
      }),
    source: {
      resolve: () => Effect.succeed(model),
      list: Effect.sync(() => [{ info: model.info, availability: { ready: true } }])
    }
  }
  return model
}
