/** What sessions ask people, and the answers. */
import { isJsonValue } from "@bezel/core/json"
import * as Effect from "effect/Effect"
import { type ApiFailure, failure, toFailure } from "../failure.ts"
import type { SessionHandlers } from "../handler.ts"
import type { ApiParts } from "../parts.ts"

export const peopleRoutes = ({ fleet, hubs }: ApiParts): Pick<SessionHandlers, "interactions" | "answer"> => {
  const settledAs = (outcome: string): ApiFailure =>
    failure("already_settled", `This was settled before: ${outcome}.`, { outcome })

  return {
    interactions: ({ params: { id } }) =>
      Effect.gen(function*() {
        yield* fleet.records.get(id)
        const { attend, requests } = yield* hubs.get(id)
        yield* attend
        return {
          items: requests.list().map(({ id, interaction, request, session }) => ({
            id,
            interaction,
            sessionID: session,
            request
          }))
        }
      }),
    answer: ({ params: { id, interactionID }, payload: { declined, response } }) =>
      Effect.gen(function*() {
        if ((response === undefined) === (declined === undefined)) {
          return yield* failure("invalid_arguments", 'Send a response, or "declined": true, and not both.', {
            path: "response"
          })
        }
        yield* fleet.records.get(id)
        const hub = yield* hubs.get(id)
        const answers = yield* hub.attend
        const before = hubs.settled.outcomeOf(interactionID)
        if (before !== null) return yield* settledAs(before)
        if (!hub.requests.has(interactionID)) {
          return yield* failure(
            "not_found",
            `Session ${id} asks nothing that is called ${JSON.stringify(interactionID.slice(0, 80))}.`
          )
        }
        const answer = response !== undefined && isJsonValue(response)
          ? { type: "answered" as const, response }
          : { type: "declined" as const }
        yield* answers.answer(interactionID, answer).pipe(
          Effect.tap(() =>
            // The host does not say so to the one who answered.
            Effect.sync(() => hub.requests.port.closed(interactionID, answer.type))
          ),
          Effect.mapError((error) =>
            error.code === "stale_reference"
              ? settledAs(hubs.settled.outcomeOf(interactionID) ?? "withdrawn")
              : toFailure(error)
          )
        )
      })
  }
}
