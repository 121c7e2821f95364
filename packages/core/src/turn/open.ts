/**
 * Opens a harness: the kinds of a turn over one session's storage.
 *
 * Nothing runs before `resume`. Closing the scope stops what runs and ends nothing: a crash, a close and a reopen are a
 * pause.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ConversationConfig, type Harness, HarnessError, openSession, type Session } from "../harness/index.ts"
import type { Storage, StorageError } from "../storage/index.ts"
import { collapseKind } from "./collapse.ts"
import { makeConversation } from "./conversation.ts"
import { generationKind } from "./generation.ts"
import { isBusy, wake } from "./inbox.ts"
import { makeMaterializations } from "./materializations.ts"
import type { TurnOptions } from "./options.ts"
import { makeToolOverlay } from "./overlay.ts"
import { postToolsKind } from "./post-tools.ts"
import { toolKind } from "./tool-task.ts"

const defaults: ConversationConfig = { model: null, agent: null, thinking: "off", queue: "one" }

export const openHarness = Effect.fn("openHarness")(function*(
  storage: Storage,
  given: TurnOptions
): Effect.fn.Return<Harness, StorageError | HarnessError, Scope.Scope> {
  const materializations = makeMaterializations()
  const overlay = yield* makeToolOverlay(given.tools)
  const options: TurnOptions = { ...given, tools: overlay.tools }
  const session = yield* openSession(
    storage,
    (session) => [
      generationKind(session, options, materializations),
      toolKind(session, options, materializations),
      postToolsKind(session, options, materializations),
      collapseKind(session, options)
    ],
    {
      sessionID: options.sessionID,
      defaults: { ...defaults, ...options.defaults },
      wake,
      ...(options.hookLimit === undefined ? {} : { hookLimit: options.hookLimit }),
      ...(options.onReport === undefined ? {} : { onReport: options.onReport })
    }
  )
  const job = options.job ?? null
  if (job !== null) yield* session.registerKind(job)
  return {
    sessionID: options.sessionID,
    job,
    main: makeConversation(session, session.main),
    conversation: (id) =>
      Effect.catchIf(
        Effect.map(session.conversation(id), (state) => makeConversation(session, state)),
        (error: HarnessError) => error.code === "not_found",
        () => Effect.succeed(null)
      ),
    tree: Effect.mapBoth(storage.conversations, {
      onFailure: (error) =>
        new HarnessError({ code: "faulted", message: `This session could not be read: ${error.message}` }),
      onSuccess: (records) => records.map(({ id, owner, parent }) => ({ id, parent, owner }))
    }),
    events: session.events,
    resume: Effect.andThen(Effect.andThen(loadLive(session), session.orphan), session.scheduler.start),
    inBackground: Effect.map(
      session.until(() => isBusy(session.main) || !hasBackground(session)),
      () => isBusy(session.main) ? "woken" : "ended"
    ),
    hold: session.scheduler.hold,
    suspend: Effect.andThen(session.scheduler.stop, session.line.close),
    quiescent: Effect.sync(() => session.scheduler.isQuiescent()),
    running: Effect.sync(() => session.scheduler.running()),
    namespace: session.extensions.namespace,
    hooks: session.extensions.hooks,
    section: session.extensions.section,
    faulted: session.faulted,
    registerTool: overlay.register,
    task: (kind) => kind.name.startsWith("bezel.") ? Effect.fail(reserved(kind.name)) : session.registerKind(kind)
  }
})

const reserved = (name: string): HarnessError =>
  new HarnessError({
    code: "not_permitted",
    message: `The task kind "${name}" is the core's; names under "bezel." are not yours to register.`
  })

const hasBackground = (session: Session): boolean => {
  for (const task of session.line.state.tasks.values()) if (task.background) return true
  return false
}

/** Loads the conversations of live tasks, so that recovery finds their documents. */
const loadLive = (session: Session): Effect.Effect<void, HarnessError> =>
  Effect.forEach(
    new Set([...session.line.state.tasks.values()].map((task) => task.conversation)),
    (id) => session.conversation(id),
    { discard: true }
  )
