/** What is in sessions: transcripts, context and history from storage, and what their hosts show now. */
import { mainConversation } from "@bezel/core/harness"
import type { Commit } from "@bezel/sdk/api"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { FleetShape } from "../../serve/fleet.ts"
import { placeOf } from "../event-frames.ts"
import { failure } from "../failure.ts"
import type { SessionHandlers } from "../handler.ts"
import type { ApiParts } from "../parts.ts"
import { sessionEvents } from "../session-events.ts"
import { toCommit, toMessage } from "../shapes.ts"

/** Bytes of a page of commits. */
const pageBytes = 1_048_576

/** Commits that are read at a time. */
const historyStep = 20

/** How long a view may take to arrive from a host that is there. */
const viewLimit = "10 seconds"

/** Whether a session has a conversation that is shown: its main one, or a fork of it, and none that a task keeps to itself. */
const isShown = (fleet: FleetShape, sessionID: string, conversation: string) =>
  conversation === mainConversation
    ? Effect.succeed(true)
    : fleet.files.read(sessionID).pipe(
      Effect.flatMap((storage) => storage.conversation(conversation)),
      Effect.map((found) => found !== null && found.owner === null),
      Effect.scoped,
      Effect.catch((error) => error.kind === "not_found" ? Effect.succeed(false) : Effect.fail(error))
    )

export const readingRoutes = ({ fleet, hubs }: ApiParts): Pick<
  SessionHandlers,
  "messages" | "message" | "context" | "view" | "history" | "events"
> => ({
  messages: ({ params: { id }, query: { conversation, cursor, limit } }) =>
    Effect.map(
      fleet.records.messages(id, {
        ...(conversation === undefined ? {} : { conversationID: conversation }),
        ...(cursor === undefined ? {} : { cursor }),
        ...(limit === undefined ? {} : { limit })
      }),
      (page) => ({ items: page.messages.map(toMessage), ...(page.cursor === null ? {} : { next: page.cursor }) })
    ),
  message: ({ params: { id, messageID } }) => Effect.map(fleet.records.message(id, messageID), toMessage),
  context: ({ params: { id }, query: { conversation } }) =>
    Effect.map(fleet.records.context(id, conversation), (items) => ({ items })),
  history: ({ params: { id }, query: { after = 0, limit = 100 } }) =>
    Effect.gen(function*() {
      const items: Array<Commit> = []
      let bytes = 0
      let last = after
      // A few at a time, for a single one may be large.
      for (let isMore = true; isMore && items.length < limit && bytes < pageBytes;) {
        const step = Math.min(historyStep, limit - items.length)
        const found = yield* fleet.records.history(id, last, step)
        for (const item of found) {
          if (bytes >= pageBytes) break
          items.push(toCommit(item))
          last = item.sequence
          bytes += JSON.stringify(item.events).length
        }
        isMore = found.length === step
        if (!isMore) return { items }
      }
      return { items, next: `${last}` }
    }),
  view: ({ params: { id }, query: { conversation = mainConversation } }) =>
    Effect.gen(function*() {
      yield* fleet.records.get(id)
      if (!(yield* isShown(fleet, id, conversation))) {
        const name = JSON.stringify(conversation.slice(0, 80))
        return yield* failure("not_found", `Session ${id} shows no conversation ${name}.`)
      }
      const hub = yield* hubs.get(id)
      const facade = yield* hub.conversation(conversation)
      const view = yield* facade.view.changes.pipe(
        Stream.runHead,
        Effect.timeoutOption(viewLimit),
        Effect.map(Option.flatten)
      )
      if (Option.isNone(view)) return yield* failure("unavailable", `The host of session ${id} shows no view of it.`)
      return { revision: facade.view.sequence, view: view.value }
    }),
  events: ({ params: { id }, query: { after } }, { header }) =>
    Effect.gen(function*() {
      yield* fleet.records.get(id)
      return sessionEvents(yield* hubs.get(id), placeOf(header, after))
    })
})
