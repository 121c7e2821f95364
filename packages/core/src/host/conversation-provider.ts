/**
 * The session's side of the `Conversation` service: a bridge from a conversation's watch to a replicated state.
 *
 * It runs beside the commit line, never on it: a commit hands its envelope over and goes on. If the bridge falls so far
 * behind that the watch gives it up, the instance is closed and a new one, with a fresh snapshot, takes its place.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Conversation as HarnessConversation } from "../harness/index.ts"
import { HarnessError, type InputHandle, mainConversation, type Watch } from "../harness/index.ts"
import type { JsonValue } from "../json/index.ts"
import {
  ClientIdentity,
  type Implementation,
  type InteractionBrokerShape,
  MutableRemoteEvents,
  MutableRemoteState,
  type ServiceDirectoryShape
} from "../service/index.ts"
import type { OpenError, OpenSession, SessionRuntimeHost } from "../session/index.ts"
import { ConversationViewSchema, ViewEventSchema } from "./conversation-view.ts"
import { Conversation, conversationKey } from "./conversation.ts"

interface Services {
  readonly directory: ServiceDirectoryShape
  readonly broker: InteractionBrokerShape
  readonly runtime: Pick<SessionRuntimeHost, "account" | "intakes" | "interrupt" | "nextModel" | "revert">
}

const inputOf = (conversation: HarnessConversation, inputID: string): Effect.Effect<InputHandle, HarnessError> =>
  Effect.flatMap(conversation.input(inputID), (handle) =>
    handle === null
      ? Effect.fail(
        new HarnessError({ code: "not_found", message: `There is no input ${inputID} in this conversation.` })
      )
      : Effect.succeed(handle))

const failureMessage = (failure: JsonValue): string | null => {
  const message: unknown = failure !== null && typeof failure === "object" ? Reflect.get(failure, "message") : null
  return typeof message === "string" ? message : null
}

/** A session that is open is not unknown, and not in use elsewhere. */
const asRefused = (error: OpenError): HarnessError =>
  error instanceof HarnessError ? error : new HarnessError({ code: "faulted", message: error.message })

/** Provides the main conversation of a session and its forks; what tasks own is theirs. */
export const provideConversations = (
  services: Services,
  session: OpenSession
): Effect.Effect<void, HarnessError, Scope.Scope> =>
  Effect.gen(function*() {
    for (const { id, owner } of yield* session.tree) {
      const conversation = owner === null ? yield* session.conversation(id) : null
      if (conversation !== null) yield* provideConversation(services, session, conversation)
    }
  })

