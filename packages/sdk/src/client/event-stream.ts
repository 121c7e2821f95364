/**
 * Event streams as the client reads them: one after another, each from where the last one ended.
 *
 * A stream that breaks, or is silent for longer than the server's heartbeat allows, is opened again with the id that was seen
 * last, after growing delays; nothing is lost or repeated, or the server says `gap`. What the server refuses ends the stream.
 */
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Exit from "effect/Exit"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ApiErrorBody } from "../api/error.ts"
import { type BezelError, refusalOf, toBezelError } from "./error.ts"

export interface EventOptions {
  /** The id after which to begin: that of an event that was seen, or `"0"` for all of them. Default: from now on. */
  readonly after?: string
}

/** An event and where to go on behind it: the `after` of a later stream. */
export type Placed<A> = A & { readonly cursor: string | null }

const firstDelayMillis = 200
const longestDelayMillis = 5_000

/** The server says something every 15 seconds. */
const silence = "40 seconds"

const decodeError = Schema.decodeUnknownExit(Schema.fromJsonString(ApiErrorBody))

/** Whether asking again can help. */
const isPassing = ({ code }: BezelError): boolean =>
  code === "unreachable" || code === "unavailable" || code === "overloaded" || code === "timeout" || code === "internal"

interface Place {
  id: string | null
  delay: number
  ready: boolean
}

const connect = <A extends { readonly type: string }>(
  client: HttpClient.HttpClient,
  path: string,
  place: Place
): Stream.Stream<Placed<A>, BezelError> =>
  Stream.unwrap(Effect.gen(function*() {
    const request = HttpClientRequest.get(path, {
      headers: {
        accept: "text/event-stream",
        ...(place.id === null ? {} : { "last-event-id": place.id })
      }
    })
    const response = yield* client.execute(request)
    if (response.status !== 200) {
      const body = decodeError(yield* response.text)
      return yield* Exit.isSuccess(body) ? refusalOf(body.value) : toBezelError(null)
    }
    let found: Array<Placed<A>> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag !== "Event") return
      if (event.id !== undefined) place.id = event.id
      const value: unknown = JSON.parse(event.data)
      if (event.event === "error") throw decodeFailure(value)
      // The erasure point of events: what the server says they are.
      const known = value as A
      if (known.type === "ready" && place.ready) return
      if (known.type === "ready") place.ready = true
      found.push({ ...known, cursor: place.id })
    }, { maxEventSize: 64 * 1_048_576 })
    return response.stream.pipe(
      Stream.timeoutOrElse({ duration: silence, orElse: () => Stream.empty }),
      Stream.decodeText,
      Stream.mapEffect((chunk) =>
        Effect.try({
          try: () => {
            found = []
            const error = parser.feed(chunk)
            if (error !== undefined) throw error
            if (found.length > 0) place.delay = firstDelayMillis
            return found
          },
          catch: toBezelError
        })
      ),
      Stream.flattenIterable
    )
  })).pipe(Stream.mapError(toBezelError))

const decodeFailure = (value: unknown): BezelError => {
  const exit = Schema.decodeUnknownExit(ApiErrorBody)(value)
  return Exit.isSuccess(exit) ? refusalOf(exit.value) : toBezelError(value)
}

/** Events of a path, for as long as they are read. */
export const eventStream = <A extends { readonly type: string }>(
  client: HttpClient.HttpClient,
  path: string,
  { after }: EventOptions = {}
): Stream.Stream<Placed<A>, BezelError> =>
  Stream.suspend(() => {
    const place: Place = { id: after ?? null, delay: firstDelayMillis, ready: false }
    const once = Stream.suspend(() => connect<A>(client, path, place)).pipe(
      Stream.catch((error) => isPassing(error) ? Stream.empty : Stream.fail(error))
    )
    const pause = Stream.drain(Stream.fromEffect(Effect.suspend(() => {
      const { delay } = place
      place.delay = Math.min(delay * 2, longestDelayMillis)
      return Effect.sleep(delay)
    })))
    return Stream.forever(Stream.concat(once, pause))
  })
