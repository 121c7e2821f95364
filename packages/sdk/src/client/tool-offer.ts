/**
 * A tool that this program offers to a session: the offer is a stream of calls, each is run here and answered.
 *
 * A lost connection ends the calls that are open, for the server has failed them; the tool is offered again after growing delays.
 * No call is run twice, and no answer is sent twice.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { OfferEvent } from "../api/events.ts"
import type { BezelError } from "./error.ts"
import { firstDelayMillis, framesOf, isPassing, longestDelayMillis } from "./event-stream.ts"

/** What a tool's function may want to know of its call. */
export interface ClientToolCall {
  /** The session that calls: the one of the offer, or one that works for it. */
  readonly sessionID: string
  readonly conversationID: string
  readonly callID: string
  /** Aborted when nobody waits for the result any more. */
  readonly signal: AbortSignal
}

/** A tool whose code is a function of this program. */
export interface ClientTool {
  /** For the model. */
  readonly description: string
  /** JSON Schema of the arguments: an object. Models are told it; what they send is not checked against it. */
  readonly inputSchema?: { readonly [name: string]: Schema.Json }
  /** Seconds that a call may take; default 120. */
  readonly timeout?: number
  /**
   * Text, or a value that is shown to the model as JSON; a promise or an effect of it. Throwing is an error result, with the
   * message for the model.
   */
  readonly execute: (input: Schema.Json, call: ClientToolCall) => unknown
}

export interface ToolOffered {
  /** Fails with why the server would not have the tool any more; else it completes with the scope, interrupted. */
  readonly closed: Effect.Effect<void, BezelError>
}

/** How often in a row an offer that stood is refused its own name: the server may not have noticed yet that it was lost. */
const mostConflicts = 12

const messageOf = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error)
  return message === "" ? "The tool failed, and did not say why." : message
}

const strict = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value ?? null))

/** What is sent of a call that ended: nothing of one that was taken back. */
const answerOf = (exit: Exit.Exit<unknown, unknown>): { result: Schema.Json } | { error: string } | null => {
  if (Exit.isFailure(exit)) {
    return Cause.hasInterruptsOnly(exit.cause) ? null : { error: messageOf(Cause.squash(exit.cause)) }
  }
  try {
    return { result: strict(exit.value) }
  } catch (error) {
    return { error: `The tool's result is no JSON: ${messageOf(error)}` }
  }
}

const running = (
  tool: ClientTool,
  { callID, conversationID, input, sessionID }: Extract<OfferEvent, { type: "call" }>
) =>
  Effect.callback<unknown, unknown>((resume, signal) => {
    const ended = async () => {
      const result: unknown = await tool.execute(input, { sessionID, conversationID, callID, signal })
      // The erasure point of results: an effect of a program needs nothing, as its type says of `execute`.
      return Effect.isEffect(result)
        ? await Effect.runPromise(result as Effect.Effect<unknown, unknown>, { signal })
        : result
    }
    ended().then((result) => resume(Effect.succeed(result)), (error: unknown) => resume(Effect.fail(error)))
  })

/** Offers a tool for the length of the scope; completes when the session has it. */
export const offerTool = (
  client: HttpClient.HttpClient,
  sessionID: string,
  name: string,
  tool: ClientTool
): Effect.Effect<ToolOffered, BezelError, Scope.Scope> =>
  Effect.gen(function*() {
    const path = `/session/${encodeURIComponent(sessionID)}/tool`
    const offered = yield* Deferred.make<void, BezelError>()
    const closed = yield* Deferred.make<void, BezelError>()
    let delay = firstDelayMillis
    let conflicts = 0

    const answer = (id: string, body: object) =>
      Effect.ignore(Effect.scoped(
        client.execute(HttpClientRequest.bodyJsonUnsafe(
          HttpClientRequest.post(`${path}/${encodeURIComponent(id)}`),
          body
        ))
      ))

    /** One offer, until its stream ends. */
    const once = Effect.gen(function*() {
      const { description, inputSchema, timeout } = tool
      const request = HttpClientRequest.bodyJsonUnsafe(
        HttpClientRequest.post(path, { headers: { accept: "text/event-stream" } }),
        {
          name,
          description,
          ...(inputSchema === undefined ? {} : { inputSchema }),
          ...(timeout === undefined ? {} : { timeout })
        }
      )
      const calls = new Map<string, Fiber.Fiber<void>>()
      const frames = yield* framesOf(client, request)
      yield* Stream.runForEach(frames, ({ data }) =>
        Effect.gen(function*() {
          // The erasure point of events: what the server says they are.
          const event = data as OfferEvent
          if (event.type === "ready") {
            delay = firstDelayMillis
            conflicts = 0
            yield* Deferred.succeed(offered, undefined)
          } else if (event.type === "closed") {
            const fiber = calls.get(event.id)
            if (fiber !== undefined) yield* Effect.forkScoped(Fiber.interrupt(fiber))
          } else if (event.type === "call") {
            const { id } = event
            const run = Effect.flatMap(Effect.exit(running(tool, event)), (exit) => {
              const body = answerOf(exit)
              return body === null ? Effect.void : answer(id, body)
            })
            const fiber = yield* Effect.forkScoped(run)
            calls.set(id, fiber)
            fiber.addObserver(() => calls.delete(id))
          }
        }))
    })

    const isLost = (error: BezelError): boolean =>
      Deferred.isDoneUnsafe(offered) &&
      (isPassing(error) || (error.code === "conflict" && ++conflicts < mostConflicts))

    const always = Effect.gen(function*() {
      for (;;) {
        yield* Effect.catch(Effect.scoped(once), (error) => isLost(error) ? Effect.void : Effect.fail(error))
        yield* Effect.sleep(delay)
        delay = Math.min(delay * 2, longestDelayMillis)
      }
    })
    yield* Effect.forkScoped(Effect.onExit(always, (exit) =>
      Effect.sync(() => {
        const ended: Effect.Effect<void, BezelError> = Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
          ? Effect.failCause(exit.cause)
          : Effect.void
        Deferred.doneUnsafe(offered, ended)
        Deferred.doneUnsafe(closed, ended)
      })))
    yield* Deferred.await(offered)
    return { closed: Deferred.await(closed) }
  })
