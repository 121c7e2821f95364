/**
 * Hook points that task kinds declare: places where code of others runs, each with how its answers become one and what a
 * failure means. The core's own points are declared with their kinds in `api.ts`; these are of the same sort.
 */
import type * as Effect from "effect/Effect"
import type { HookApi, Memo } from "./api.ts"

/** `P` is what handlers see, `A` what each may answer, `R` what the kind gets of all of them. */
export interface HookPoint<P, A, R> {
  /** `collect` takes all answers, `first` the first one, `chain` hands what one answered to the next. */
  readonly fold: "collect" | "first" | "chain"
  /** What a handler's failure, defect or time-out means: it is left out with a warning, or it fails whoever runs the point. */
  readonly onFailure: "skip" | "block"
  /** Never there: it carries the types. */
  readonly types?: { readonly payload: (payload: P) => void; readonly answer: A; readonly result: R }
}

export interface HookPoints {
  readonly [point: string]: HookPoint<never, unknown, unknown>
}

interface PointOptions {
  readonly onFailure?: "skip" | "block"
}

export const HookPoint = {
  collect: <P, A = void>(options: PointOptions = {}): HookPoint<P, A, ReadonlyArray<A>> => ({
    fold: "collect",
    onFailure: options.onFailure ?? "skip"
  }),
  first: <P, A>(options: PointOptions = {}): HookPoint<P, A, A | undefined> => ({
    fold: "first",
    onFailure: options.onFailure ?? "skip"
  }),
  chain: <P>(options: PointOptions = {}): HookPoint<P, P, P> => ({
    fold: "chain",
    onFailure: options.onFailure ?? "skip"
  })
} as const

export type PayloadOf<T> = T extends HookPoint<infer P, unknown, unknown> ? P : never
type AnswerOf<T> = T extends HookPoint<never, infer A, unknown> ? A : never
export type ResultOf<T> = T extends HookPoint<never, unknown, infer R> ? R : never

/** What handlers at a kind's own points get. */
export interface PointApi extends HookApi {
  /** First writer wins, keyed by (task, namespace, name); it ends with the task. */
  readonly memo: Memo
}

export type HandlersAt<H> = {
  readonly [N in keyof H]?: (
    payload: PayloadOf<H[N]>,
    api: PointApi
  ) => Effect.Effect<AnswerOf<H[N]> | void, { readonly message: string }>
}

/** A kind of task with points of its own. */
export interface HookedKind<H extends HookPoints = HookPoints> {
  readonly name: string
  readonly hooks: H
}
