/**
 * Coalesced progress: what a tool streams reaches watchers at once at first, then at most every 100 ms.
 *
 * A tool may print gigabytes; between two deliveries only the newest 16 KiB are kept and the gap is told. Deliveries
 * are in order and never overlap; the last one is made before the scope closes, unless the call is interrupted.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { StringDecoder } from "node:string_decoder"
import type { JsonValue } from "../json/index.ts"
import { tailOf } from "./text.ts"

const INTERVAL_MS = 100
const PENDING_UNITS = 16 * 1024

export interface Coalesced<A> {
  readonly push: (value: A) => Effect.Effect<void>
  readonly flush: Effect.Effect<void>
}

/** Text of chunks; `shown` says whether chunks are still text (binary is not for watchers). */
export const coalesceText = (
  send: (text: string) => Effect.Effect<void>,
  isBinary: () => boolean
): Effect.Effect<Coalesced<string | Uint8Array>, never, Scope.Scope> => {
  const decoder = new StringDecoder("utf8")
  let told = false
  return coalesce<string | Uint8Array, string>({
    send,
    merge: (pending, chunk) => {
      if (isBinary() && typeof chunk !== "string") {
        const note = told ? "" : "[binary output]\n"
        told = true
        return note === "" ? pending : (pending ?? "") + note
      }
      if (typeof chunk === "string") return newest((pending ?? "") + chunk)
      // Of a large chunk only the end can be delivered, so only that is decoded.
      const part = tailOf(chunk, PENDING_UNITS, Number.POSITIVE_INFINITY)
      const text = decoder.write(Buffer.from(part.buffer, part.byteOffset, part.byteLength))
      return part.length < chunk.length ? GAP + text : newest((pending ?? "") + text)
    }
  })
}

const GAP = "\n[…]\n"

const newest = (text: string): string =>
  text.length <= PENDING_UNITS + GAP.length ? text : GAP + text.slice(-PENDING_UNITS).replace(/^[\udc00-\udfff]/, "")

/** The last value wins. */
export const coalesceLast = (
  send: (value: JsonValue) => Effect.Effect<void>
): Effect.Effect<Coalesced<JsonValue>, never, Scope.Scope> =>
  coalesce<JsonValue, { readonly value: JsonValue }>({
    send: (pending) => send(pending.value),
    merge: (_pending, value) => ({ value })
  })

const coalesce = <A, P>(options: {
  readonly merge: (pending: P | null, value: A) => P | null
  readonly send: (pending: P) => Effect.Effect<void>
}): Effect.Effect<Coalesced<A>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const turn = yield* Semaphore.make(1)
    let pending: P | null = null
    let sentAt = Number.NEGATIVE_INFINITY
    let timer = false

    const flush = Semaphore.withPermit(
      turn,
      Effect.gen(function*() {
        if (pending === null) return
        const taken = pending
        pending = null
        sentAt = yield* Clock.currentTimeMillis
        yield* options.send(taken)
      })
    )

    const later = (ms: number) =>
      Effect.forkIn(
        Effect.sleep(ms).pipe(
          Effect.andThen(Effect.sync(() => {
            timer = false
          })),
          Effect.andThen(flush)
        ),
        scope
      )

    const push = Effect.fnUntraced(function*(value: A) {
      pending = options.merge(pending, value)
      if (pending === null) return
      // Bounded, for a clock that is set back would have everybody wait for the difference.
      const wait = Math.min(INTERVAL_MS, sentAt + INTERVAL_MS - (yield* Clock.currentTimeMillis))
      if (wait <= 0) return yield* flush
      if (timer) return
      timer = true
      yield* later(wait)
    })

    return { push, flush }
  })
