/**
 * The session API of a place whose host is another process: records and read models from the store that both share, and the
 * running of sessions through the services of that host.
 */
import { HarnessError, mainConversation } from "@bezel/core/harness"
import { Conversation, conversationKey } from "@bezel/core/host"
import type { LocationRef } from "@bezel/core/location"
import type { ConnectionShape } from "@bezel/core/rpc"
import { type Facade, ServiceError } from "@bezel/core/service"
import {
  type OpenError,
  type PromptOptions,
  type SessionApi,
  sessionRecords,
  type SessionStoreShape
} from "@bezel/core/session"
import type { SessionFiles } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

export interface RemoteSessionParts {
  readonly location: LocationRef
  readonly store: SessionStoreShape
  readonly files: SessionFiles
  /** A client of the session's host, attached to it. */
  readonly attach: (sessionID: string) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** A client of the session's host that is attached to none. */
  readonly reach: (sessionID: string) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
}

/** That the other process could not be asked, in the words of the session API. */
const asFault = (error: HarnessError | ServiceError): HarnessError =>
  error instanceof ServiceError
    ? new HarnessError({ code: error.code === "invalid_arguments" ? "invalid" : "faulted", message: error.message })
    : error

export const makeRemoteSession = ({ attach, files, location, reach, store }: RemoteSessionParts): SessionApi => {
  type Use<A> = (conversation: Facade<Conversation>) => Effect.Effect<A, HarnessError | ServiceError>

  const usingIn = <A>(
    sessionID: string,
    conversationID: string | undefined,
    client: Effect.Effect<Pick<ConnectionShape, "use">, ServiceError, Scope.Scope>,
    use: Use<A>
  ): Effect.Effect<A, OpenError> =>
    Effect.gen(function*() {
      // Told here, in its own words: the host would say it as a fault of the connection.
      yield* store.get(sessionID)
      const session = yield* Effect.mapError(client, asFault)
      const key = conversationKey(sessionID, conversationID ?? mainConversation)
      const conversation = yield* session.use(Conversation, { key })
      return yield* Effect.mapError(use(conversation), asFault)
    }).pipe(Effect.scoped)

  const using = <A>(sessionID: string, conversationID: string | undefined, use: Use<A>) =>
    usingIn(sessionID, conversationID, attach(sessionID), use)

  /** Without starting the session's work, which being attached does otherwise. */
  const atRest = <A>(sessionID: string, conversationID: string | undefined, use: Use<A>) =>
    usingIn(
      sessionID,
      conversationID,
      Effect.flatMap(reach(sessionID), (connection) => connection.attach(sessionID, { resume: false })),
      use
    )

  const prompt = ({ conversationID, prompt, requestID, resume = true, sessionID, whenBusy }: PromptOptions) =>
    (resume ? using : atRest)(sessionID, conversationID, (conversation) =>
      conversation.send({
        text: prompt.text,
        ...(prompt.files === undefined ? {} : { files: prompt.files }),
        ...(prompt.written === undefined ? {} : { written: prompt.written }),
        ...(whenBusy === undefined ? {} : { whenBusy }),
        ...(requestID === undefined ? {} : { requestID })
      }))

  const wait = (sessionID: string, inputID?: string) =>
    atRest<unknown>(sessionID, undefined, (conversation) =>
      inputID === undefined
        ? conversation.view.changes.pipe(
          Stream.filter(({ inbox, turn }) => turn === null && inbox.length === 0),
          Stream.runHead,
          Effect.asVoid
        )
        : conversation.wait({ inputID }))

  return {
    ...sessionRecords(location, store),
    prompt,
    steer: (options) => prompt({ ...options, whenBusy: "steer" }),
    // Being attached opens a session, and an open session's work runs.
    resume: (sessionID) => using(sessionID, undefined, (conversation) => conversation.ready),
    // The overload's result depends on whether an input was named, which the implementation signature cannot say.
    wait: wait as SessionApi["wait"],
    interrupt: (sessionID, reason) =>
      atRest(sessionID, undefined, (conversation) => conversation.abort(reason === undefined ? {} : { reason })),
    // As its records say, which a killed host has not been able to correct.
    active: Effect.map(
      Effect.orElseSucceed(store.list({ location, limit: 1_000 }), () => ({ sessions: [] })),
      ({ sessions }) => sessions.filter(({ status }) => status === "active").map(({ id }) => id).sort()
    ),
    configure: (sessionID, patch) => atRest(sessionID, undefined, (conversation) => conversation.configSet(patch)),
    abortInput: (sessionID, inputID) =>
      atRest(sessionID, undefined, (conversation) => conversation.inputAbort({ inputID })),
    fork: (sessionID, at) =>
      atRest(
        sessionID,
        undefined,
        (conversation) => Effect.map(conversation.fork({ at }), ({ conversationID }) => conversationID)
      ),
    revert: {
      stage: (sessionID, request) => atRest(sessionID, undefined, (conversation) => conversation.revert(request)),
      clear: (sessionID, request = {}) =>
        atRest(sessionID, undefined, (conversation) => conversation.revertClear(request))
    },
    finalText: (sessionID) =>
      Effect.map(store.context(sessionID), (messages) => {
        const answer = messages.findLast(({ role }) => role === "assistant")
        return answer?.role !== "assistant"
          ? ""
          : answer.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("")
      }),
    folder: files.folder
  }
}
