/** The client in promises: the same functions as in effects, and async iteration over events. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type BezelEffectClient, type ClientOptions, makeEffectClient } from "./effect-client.ts"
import type { ClientTool } from "./tool-offer.ts"

/** The same face with promises for effects and async iterables for streams. */
export type Promised<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer Args) => infer Result ?
    Result extends Effect.Effect<infer A, infer _E> ? (...args: Args) => Promise<A> :
    Result extends Stream.Stream<infer A, infer _E> ? (...args: Args) => AsyncIterable<A> :
    T[K] :
    Promised<T[K]>
}

/** A tool that this client offers. */
export interface OfferedClientTool {
  /** Takes it away again; open calls fail. */
  readonly close: () => Promise<void>
  /** Settles when the tool is gone: rejects with why the server would not have it any more. */
  readonly closed: Promise<void>
}

type SessionFace = Omit<Promised<BezelEffectClient["session"]>, "tool"> & {
  /** Offers a tool to the session, whose calls run here, also across lost connections, until it is closed or the signal aborts. */
  readonly tool: (id: string, name: string, tool: ClientTool) => Promise<OfferedClientTool>
}

export interface BezelClient extends Omit<Promised<BezelEffectClient>, "session"> {
  readonly session: SessionFace
  /** The same client, whose calls and iterations end when the signal does. */
  readonly with: (options: { readonly signal: AbortSignal }) => BezelClient
}

/** The error itself and not what carries it: `BezelError` for whatever the server or the way to it says. */
const settle = async <A>(effect: Effect.Effect<A, unknown>, signal: AbortSignal | undefined): Promise<A> => {
  const exit = await Effect.runPromiseExit(effect, signal === undefined ? undefined : { signal })
  if (Exit.isSuccess(exit)) return exit.value
  if (signal?.aborted === true) throw signal.reason
  throw Cause.squash(exit.cause)
}

const until = <A>(stream: Stream.Stream<A, unknown>, signal: AbortSignal | undefined): Stream.Stream<A, unknown> =>
  signal === undefined ? stream : Stream.interruptWhen(
    stream,
    Effect.callback<void>((resume) => {
      const aborted = () => resume(Effect.void)
      if (signal.aborted) return aborted()
      signal.addEventListener("abort", aborted, { once: true })
      return Effect.sync(() => signal.removeEventListener("abort", aborted))
    })
  )

const convert = (value: unknown, signal: AbortSignal | undefined): unknown => {
  if (typeof value === "function") {
    return (...args: ReadonlyArray<unknown>) => {
      const result: unknown = Reflect.apply(value, undefined, args)
      if (Effect.isEffect(result)) return settle(result as Effect.Effect<unknown, unknown>, signal)
      if (Stream.isStream(result)) {
        return Stream.toAsyncIterable(until(result as Stream.Stream<unknown, unknown>, signal))
      }
      return result
    }
  }
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, convert(member, signal)]))
}

/** The scope of an offer is a promise's to close. */
const offering =
  (client: BezelEffectClient, signal: AbortSignal | undefined): SessionFace["tool"] => async (...args) => {
    const scope = Effect.runSync(Scope.make())
    const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
    try {
      const { closed } = await settle(Scope.provide(client.session.tool(...args), scope), signal)
      signal?.addEventListener("abort", () => void close(), { once: true })
      const settled = settle(closed, undefined)
      // Whoever does not look at it has not asked.
      settled.catch(() => {})
      return { close, closed: settled }
    } catch (error) {
      await close()
      throw error
    }
  }

/** Puts promises in place of effects. */
export const promised = (client: BezelEffectClient, signal?: AbortSignal): BezelClient => {
  // The erasure point of the conversion: it goes over every member in one way, which the type says member by member.
  const face = convert(client, signal) as Promised<BezelEffectClient>
  const session = { ...face.session, tool: offering(client, signal) }
  return { ...face, session, with: ({ signal }) => promised(client, signal) }
}

/** A client of a server whose address and token are known. */
export const createClient = (options: ClientOptions): BezelClient => promised(makeEffectClient(options))
