/**
 * The sessions of one location while they run.
 *
 * A session is opened on demand, exclusively in this process: its harness over its storage, with everything that extensions
 * have declared, in a scope of its own. It stays open while somebody holds it or work of it runs, and a short while longer;
 * closing marks nothing, what was running recovers at the next open. Sessions of another location are refused.
 *
 *     demand ──▶ opening ──▶ open ──last holder gone──▶ idle ──idle time──▶ closed
 *                   │ fails: reported to each who waits; the next demand tries again
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type {
  Conversation,
  ConversationConfig,
  Harness,
  HarnessError,
  InputHandle,
  InputOutcome,
  Namespace,
  SendInput
} from "../harness/index.ts"
import { HarnessError as HarnessFault } from "../harness/index.ts"
import { Location, makeKeyed } from "../location/index.ts"
import type { FilePart, TextPart } from "../model/index.ts"
import { ProviderRegistry } from "../model/index.ts"
import type { SessionInUse, StorageError } from "../storage/index.ts"
import { SessionStorage } from "../storage/index.ts"
import { ToolRegistry } from "../tool/index.ts"
import type { TurnOptions } from "../turn/index.ts"
import { openHarness } from "../turn/index.ts"
import { openArtifact } from "./artifacts.ts"
import type { DeclarationTarget, SessionDeclaration } from "./declarations.ts"
import { CurrentSession } from "./declarations.ts"
import { SessionLocationMismatch } from "./identity.ts"
import type { OpenSession } from "./open-session.ts"
import type { UnknownSession } from "./record.ts"
import { SessionStore } from "./store.ts"

/** Why a session could not be opened here. */
export type OpenError = UnknownSession | SessionLocationMismatch | SessionInUse | StorageError | HarnessError

/** What somebody asks of a session. */
export interface Prompt {
  readonly text: string
  readonly files?: ReadonlyArray<FilePart>
}

export interface PromptOptions {
  readonly sessionID: string
  readonly prompt: Prompt
  /** Default: the main conversation. */
  readonly conversationID?: string
  readonly whenBusy?: SendInput["whenBusy"]
  /** A prompt with an id that the session has accepted before is that same prompt. */
  readonly requestID?: string
  /** `false` only accepts it; the work starts with `resume`. */
  readonly resume?: boolean
}

export interface SessionRuntimeShape {
  /** Accepts a prompt durably and gives its input's id; does not wait for the answer. */
  readonly prompt: (options: PromptOptions) => Effect.Effect<{ readonly inputID: string }, OpenError>
  /** The same, placed into the running turn at its next boundary. */
  readonly steer: (
    options: Omit<PromptOptions, "whenBusy" | "resume">
  ) => Effect.Effect<{ readonly inputID: string }, OpenError>
  /** Starts work that is there: accepted prompts, and what a crash left. */
  readonly resume: (sessionID: string) => Effect.Effect<void, OpenError>
  /** Completes when no turn runs and nothing is queued; with an input's id, when that has ended. Holds nothing but the session. */
  readonly wait: {
    (sessionID: string): Effect.Effect<void, OpenError>
    (sessionID: string, inputID: string): Effect.Effect<InputOutcome, OpenError>
  }
  /** Durably ends the running turn, if there is one. */
  readonly interrupt: (sessionID: string, reason?: string) => Effect.Effect<void, OpenError>
  /** Sessions with running or queued work, by id. */
  readonly active: Effect.Effect<ReadonlyArray<string>>
  readonly configure: (sessionID: string, patch: Partial<ConversationConfig>) => Effect.Effect<void, OpenError>
  readonly abortInput: (
    sessionID: string,
    inputID: string
  ) => Effect.Effect<"aborted" | "already_placed" | "ended", OpenError>
  /** A new conversation of the session whose transcript is the main one's up to and including entry `at`; gives its id. */
  readonly fork: (sessionID: string, at: string) => Effect.Effect<string, OpenError>
  /** Text of the newest final answer of the main conversation, or an empty string. */
  readonly finalText: (sessionID: string) => Effect.Effect<string, OpenError>
  /** The folder of the files that a session keeps, artifacts among them. Made if it is not there; opens no session. */
  readonly folder: (sessionID: string) => Effect.Effect<string, StorageError>
}

