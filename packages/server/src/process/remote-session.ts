/**
 * The session API of a place whose host is another process: records and read models from the store that both share, and the
 * running of sessions through the services of that host.
 */
import { HarnessError, mainConversation } from "@bezel/core/harness"
import { Conversation, conversationKey } from "@bezel/core/host"
import type { LocationRef } from "@bezel/core/location"
import type { ConnectionShape } from "@bezel/core/rpc"
import { type Facade, ServiceError } from "@bezel/core/service"
import type { OpenError, PromptOptions, SessionApi, SessionStoreShape } from "@bezel/core/session"
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
}

/** That the other process could not be asked, in the words of the session API. */
const asFault = (error: HarnessError | ServiceError): HarnessError =>
  error instanceof ServiceError
    ? new HarnessError({ code: error.code === "invalid_arguments" ? "invalid" : "faulted", message: error.message })
    : error

export const makeRemoteSession = ({ attach, files, location, store }: RemoteSessionParts): SessionApi => {
  const using = <A>(
    sessionID: string,
    conversationID: string | undefined,
    use: (conversation: Facade<Conversation>) => Effect.Effect<A, HarnessError | ServiceError>
  ): Effect.Effect<A, OpenError> =>
    Effect.gen(function*() {
      // Told here, in its own words: the host would say it as a fault of the connection.
      yield* store.get(sessionID)
      const connection = yield* Effect.mapError(attach(sessionID), asFault)
      const key = conversationKey(sessionID, conversationID ?? mainConversation)
      const conversation = yield* connection.use(Conversation, { key })
      return yield* Effect.mapError(use(conversation), asFault)
    }).pipe(Effect.scoped)

  const prompt = ({ conversationID, prompt, requestID, resume, sessionID, whenBusy }: PromptOptions) =>
    resume === false
      ? Effect.fail(
        new HarnessError({ code: "invalid", message: "A session in another process works as soon as it is open." })
      )
      : using(sessionID, conversationID, (conversation) =>
        conversation.send({
          text: prompt.text,
          ...(prompt.files === undefined ? {} : { files: prompt.files }),
          ...(whenBusy === undefined ? {} : { whenBusy }),
          ...(requestID === undefined ? {} : { requestID })
        }))

  const wait = (sessionID: string, inputID?: string) =>
    using<unknown>(sessionID, undefined, (conversation) =>
      inputID === undefined
        ? conversation.view.changes.pipe(
          Stream.filter(({ inbox, turn }) => turn === null && inbox.length === 0),
          Stream.runHead,
          Effect.asVoid
        )
        : conversation.wait({ inputID }))

  return {
    create: (input) => Effect.suspend(() => store.create({ ...input, location })),
    get: store.get,
    list: store.list,
    messages: store.messages,
    message: store.message,
    context: store.context,
    history: store.history,
    rename: store.rename,
    switchAgent: store.switchAgent,
    switchModel: store.switchModel,
    archive: store.archive,
    remove: store.remove,
    prompt,
    steer: (options) => prompt({ ...options, whenBusy: "steer" }),
    // Being attached opens a session, and an open session's work runs.
    resume: (sessionID) => using(sessionID, undefined, (conversation) => conversation.ready),
    // The overload's result depends on whether an input was named, which the implementation signature cannot say.
    wait: wait as SessionApi["wait"],
    interrupt: (sessionID, reason) =>
      using(sessionID, undefined, (conversation) => conversation.abort(reason === undefined ? {} : { reason })),
    // As its records say, which a killed host has not been able to correct.
    active: Effect.map(
      Effect.orElseSucceed(store.list({ location, limit: 1_000 }), () => ({ sessions: [] })),
      ({ sessions }) => sessions.filter(({ status }) => status === "active").map(({ id }) => id).sort()
    ),
    configure: (sessionID, patch) => using(sessionID, undefined, (conversation) => conversation.configSet(patch)),
    abortInput: (sessionID, inputID) =>
      using(sessionID, undefined, (conversation) => conversation.inputAbort({ inputID })),
    fork: (sessionID, at) =>
      using(
        sessionID,
        undefined,
        (conversation) => Effect.map(conversation.fork({ at }), ({ conversationID }) => conversationID)
      ),
    revert: {
      stage: (sessionID, request) => using(sessionID, undefined, (conversation) => conversation.revert(request)),
      clear: (sessionID, request = {}) =>
        using(sessionID, undefined, (conversation) => conversation.revertClear(request))
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
