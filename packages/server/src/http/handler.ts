/** What implements an endpoint: a function from its decoded request to its answer. */
import type { LocationGroup, ServerGroup, SessionGroup } from "@bezel/sdk/api"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as Scope from "effect/Scope"
import type { Caller } from "../serve/caller.ts"
import type { ApiFailure, Refusal } from "./failure.ts"

/** Who calls, and what of the request is not in its schemas. */
export interface Call {
  readonly caller: Caller
  readonly header: (name: string) => string | undefined
  /** Counts that who calls has shown something that is not valid, and says what they are told. */
  readonly refuse: (why: string) => ApiFailure
}

/** Sends a piece of a stream; completes when there is room for the next one, and never once the client is gone. */
export type Write = (text: string) => Effect.Effect<void>

/** An answer that goes on: an event stream. `run` ends with the client at the latest. */
export class EventStream
  extends Data.Class<{ readonly run: (write: Write) => Effect.Effect<void, never, Scope.Scope> }>
{}

/** An answer that is no JSON. */
export class TextAnswer extends Data.Class<{ readonly contentType: string; readonly text: string }> {}

/** JSON that is text already. */
export class JsonText extends Data.Class<{ readonly text: string }> {}

type Parts<E extends HttpApiEndpoint.ConstraintRequest> =
  & ([E["~Params"]["Type"]] extends [never] ? {} : { readonly params: E["~Params"]["Type"] })
  & ([E["~Query"]["Type"]] extends [never] ? {} : { readonly query: E["~Query"]["Type"] })
  & ([E["~Payload"]["Type"]] extends [never] ? {} : { readonly payload: E["~Payload"]["Type"] })

/**
 * The schemas of answers encode nothing, what they describe is what is sent; so an answer goes out as it is, and the compiler
 * holds it to its schema.
 */
export type Handler<E extends HttpApiEndpoint.ConstraintRequest> = (
  request: Parts<E>,
  call: Call
) => Effect.Effect<E["~Success"]["Type"] | EventStream | TextAnswer | JsonText, Refusal, Scope.Scope>

type EndpointsOf<G> = G extends { readonly endpoints: infer E } ? E : never

/** One handler for each endpoint of a group. */
export type Handlers<G> = {
  readonly [Name in keyof EndpointsOf<G>]: EndpointsOf<G>[Name] extends HttpApiEndpoint.ConstraintRequest ?
    Handler<EndpointsOf<G>[Name]> :
    never
}

export type SessionHandlers = Handlers<typeof SessionGroup>
export type LocationHandlers = Handlers<typeof LocationGroup>
export type ServerHandlers = Handlers<typeof ServerGroup>

/** Any handler, its types erased: the request was decoded with its own endpoint's schemas. */
export type AnyHandler = (request: object, call: Call) => Effect.Effect<unknown, Refusal, Scope.Scope>