/** What only hosts see of the runtime. */
export interface SessionRuntimeHost extends SessionRuntimeShape {
  /** Opens a session, or holds it open, for the life of the scope; its work starts. */
  readonly open: (sessionID: string) => Effect.Effect<OpenSession, OpenError, Scope.Scope>
  /** Changes what is declared for all sessions, open ones included, in one step. */
  readonly declare: (change: {
    readonly add: ReadonlyArray<SessionDeclaration>
    readonly remove: ReadonlyArray<SessionDeclaration>
  }) => Effect.Effect<void>
  readonly targets: () => ReadonlyArray<DeclarationTarget>
  /** Completes when no work runs: until then the location is needed. */
  readonly settled: Effect.Effect<void>
  /** What turns need beyond models and tools; set by the host before anything opens. */
  readonly configureTurns: (options: Partial<Pick<TurnOptions, "agent" | "compaction" | "hookLimit" | "job" | "retry">>) => Effect.Effect<void>
}

export interface SessionRuntimeOptions {
  /** How long a session stays open after its last holder; default 2 seconds, during which no other process can write it. */
  readonly idleTime?: Duration.Input
  /** Time limit of each effect that extensions run when a session opens; default 10 seconds. */
  readonly declarationLimit?: Duration.Input
}

/** A session that is open, as the runtime holds it. */
interface Entry extends DeclarationTarget {
  readonly harness: Harness
  readonly reconcile: Effect.Effect<void, HarnessError>
  /** Everything declared has been applied; work may run. */
  readonly isReady: () => boolean
}

const content = (prompt: Prompt): ReadonlyArray<TextPart | FilePart> => [
  { type: "text", text: prompt.text },
  ...(prompt.files ?? [])
]

