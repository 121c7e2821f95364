/**
 * Service tokens: the typed identity of a service and the allow-list of what crosses a process boundary.
 *
 * A remote token names its states, event sources and methods by Schema; nothing else of an implementation is reachable
 * from outside. A local token never leaves its process: it has no wire form, and remotely its id does not exist.
 */
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { DurableEvents } from "./durable.ts"
import type { ServiceError } from "./error.ts"
import type { RemoteEvents } from "./events.ts"
import type { RemoteState, Replica } from "./state.ts"

/** A schema that needs no services to encode or decode, which is what a boundary can carry. */
export type AnyCodec = Schema.ConstraintCodec<unknown, unknown>

/** One method. `success` defaults to `Schema.Void`, `error` to `Schema.Never`; without `payload` it takes nothing. */
export interface MethodContract {
  readonly payload?: AnyCodec
  /** A schema, or `RemoteReference.of(Token)` for a method that returns an object of a token of its own. */
  readonly success?: AnyCodec | ReferenceContract<RemoteService.Any>
  readonly error?: AnyCodec
}

/** A schema; or one whose events have ids and are replayed to consumers who come back. */
export type EventContract = AnyCodec | DurableContract

export interface DurableContract {
  readonly schema: AnyCodec
  readonly durable: true
}

export const isDurable = (contract: EventContract): contract is DurableContract => "durable" in contract

/** The schema of one event. */
export const eventSchema = (contract: EventContract): AnyCodec => isDurable(contract) ? contract.schema : contract

/** Says that a method returns a capability; made by `RemoteReference.of`. */
export interface ReferenceContract<out S> {
  readonly "~reference": S
}

export interface Contract {
  /**
   * Raised by whoever changes the contract so that older peers misunderstand it; 1 if left out. Peers exchange it when
   * they connect, and a difference is reported.
   */
  readonly version?: number
  /** Replicated latest values. */
  readonly state?: { readonly [member: string]: AnyCodec }
  /** Sources of happenings, tagged by `type`. */
  readonly events?: { readonly [member: string]: EventContract }
  readonly methods?: { readonly [member: string]: MethodContract }
}

/** The class that `RemoteService.make(id)(contract)` gives, to be extended by name. It is never constructed. */
export interface RemoteService<out Id extends string, out C extends Contract> {
  new(_: never): RemoteService.Instance<C>
  readonly id: Id
  readonly contract: C
}

export declare namespace RemoteService {
  /** Any token. */
  type Any = {
    new(_: never): Instance<Contract>
    readonly id: string
    readonly contract: Contract
  }
  /** What the name of a token's class means as a type, so `Facade<Models>` and `Facade<typeof Models>` are the same. */
  interface Instance<out C extends Contract> {
    readonly "~contract": C
  }
  /** The contract of a token's class or of its instance type. */
  type ContractOf<S> = S extends { readonly contract: infer C extends Contract } ? C :
    S extends { readonly "~contract": infer C extends Contract } ? C :
    never
}

/** Names that a facade keeps for itself. */
const reserved: ReadonlySet<string> = new Set(["ready", "release", "then", "constructor", "__proto__"])

const makeRemote =
  <const Id extends string>(id: Id) => <const C extends Contract>(contract: C): RemoteService<Id, C> => {
    const seen = new Set<string>()
    for (const members of [contract.state, contract.events, contract.methods]) {
      for (const member of Object.keys(members ?? {})) {
        if (reserved.has(member)) {
          throw new Error(`Service ${id}: "${member}" cannot be a member, facades use that name.`)
        }
        if (seen.has(member)) throw new Error(`Service ${id}: "${member}" is declared twice.`)
        seen.add(member)
      }
    }
    // The class is a carrier of types: TypeScript lets it be extended by name, nothing ever calls `new`.
    class Token {
      static readonly id: Id = id
      static readonly contract: C = contract
      declare readonly "~contract": C
    }
    return Token
  }

export const RemoteService = {
  /**
   * `class Models extends RemoteService.make("bezel.models")({ state, events, methods }) {}`
   *
   * Throws when a member is declared twice or takes a name that facades use; that is a bug of the program.
   */
  make: makeRemote
}

/** A token for what stays in the process: functions, handles, secrets. */
export interface LocalService<in out A> {
  readonly id: string
  readonly "~local": { readonly _: (a: A) => A }
}

export const LocalService = {
  make: <A>(id: string): LocalService<A> => ({ id, "~local": { _: (a) => a } })
}

type Members<C, Kind extends string> = C extends { readonly [K in Kind]: infer M } ? M : {}
type TypeOf<S> = S extends { readonly Type: infer A } ? A : never
type SuccessOf<M> = M extends { readonly success: infer S } ?
  S extends ReferenceContract<infer Token> ? Capability<Token> : TypeOf<S> :
  void
type RemoteSuccessOf<M> = M extends { readonly success: infer S } ?
  S extends ReferenceContract<infer Token> ? Reference<Token> : TypeOf<S> :
  void
type ErrorOf<M> = M extends { readonly error: infer S } ? TypeOf<S> : never

/** A method as a function. */
export type Method<M> = Call<M, SuccessOf<M>, ErrorOf<M>>

type Call<M, A, E> = M extends { readonly payload: infer P } ? (payload: TypeOf<P>) => Effect.Effect<A, E> :
  () => Effect.Effect<A, E>

type EventsOf<S> = S extends { readonly durable: true; readonly schema: infer Inner } ? DurableEvents<TypeOf<Inner>> :
  RemoteEvents<TypeOf<S>>

type Simplify<A> = { [K in keyof A]: A[K] } & {}

/** What a provider gives, and what `use` returns in the providing process: the real thing, no proxy. */
export type Implementation<S> = ImplementationOf<RemoteService.ContractOf<S>>

type ImplementationOf<C> = Simplify<
  & { readonly [K in keyof Members<C, "state">]: RemoteState<TypeOf<Members<C, "state">[K]>> }
  & { readonly [K in keyof Members<C, "events">]: EventsOf<Members<C, "events">[K]> }
  & { readonly [K in keyof Members<C, "methods">]: Method<Members<C, "methods">[K]> }
>

/**
 * A service seen across a connection. One object per process and token; it survives reload and reconnect. Calls are never
 * repeated by themselves: after `disconnected` the host may have applied them.
 */
export type Facade<S> = FacadeOf<RemoteService.ContractOf<S>>

type FacadeOf<C> = Simplify<
  & {
    /** Completes once all states hold a value that the host has confirmed; opens the subscription. */
    readonly ready: Effect.Effect<void, ServiceError>
  }
  & { readonly [K in keyof Members<C, "state">]: Replica<TypeOf<Members<C, "state">[K]>> }
  & { readonly [K in keyof Members<C, "events">]: EventsOf<Members<C, "events">[K]> }
  & { readonly [K in keyof Members<C, "methods">]: RemoteMethod<Members<C, "methods">[K]> }
>

type RemoteMethod<M> = Call<M, RemoteSuccessOf<M>, ErrorOf<M> | ServiceError>

/** What a method with a reference as its success returns in the providing process: the object itself. */
export type Capability<S> = Implementation<S> & {
  /** Nothing to do here; callers across a connection have the same member. */
  readonly release: Effect.Effect<void>
}

/** The same across a connection. It is of that connection only; after it, calls fail with `stale_reference`. */
export type Reference<S> = Facade<S> & {
  /** Gives it back: states go stale and calls fail with `stale_reference`. What the object does goes on. */
  readonly release: Effect.Effect<void>
}
