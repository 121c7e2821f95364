/**
 * Runs hook chains: in order of registration, gates last, each handler within its time limit.
 *
 * A handler that has said that it waits for a person has no limit. What a failure means is the hook point's: of the core's
 * points it blocks a call before it starts, and is skipped with a warning everywhere else.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { HarnessError, type HarnessReport, type HookApi } from "./api.ts"
import type { RegisteredHook } from "./extensions.ts"
import type { HookPoint } from "./hook-point.ts"
import type { TaskRuntime } from "./kind.ts"
import { memosOf } from "./memo.ts"
import type { ConversationState } from "./state.ts"

export const defaultHookLimit: Duration.Input = "10 seconds"

/**
 * The failure of a handler as one sentence. One that was interrupted from outside never gets here: its invocation ends
 * with it; so an interrupt that does is the handler's own, and a failure like any other.
 */
export const failureText = (cause: Cause.Cause<{ readonly message: string }>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "it interrupted itself"
  const error = Cause.squash(cause)
  return error instanceof Error || typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : String(error)
}

/** Fails with a sentence when the handler takes too long and `isWaiting` is not true by then. */
export const withLimit = <A, E extends { readonly message: string }>(
  handler: Effect.Effect<A, E>,
  limit: Duration.Input,
  namespace: string,
  isWaiting: () => boolean
): Effect.Effect<A, E | { readonly message: string }> =>
  Effect.raceFirst(
    handler,
    Effect.andThen(
      Effect.sleep(limit),
      Effect.suspend(() =>
        isWaiting()
          ? Effect.never
          : Effect.fail({
            message: `the hook of "${namespace}" did not answer within ${
              Duration.format(Duration.fromInputUnsafe(limit))
            }`
          })
      )
    )
  )

/**
 * Runs one handler of a point that only observes or adds: within its limit, and with its failure reported and otherwise
 * ignored. `who` is the namespace, or the section, that it belongs to.
 */
export const runHandler = <A>(
  session: { readonly report: (report: HarnessReport) => void },
  options: { readonly hookLimit?: Duration.Input },
  at: {
    readonly point: string
    readonly who: string
    readonly conversationID: string
    readonly limit?: Duration.Input | undefined
  },
  handler: () => Effect.Effect<A, { readonly message: string }>
): Effect.Effect<A | undefined> =>
  Effect.catchCause(
    withLimit(Effect.suspend(handler), at.limit ?? options.hookLimit ?? defaultHookLimit, at.who, () => false),
    (cause) => {
      const message = `The ${at.point} hook of "${at.who}" was skipped: ${failureText(cause)}`
      session.report({ level: "warning", message, conversationID: at.conversationID })
      return Effect.as(Effect.logWarning(`${at.point} hook of ${at.who} failed`, cause), undefined)
    }
  )

/** What running a kind's own point needs of its session. */
export interface PointHost {
  readonly hooksAt: (kind: string, conversation: ConversationState) => ReadonlyArray<RegisteredHook>
  readonly report: (report: HarnessReport) => void
  readonly hookLimit?: Duration.Input
  /** Chains begin only while nothing is held. */
  readonly released: Effect.Effect<void>
}

/** Runs a point that a custom kind has declared. What handlers see and answer is typed where they are registered. */
export const runPoint = Effect.fnUntraced(function*(
  host: PointHost,
  at: { readonly kind: string; readonly name: string; readonly point: HookPoint<never, unknown, unknown> },
  runtime: TaskRuntime,
  api: HookApi,
  payload: unknown
): Effect.fn.Return<unknown, HarnessError> {
  yield* host.released
  const { fold, onFailure } = at.point
  const collected: Array<unknown> = []
  let current = payload
  for (const { handlers, namespace, options } of host.hooksAt(at.kind, runtime.conversation)) {
    const handler: unknown = Reflect.get(handlers, at.name)
    if (typeof handler !== "function") continue
    const own = { ...api, memo: memosOf(runtime, api.taskID, namespace) }
    const value = current
    const run = (): Effect.Effect<unknown, { readonly message: string }> =>
      Reflect.apply(handler, handlers, [value, own])
    const limit = options.limit ?? host.hookLimit ?? defaultHookLimit
    const place = { point: at.name, who: namespace, conversationID: api.conversationID, limit }
    const answer = yield* onFailure === "skip"
      ? runHandler(host, {}, place, run)
      : Effect.catchCause(withLimit(Effect.suspend(run), limit, namespace, () => false), (cause) =>
        Effect.fail(
          new HarnessError({
            code: "not_permitted",
            message: `The ${at.name} hook of "${namespace}" failed: ${failureText(cause)}`
          })
        ))
    if (answer === undefined) continue
    if (fold === "first") return answer
    if (fold === "collect") collected.push(answer)
    else if (options.gate !== true) current = answer
  }
  return fold === "collect" ? collected : fold === "chain" ? current : undefined
})
