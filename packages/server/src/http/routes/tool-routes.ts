/**
 * Tools that clients offer to sessions. An offer is a stream: the tool is there while the client reads it, each call is told in
 * it, and with its end whatever is open has failed.
 */
import { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import { comment, frame, heartbeat } from "../event-frames.ts"
import { failure } from "../failure.ts"
import { EventStream, type SessionHandlers, type Write } from "../handler.ts"
import type { ApiParts, OfferedCall, ToolOffer } from "../parts.ts"
import type { SessionHub } from "../session-hub.ts"

const defaultSeconds = 120

/** Characters of a result as JSON. */
const longestAnswer = 1_048_576

const offerCodes = { taken: "conflict", invalid: "invalid_arguments", too_many: "overloaded" } as const

export const toolRoutes = (
  { fleet, hubs, offerTool, toolCalls }: ApiParts
): Pick<SessionHandlers, "offerTool" | "answerTool"> => {
  const tell = (hub: SessionHub, name: string, offer: ToolOffer, write: Write) =>
    Effect.gen(function*() {
      const changed = Latch.makeUnsafe(true)
      let open: ReadonlyArray<OfferedCall> = []
      let isOver = false
      const told = new Set<string>()
      const over = Effect.sync(() => {
        isOver = true
        changed.openUnsafe()
      })
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const id of told) toolCalls.close(id)
        })
      )
      yield* Effect.forkScoped(Effect.ensuring(
        Stream.runForEach(offer.calls, (calls) =>
          Effect.sync(() => {
            open = calls
            changed.openUnsafe()
          })),
        over
      ))
      yield* Effect.forkScoped(Effect.andThen(hub.over, over))
      yield* write(frame("ready", { type: "ready", name }))
      while (!isOver) {
        const isNews = yield* Effect.timeoutOption(changed.await, heartbeat)
        changed.closeUnsafe()
        if (isNews._tag === "None") yield* write(comment)
        const now = open
        for (const id of told) {
          if (now.some((call) => call.id === id)) continue
          told.delete(id)
          toolCalls.close(id)
          yield* write(frame("closed", { type: "closed", id }))
        }
        for (const call of now) {
          if (told.has(call.id)) continue
          told.add(call.id)
          toolCalls.open(call.id, {
            sessionID: hub.sessionID,
            answer: (answer) => offer.answer(call.id, answer)
          })
          yield* write(frame("call", { type: "call", ...call }))
        }
      }
    })

  return {
    offerTool: ({ params: { id }, payload }) =>
      Effect.gen(function*() {
        yield* fleet.records.get(id)
        if (offerTool === null) return yield* failure("unsupported", "On this server clients offer no tools.")
        const hub = yield* hubs.get(id)
        const { description, inputSchema = { type: "object", properties: {} }, name, timeout = defaultSeconds } =
          payload
        const offer = yield* Effect.mapError(
          offerTool(hub.connection, { sessionID: id, name, description, inputSchema, timeLimitSeconds: timeout }),
          (error) => error instanceof ServiceError ? error : failure(offerCodes[error.code], error.message)
        )
        return new EventStream({ run: (write) => tell(hub, name, offer, write) })
      }),
    answerTool: ({ params: { callID, id }, payload: { error, result } }) =>
      Effect.gen(function*() {
        if ((result === undefined) === (error === undefined)) {
          return yield* failure("invalid_arguments", "Send a result, or an error, and not both.", { path: "result" })
        }
        if (JSON.stringify(error ?? result).length > longestAnswer) {
          return yield* failure("too_large", `The result is longer than ${longestAnswer} characters.`)
        }
        yield* fleet.records.get(id)
        const call = toolCalls.find(callID)
        const late = failure("already_settled", "Nobody waits for this call any more.", { outcome: "closed" })
        if (call === "closed") return yield* late
        if (call === null || call.sessionID !== id) {
          return yield* failure("not_found", `No tool that a client offers to session ${id} has such a call.`)
        }
        const isTaken = yield* call.answer(
          error === undefined ? { type: "result", value: result ?? null } : { type: "error", message: error }
        )
        if (!isTaken) return yield* late
      })
  }
}
