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
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ApiErrorBody } from "../api/error.ts"
import { type BezelError, refusalOf, toBezelError } from "./error.ts"

export interface EventOptions {
  /** The id after which to begin: that of an event that was seen, or `"0"` for all of them. Default: from now on. */
  readonly after?: string
}

/** An event and where to go on behind it: the `after` of a later stream. */
export type Placed<A> = A & { readonly cursor: string | null }

export const firstDelayMillis = 200
export const longestDelayMillis = 5_000

/** The server says something every 15 seconds. */
const silence = "40 seconds"

const decodeError = Schema.decodeUnknownExit(Schema.fromJsonString(ApiErrorBody))

/** Whether asking again can help. */
export const isPassing = ({ code }: BezelError): boolean =>
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
    const known = Stream.map(yield* framesOf(client, request), ({ data, id }): ReadonlyArray<Placed<A>> => {
      if (id !== undefined) place.id = id
      place.delay = firstDelayMillis
      // The erasure point of events: what the server says they are.
      const event = data as A
      if (event.type === "ready" && place.ready) return []
      if (event.type === "ready") place.ready = true
      return [{ ...event, cursor: place.id }]
    })
    return Stream.flattenIterable(known)
  }))

/** One event of a stream as it stands there. */
export interface Frame {
  readonly id?: string
  readonly data: unknown
}

/** The events of one answer, until it ends or is silent for too long. What the server says instead is the error. */
export const framesOf = (
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest
): Effect.Effect<Stream.Stream<Frame, BezelError>, BezelError, Scope.Scope> =>
  Effect.gen(function*() {
    const response = yield* client.execute(request)
    if (response.status !== 200) {
      const body = decodeError(yield* response.text)
      return yield* Exit.isSuccess(body) ? refusalOf(body.value) : toBezelError(null)
    }
    let found: Array<Frame> = []
    const parser = Sse.makeParser((event) => {
      if (event._tag !== "Event") return
      const data: unknown = JSON.parse(event.data)
      if (event.event === "error") throw decodeFailure(data)
      found.push({ data, ...(event.id === undefined ? {} : { id: event.id }) })
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
            return found
          },
          catch: toBezelError
        })
      ),
      Stream.flattenIterable,
      Stream.mapError(toBezelError)
    )
  }).pipe(Effect.mapError(toBezelError))

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