/** Provides one conversation of a session until the scope closes. Completes once it is there. */
export const provideConversation = (
  services: Services,
  session: OpenSession,
  conversation: HarnessConversation
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { sessionID } = session.identity
    const parent = yield* Effect.scope
    const provided = yield* Deferred.make<void>()

    const follow = Effect.fnUntraced(function*(watch: Watch) {
      const view = MutableRemoteState.makeUnsafe(ConversationViewSchema, watch.view, { sequence: watch.revision })
      const happened = MutableRemoteEvents.makeUnsafe(ViewEventSchema)
      const implementation: Implementation<Conversation> = {
        view,
        happened,
        send: ({ files, requestID, text, whenBusy, written }) =>
          Effect.gen(function*() {
            const client = yield* ClientIdentity
            // Who sent the current input is asked first.
            if (client !== null) yield* services.broker.prefer(sessionID, client.id)
            const { notices, prompt } = yield* services.runtime.intakes.take({
              text,
              ...(files === undefined ? {} : { files }),
              ...(written === undefined ? {} : { written })
            }, { sessionID, conversationID: conversation.id })
            const handle = yield* conversation.send({
              content: [{ type: "text", text }, ...(prompt.files ?? [])],
              ...(whenBusy === undefined ? {} : { whenBusy }),
              ...(requestID === undefined ? {} : { requestID })
            })
            // The catalogue is told of the work, which does not wait for that.
            yield* Effect.forkIn(Effect.ignore(services.runtime.account(sessionID)), parent)
            return { inputID: handle.id, ...(notices.length === 0 ? {} : { notices }) }
          }),
        nextModel: () =>
          Effect.flatMap(conversation.snapshot, ({ view: { config } }) => services.runtime.nextModel(config)),
        wait: ({ inputID }) => Effect.flatMap(inputOf(conversation, inputID), (handle) => handle.wait),
        inputContent: ({ inputID }) =>
          Effect.map(
            Effect.flatMap(inputOf(conversation, inputID), (handle) => handle.content),
            (content) => ({
              text: content.flatMap((part) => part.type === "text" ? [part.text] : []).join(""),
              files: content.flatMap((part) => part.type === "file" ? [part] : [])
            })
          ),
        inputAbort: ({ inputID }) => Effect.flatMap(inputOf(conversation, inputID), (handle) => handle.abort),
        // Ending a turn that nobody has resumed is work of the session too.
        abort: ({ reason }) =>
          conversation.id === mainConversation
            ? Effect.mapError(services.runtime.interrupt(sessionID, reason), asRefused)
            : conversation.abort(reason),
        configSet: (patch) => conversation.configure(patch),
        write: ({ data, kind, text }) =>
          Effect.map(
            conversation.write(kind, {
              ...(data === undefined ? {} : { data }),
              ...(text === undefined ? {} : { model: [{ role: "user", content: [{ type: "text", text }] }] })
            }),
            (entryID) => ({ entryID })
          ),
        reset: ({ handoff }) => conversation.reset(handoff),
        collapse: ({ instructions }) =>
          Effect.map(
            Effect.flatMap(conversation.collapse(instructions), conversation.waitForTask),
            ({ failure, status }) => ({
              status,
              message: failureMessage(failure)
            })
          ),
        fork: ({ at }) =>
          Effect.gen(function*() {
            const forked = yield* conversation.fork(at)
            yield* Scope.provide(provideConversation(services, session, forked), parent)
            return { conversationID: forked.id }
          }),
        revert: (request) => Effect.mapError(services.runtime.revert.stage(sessionID, request), asRefused),
        revertClear: (request) => Effect.mapError(services.runtime.revert.clear(sessionID, request), asRefused),
        entries: ({ limit, ...scan }) =>
          Effect.map(conversation.entries({ ...scan, limit: Math.min(1_000, Math.max(1, limit ?? 100)) }), (entries) =>
            entries.map(({ createdAt, data, head, id, kind, model, ordinal }) => ({
              createdAt,
              data,
              id,
              kind,
              model,
              ordinal,
              ...(head === null ? {} : { head })
            })))
      }
      yield* services.directory.provide(Conversation, implementation, {
        owner: "the host",
        session: sessionID,
        key: conversationKey(sessionID, conversation.id),
        isEnduring: true
      })
      yield* Deferred.succeed(provided, undefined)
      yield* Stream.runForEach(watch.envelopes, (envelope) =>
        Effect.andThen(
          view.publish(envelope.operations),
          Effect.forEach(envelope.events, (event) =>
            happened.emit(event), { discard: true })
        ))
    })

    // When a watch ends (it fell too far behind, or what it gave did not apply), the next one starts from a fresh snapshot.
    // A session that has ended gives no watch any more, which is the end.
    const once = Effect.scoped(Effect.gen(function*() {
      const watch = yield* conversation.watch
      return yield* follow(watch).pipe(
        Effect.as(true),
        Effect.catchTag("HarnessError", (error) =>
          Effect.logDebug(`The view of session ${sessionID} is taken anew: ${error.message}`).pipe(
            // A storage that has just failed is not asked again at once.
            Effect.andThen(error.code === "faulted" ? Effect.sleep("1 second") : Effect.void),
            Effect.as(true)
          )),
        Effect.catchTag("RegistrationError", (error) =>
          Effect.as(Effect.logError(error.message), false)),
        Effect.catchDefect((defect) =>
          Effect.logError(`The view of session ${sessionID} could not be followed.`, defect).pipe(
            Effect.andThen(Effect.sleep("1 second")),
            Effect.as(true)
          )
        )
      )
    }))
    yield* Effect.forkScoped(
      once.pipe(
        Effect.catch(() =>
          Effect.succeed(false)
        ),
        Effect.repeat({
          while: (again) =>
            again
        }),
        Effect.ensuring(Deferred.succeed(provided, undefined))
      )
    )
    yield* Deferred.await(provided)
  })