const make = (options: SessionRuntimeOptions) =>
  Effect.gen(function*() {
    const location = yield* Location
    const store = yield* SessionStore
    const files = yield* SessionStorage
    const tools = yield* ToolRegistry
    const models = yield* ProviderRegistry
    const base = yield* Effect.context<never>()
    const limit = options.declarationLimit ?? Duration.seconds(10)

    let declarations: ReadonlyArray<SessionDeclaration> = []
    let turns: Partial<Pick<TurnOptions, "agent" | "compaction" | "hookLimit" | "job" | "retry">> = {}
    const open = new Map<string, Entry>()
    // One fiber for each piece of work that must keep its session open after whoever asked for it has gone.
    const work = yield* FiberSet.make<void>()

    const apply = (target: DeclarationTarget, declaration: SessionDeclaration, scope: Scope.Scope) =>
      Effect.gen(function*() {
        const exit = yield* declaration.apply(target).pipe(
          Scope.provide(scope),
          Effect.annotateLogs({ plugin: declaration.plugin, session: target.session.identity.sessionID }),
          Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(new Error("it did not finish in time")) }),
          Effect.exit
        )
        if (Exit.isSuccess(exit)) return
        const message =
          `The ${declaration.what} of plugin ${declaration.plugin} failed in session ${target.session.identity.sessionID}.`
        if (!declaration.required) return yield* Effect.logWarning(message, exit.cause)
        yield* Effect.logError(message, exit.cause)
        return yield* new HarnessFault({ code: "invalid", message })
      })

    const openEntry = (sessionID: string) =>
      Effect.gen(function*() {
        const record = yield* store.get(sessionID)
        if (record.location.directory !== location.directory || record.location.workspaceID !== location.workspaceID) {
          return yield* new SessionLocationMismatch({
            sessionID,
            expected: record.location.directory,
            actual: location.directory,
            message:
              `The session ${sessionID} belongs to ${record.location.directory}, not to ${location.directory}; ask for it there.`
          })
        }
        const scope = yield* Effect.scope
        const storage = yield* files.write(sessionID)
        const harness = yield* openHarness(storage, {
          ...turns,
          sessionID,
          models,
          tools,
          defaults: { model: record.model, agent: record.agent },
          artifact: (name) =>
            Effect.flatMap(Effect.orDie(files.folder(sessionID)), (folder) => openArtifact(folder, name)),
          onReport: (report) => {
            Effect.runForkWith(base)(
              Effect.logWarning(report.message).pipe(Effect.annotateLogs({ session: sessionID }))
            )
          }
        })
        const namespaces = new Map<Namespace, Namespace>()
        const session: OpenSession = {
          identity: { sessionID, location },
          main: harness.main,
          conversation: harness.conversation,
          conversations: harness.conversations
        }
        const applied = new Map<SessionDeclaration, Scope.Closeable>()
        const line = yield* Semaphore.make(1)
        const target = { session, harness, namespaces }
        let isReady = false
        const entry: Entry = {
          ...target,
          isReady: () => isReady,
          reconcile: Effect.gen(function*() {
            for (const [declaration, own] of [...applied].toReversed()) {
              if (declarations.includes(declaration)) continue
              applied.delete(declaration)
              yield* Scope.close(own, Exit.void)
            }
            for (const declaration of declarations) {
              if (applied.has(declaration)) continue
              const own = yield* Scope.fork(scope)
              applied.set(declaration, own)
              yield* apply(target, declaration, own)
            }
          }).pipe(line.withPermit)
        }
        open.set(sessionID, entry)
        yield* Effect.addFinalizer(() => Effect.sync(() => open.delete(sessionID)))
        yield* entry.reconcile
        isReady = true
        return entry
      }).pipe(
        Effect.withSpan("session.open", { attributes: { sessionID } })
      )

    const entries = yield* makeKeyed({ make: openEntry, idleTime: options.idleTime ?? Duration.seconds(2) })

    // What runs while its own session opens has the session already; waiting for the opening to end would never end.
    const hold = (sessionID: string) =>
      Effect.flatMap(CurrentSession, (current) => {
        const entry = current === sessionID ? open.get(sessionID) : undefined
        return entry !== undefined && !entry.isReady() ? Effect.succeed(entry) : entries.get(sessionID)
      })

    /** Keeps a session open until `until` completes, whatever becomes of the caller. */
    const keep = (sessionID: string, until: (entry: Entry) => Effect.Effect<unknown, unknown>) =>
      Effect.scoped(Effect.flatMap(hold(sessionID), until)).pipe(
        Effect.ignore,
        Effect.setContext(base),
        FiberSet.run(work),
        Effect.asVoid
      )

    const report = (sessionID: string, entry: Entry) =>
      Effect.gen(function*() {
        const { view } = yield* entry.session.main.snapshot
        const { cacheRead, cacheWrite, cost, input, output } = view.usage
        yield* store.report(sessionID, { status: "idle", usage: { cacheRead, cacheWrite, input, output }, cost })
      }).pipe(Effect.ignore)

    const start = (sessionID: string, entry: Entry): Effect.Effect<void, HarnessError> =>
      Effect.gen(function*() {
        // Nothing runs before the gates of all plugins are there.
        if (!entry.isReady()) return yield* keep(sessionID, (held) => start(sessionID, held))
        yield* entry.harness.resume
        if (!(yield* entry.session.main.busy)) return
        yield* Effect.ignore(store.report(sessionID, { status: "active" }))
        yield* keep(sessionID, (held) => Effect.andThen(held.session.main.idle, report(sessionID, held)))
      })

    const using = <A, E>(sessionID: string, use: (entry: Entry) => Effect.Effect<A, E>) =>
      Effect.scoped(Effect.flatMap(hold(sessionID), use))

    const conversationOf = (entry: Entry, id: string | undefined): Effect.Effect<Conversation, HarnessError> =>
      id === undefined
        ? Effect.succeed(entry.session.main)
        : Effect.flatMap(entry.session.conversation(id), (found) =>
          found === null
            ? Effect.fail(
              new HarnessFault({ code: "not_found", message: `There is no conversation ${id} in this session.` })
            )
            : Effect.succeed(found))

    const inputOf = (entry: Entry, inputID: string): Effect.Effect<InputHandle, HarnessError> =>
      Effect.flatMap(entry.session.main.input(inputID), (handle) =>
        handle === null
          ? Effect.fail(
            new HarnessFault({ code: "not_found", message: `There is no input ${inputID} in this session.` })
          )
          : Effect.succeed(handle))

    const prompt: SessionRuntimeShape["prompt"] = (
      { conversationID, prompt, requestID, resume, sessionID, whenBusy }
    ) =>
      using(sessionID, (entry) =>
        Effect.gen(function*() {
          const conversation = yield* conversationOf(entry, conversationID)
          const handle = yield* conversation.send({
            content: content(prompt),
            ...(whenBusy === undefined ? {} : { whenBusy }),
            ...(requestID === undefined ? {} : { requestID })
          })
          if (resume !== false) yield* start(sessionID, entry)
          if (conversationID !== undefined) yield* keep(sessionID, () => handle.wait)
          return { inputID: handle.id }
        })).pipe(Effect.withSpan("SessionRuntime.prompt", { attributes: { sessionID } }))

    const wait = (sessionID: string, inputID?: string): Effect.Effect<InputOutcome | void, OpenError> =>
      using<InputOutcome | void, HarnessError>(sessionID, (entry) =>
        inputID === undefined
          ? entry.session.main.idle
          : Effect.flatMap(inputOf(entry, inputID), (handle) => handle.wait))

    const runtime: SessionRuntimeHost = {
      prompt,
      steer: (steered) => prompt({ ...steered, whenBusy: "steer" }),
      resume: (sessionID) => using(sessionID, (entry) => start(sessionID, entry)),
      // The overload's result depends on whether an input was named, which the implementation signature cannot say.
      wait: wait as SessionRuntimeShape["wait"],
      interrupt: (sessionID, reason) => using(sessionID, (entry) => entry.session.main.abort(reason)),
      active: Effect.gen(function*() {
        const active: Array<string> = []
        for (const [id, entry] of open) if (yield* entry.session.main.busy) active.push(id)
        return active.sort()
      }),
      configure: (sessionID, patch) => using(sessionID, (entry) => entry.session.main.configure(patch)),
      abortInput: (sessionID, inputID) =>
        using(sessionID, (entry) => Effect.flatMap(inputOf(entry, inputID), (handle) => handle.abort)),
      fork: (sessionID, at) =>
        using(sessionID, (entry) => Effect.map(entry.session.main.fork(at), (conversation) => conversation.id)),
      finalText: (sessionID) => using(sessionID, (entry) => entry.session.main.finalText),
      folder: files.folder,
      open: (sessionID) =>
        Effect.gen(function*() {
          const entry = yield* hold(sessionID)
          yield* start(sessionID, entry)
          return entry.session
        }),
      declare: (change) =>
        Effect.gen(function*() {
          declarations = [...declarations.filter((declaration) => !change.remove.includes(declaration)), ...change.add]
            .sort((left, right) => left.order - right.order)
          yield* Effect.forEach([...open.values()], (entry) => Effect.ignore(entry.reconcile), { discard: true })
        }),
      targets: () => [...open.values()],
      settled: FiberSet.awaitEmpty(work),
      configureTurns: (given) =>
        Effect.sync(() => {
          turns = { ...turns, ...given }
        })
    }
    return runtime
  })

/** The sessions of one location. */
export class SessionRuntime
  extends Context.Service<SessionRuntime, SessionRuntimeHost>()("@bezel/core/SessionRuntime")
{
  static readonly layerWith = (options: SessionRuntimeOptions) => Layer.effect(SessionRuntime, make(options))
  static readonly layer = SessionRuntime.layerWith({})
}
