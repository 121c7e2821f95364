/**
 * Interactions: the host asks a person, through whichever client is there. The token holds the contract; the broker owns
 * ids, choice of client, validation and settlement.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { CloseReason } from "./broker.ts"

/** What happens to a request when nobody is there: it stays open, or settles at once as `unattended`. */
export type Unattended = "wait" | "deny"

export interface Interaction<Q, R> {
  readonly id: string
  readonly request: Schema.ConstraintCodec<Q, unknown>
  readonly response: Schema.ConstraintCodec<R, unknown>
  /** What this interaction would like; the session's policy overrides it. */
  readonly unattended: Unattended
  /** Which valid answer is a yes. Such an interaction fails closed: whatever is not a valid yes is a no. */
  readonly confirm: ((response: R) => boolean) | null
  /** Request and answer never enter state, logs, spans, events, storage or error messages. */
  readonly sensitive: boolean
}

export declare namespace Interaction {
  /** Any token, its types erased; the broker and the wire handle these. */
  type Any = Pick<Interaction<unknown, unknown>, "id" | "request" | "response" | "unattended" | "sensitive">
}

/** How a request ended. The four can be told apart by model, log and clients; only `answered` may be remembered. */
export type InteractionOutcome<R> =
  | { readonly type: "answered"; readonly response: R; /** Id of the client. */ readonly client: string }
  /** A person saw it and would not answer. */
  | { readonly type: "declined"; readonly client: string }
  /** Its time ran out. */
  | { readonly type: "expired" }
  /** Nobody was there, and the policy says not to wait. */
  | { readonly type: "unattended" }

/** The request that a handler answers: why it was taken from the handler, once it was. */
export const AskedRequest = Context.Reference<{ closed: CloseReason | null }>("@bezel/core/service/AskedRequest", {
  defaultValue: () => ({ closed: null })
})

export const Interaction = {
  /**
   * For handlers: runs `tell` when the request is taken from `effect` because it is settled, elsewhere or not at all. Not when
   * the connection is lost, where nobody knows.
   */
  onClosed: <A, E, R, R2>(
    effect: Effect.Effect<A, E, R>,
    tell: (reason: CloseReason) => Effect.Effect<void, never, R2>
  ): Effect.Effect<A, E, R | R2> =>
    Effect.onInterrupt(
      effect,
      () => Effect.flatMap(AskedRequest, ({ closed }) => closed === null ? Effect.void : tell(closed))
    ),

  /**
   * `Interaction.make("acme.question")({ request, response, unattended: "wait" })`
   *
   * `confirm: true` means that the response `true` is the yes; a function says which valid response is one.
   */
  make: (id: string) =>
  <Q, R>(options: {
    readonly request: Schema.ConstraintCodec<Q, unknown>
    readonly response: Schema.ConstraintCodec<R, unknown>
    readonly unattended: Unattended
    readonly confirm?: true | ((response: R) => boolean)
    readonly sensitive?: boolean
  }): Interaction<Q, R> => ({
    id,
    request: options.request,
    response: options.response,
    unattended: options.unattended,
    confirm: options.confirm === true ? (response) => response === true : options.confirm ?? null,
    sensitive: options.sensitive ?? false
  }),

  /** Whether this outcome is a valid yes. Everything else, also an interaction that declares no yes, is a no. */
  isConfirmed: <Q, R>(interaction: Interaction<Q, R>, outcome: InteractionOutcome<R>): boolean =>
    outcome.type === "answered" && interaction.confirm !== null && interaction.confirm(outcome.response) === true
}
