/** What gives sessions work and steers it. All of it goes through the session's host. */
import type { HarnessError, InputOutcome } from "@bezel/core/harness"
import type { Conversation } from "@bezel/core/host"
import { type Facade, ServiceError } from "@bezel/core/service"
import type { WaitResult } from "@bezel/sdk/api"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { failure } from "../failure.ts"
import type { SessionHandlers } from "../handler.ts"
import { checkNamed } from "../named.ts"
import type { ApiParts } from "../parts.ts"
import type { SessionHub } from "../session-hub.ts"

const defaultWaitSeconds = 30
/** So that asking with 0 whether a session is idle gives its host time to say so. */
const leastWaitSeconds = 0.25

const commandCodes = {
  unknown_command: "not_found",
  invalid_command: "invalid_arguments",
  refused: "conflict"
} as const

export const workRoutes = ({ fleet, hubs, runCommand }: ApiParts): Pick<
  SessionHandlers,
  | "prompt"
  | "command"
  | "reset"
  | "config"
  | "abortInput"
  | "resume"
  | "interrupt"
  | "wait"
  | "compact"
  | "revert"
  | "clearRevert"
> => {
  /** The main conversation of a session at its host. What is at rest there stays so. */
  const using = <A>(
    sessionID: string,
    use: (conversation: Facade<Conversation>, hub: SessionHub) => Effect.Effect<A, HarnessError | ServiceError>
  ) =>
    Effect.gen(function*() {
      yield* fleet.records.get(sessionID)
      const hub = yield* hubs.get(sessionID)
      return yield* use(hub.main, hub)
    })

  /** The same for what is work: it runs, and so does what was there before. */
  const working = <A>(
    sessionID: string,
    use: (conversation: Facade<Conversation>, hub: SessionHub) => Effect.Effect<A, HarnessError | ServiceError>
  ) => using(sessionID, (conversation, hub) => Effect.andThen(hub.work, use(conversation, hub)))

  return {
    prompt: ({ params: { id }, payload: { mentions = true, parts = [], requestID, resume, text, whenBusy } }) =>
      Effect.gen(function*() {
        const texts = [
          ...text === undefined ? [] : [text],
          ...parts.flatMap((part) => part.type === "text" ? [part.text] : [])
        ]
        const files = parts.filter((part) => part.type === "file")
        if (texts.join("").trim() === "" && files.length === 0) {
          return yield* failure("invalid_arguments", "The prompt is empty: send text, or parts.", { path: "text" })
        }
        const input = {
          text: texts.join("\n\n"),
          written: mentions,
          ...(files.length === 0 ? {} : { files }),
          ...(whenBusy === undefined ? {} : { whenBusy }),
          ...(requestID === undefined ? {} : { requestID })
        }
        if (resume === false) {
          yield* fleet.records.get(id)
          const session = yield* fleet.session(id)
          const { requestID, whenBusy, ...prompt } = input
          const accepted = yield* session.prompt({
            sessionID: id,
            prompt,
            resume,
            ...(whenBusy === undefined ? {} : { whenBusy }),
            ...(requestID === undefined ? {} : { requestID })
          })
          return { ...accepted, status: "accepted" as const }
        }
        const accepted = yield* working(
          id,
          (conversation, hub) =>
            Effect.tap(conversation.send(input), ({ inputID }) => Effect.sync(() => hub.accepted(inputID)))
        )
        return { ...accepted, status: "accepted" as const }
      }),
    command: ({ params: { id }, payload: { arguments: given = "", name } }) =>
      Effect.gen(function*() {
        yield* fleet.records.get(id)
        if (runCommand === null) return yield* failure("unsupported", "This server runs no commands for clients.")
        const hub = yield* hubs.get(id)
        yield* hub.work
        const { inputID } = yield* Effect.mapError(
          runCommand(hub.connection, { sessionID: id, name, arguments: given }),
          (error) => error instanceof ServiceError ? error : failure(commandCodes[error.code], error.message)
        )
        hub.accepted(inputID)
        return { inputID, status: "accepted" as const }
      }),
    reset: ({ params: { id }, payload }) => using(id, (conversation) => conversation.reset(payload)),
    config: ({ params: { id }, payload }) =>
      Effect.gen(function*() {
        const { location } = yield* fleet.records.get(id)
        yield* checkNamed(fleet, location, payload)
        yield* using(id, (conversation) => conversation.configSet(payload))
      }),
    abortInput: ({ params: { id, inputID } }) =>
      Effect.map(using(id, (conversation) => conversation.inputAbort({ inputID })), (status) => ({ status })),
    resume: ({ params: { id } }) =>
      Effect.gen(function*() {
        yield* fleet.records.get(id)
        const session = yield* fleet.session(id)
        yield* session.resume(id)
      }),
    interrupt: ({ params: { id }, payload }) => using(id, (conversation) => conversation.abort(payload)),
    wait: ({ params: { id }, query: { input, timeout = defaultWaitSeconds } }) =>
      Effect.gen(function*() {
        const seconds = `${Math.max(timeout, leastWaitSeconds)} seconds` as const
        if (input !== undefined) {
          const outcome = yield* using(id, (conversation) =>
            Effect.timeoutOption(conversation.wait({ inputID: input }), seconds))
          return Option.isNone(outcome) ? { status: "running" } : outcomeOf(outcome.value)
        }
        const isIdle = yield* using(id, (conversation, hub) =>
          Effect.timeoutOption(untilIdle(conversation, hub), seconds))
        return Option.isNone(isIdle) ? { status: "running" } : { status: "idle", text: yield* newestText(fleet, id) }
      }),
    compact: ({ params: { id }, payload }) => working(id, (conversation) => conversation.collapse(payload)),
    revert: ({ params: { id }, payload }) => using(id, (conversation) => conversation.revert(payload)),
    clearRevert: ({ params: { id }, query }) => using(id, (conversation) => conversation.revertClear(query))
  }
}

const outcomeOf = (outcome: InputOutcome): WaitResult =>
  outcome.status === "done"
    ? { status: outcome.status, text: outcome.text }
    : { status: outcome.status, reason: outcome.reason, error: outcome.error }

/** The view may not show yet what was accepted a moment ago, so that is waited for by itself. */
const untilIdle = (conversation: Facade<Conversation>, hub: SessionHub) =>
  Effect.gen(function*() {
    const inputID = hub.newestInput()
    if (inputID !== null) yield* Effect.ignore(conversation.wait({ inputID }))
    yield* conversation.view.changes.pipe(
      Stream.filter(({ inbox, turn }) => turn === null && inbox.length === 0),
      Stream.runHead
    )
  })

/** Text of the newest answer in the main conversation. */
const newestText = (fleet: ApiParts["fleet"], sessionID: string) =>
  Effect.map(fleet.records.context(sessionID), (messages) => {
    const answer = messages.findLast(({ role }) => role === "assistant")
    return answer?.role !== "assistant"
      ? ""
      : answer.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("")
  })
