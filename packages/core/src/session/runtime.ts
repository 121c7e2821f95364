/**
 * The sessions of one location while they run.
 *
 * A session is opened on demand, exclusively in this process: its harness over its storage, with everything that extensions
 * have declared, in a scope of its own. It stays open while somebody holds it or work of it runs, and a short while longer;
 * closing marks nothing, what was running recovers at the next open. Sessions of another location are refused.
 *
 *     demand ──▶ opening ──▶ open ──last holder gone──▶ idle ──idle time──▶ closed
 *                   │ ▲        │ suspended while code that it runs is exchanged
 *                   │ └────────┘
 *                   └ fails: reported to each who waits; the next demand tries again
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { Conversation, HarnessError, InputHandle, InputOutcome, Namespace } from "../harness/index.ts"
import { HarnessError as HarnessFault, mainConversation } from "../harness/index.ts"
import { makeLine } from "../kernel/index.ts"
import { Location, makeKeyed } from "../location/index.ts"
import type { FilePart, TextPart } from "../model/index.ts"
import { fallbackModel, ProviderRegistry } from "../model/index.ts"
import { SessionStorage } from "../storage/index.ts"
import { ToolRegistry } from "../tool/index.ts"
import type { TurnOptions } from "../turn/index.ts"
import { anyAgent, defaultCompaction, openHarness } from "../turn/index.ts"
import { openArtifact } from "./artifacts.ts"
import type { DeclarationTarget, SessionDeclaration } from "./declarations.ts"
import { enduring, type Through } from "./enduring.ts"
import { makeExchanges } from "./exchange.ts"
import { SessionLocationMismatch } from "./identity.ts"
import { makeIntakes } from "./intake.ts"
import type { Held, Live, OpenError } from "./live.ts"
import type { OpenSession } from "./open-session.ts"
import { CurrentSession, makePluginCode } from "./plugin-code.ts"
import { makeReopenable, type Reopenable } from "./reopenable.ts"
import type { SessionRevert } from "./revert.ts"
import type {
  Prompt,
  SessionRuntimeHost,
  SessionRuntimeOptions,
  SessionRuntimeShape,
  TurnDecisions
} from "./runtime-shape.ts"
import { makeSaid } from "./said.ts"
import { SessionStore } from "./store.ts"
import { titleOfView } from "./title.ts"

const isClosed = (error: unknown): boolean => error instanceof HarnessFault && error.code === "closed"

const asClosed = (sessionID: string, error: OpenError): HarnessError => {
  if (error instanceof HarnessFault) return error
  const why = error._tag === "SessionInUse" ? `process ${error.holder.pid} has it` : error.message
  return new HarnessFault({ code: "faulted", message: `The session ${sessionID} could not be opened again: ${why}` })
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
    let turns: Partial<Pick<TurnOptions, "frames" | "hookLimit" | "job" | "place" | "retry">> = {}
    const decisions = makeSaid<TurnDecisions>()
    const decided = () => decisions.all().reduce<TurnDecisions>((all, { value }) => ({ ...all, ...value }), {})
    const reverters = makeSaid<SessionRevert>()
    const intakes = makeIntakes()
    const code = makePluginCode()
    const held = new Map<string, Held>()
    const open = new Map<string, Live>()
    /** Sessions whose work may run: it goes on by itself when they are opened again. */
    const started = new Set<string>()
    const exchanges = makeExchanges({
      open,
      held,
      code,
      kindsOf: (plugins) =>
        declarations.flatMap(({ plugin, task }) => task !== undefined && plugins.includes(plugin) ? [task] : [])
    })
    // One fiber for each piece of work that must keep its session open after whoever asked for it has gone.
    const work = yield* FiberSet.make<void>()
    // The same for what goes on in the background of sessions whose turns have ended.
    const background = yield* FiberSet.make<void>()

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

    const openLive = (sessionID: string, session: () => OpenSession) =>
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
        yield* store.opened(sessionID)
        const opened = openHarness(storage, {
          ...turns,
          // Asked for each time: who says it may be exchanged for another while the session is open.
          agent: (name) => decided().agent?.(name) ?? Effect.succeed(anyAgent),
          compaction: Effect.suspend(() => decided().compaction ?? Effect.succeed(defaultCompaction)),
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
        // So that whatever its tasks run knows for which session it works.
        const harness = yield* Effect.provideService(opened, CurrentSession, sessionID)
        yield* exchanges.join(harness)
        const applied = new Map<SessionDeclaration, Scope.Closeable>()
        const line = makeLine()
        const target: DeclarationTarget = {
          session: session(),
          harness,
          namespaces: new Map<Namespace, Namespace>(),
          places: new Map()
        }
        let isReady = false
        const live: Live = {
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
              yield* Effect.onError(apply(target, declaration, own), (cause) => {
                applied.delete(declaration)
                return Scope.close(own, Exit.failCause(cause))
              })
            }
          }).pipe(line)
        }
        open.set(sessionID, live)
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            if (open.get(sessionID) === live) open.delete(sessionID)
          })
        )
        // What was declared meanwhile counts too.
        do yield* live.reconcile
        while (!declarations.every((declaration) => applied.has(declaration)))
        isReady = true
        if (started.has(sessionID)) yield* harness.resume
        return live
      }).pipe(
        Effect.withSpan("session.open", { attributes: { sessionID } })
      )

    /** While its own session opens, work has the session already; waiting for the opening to end would never end. */
    const opening = (sessionID: string): Live | null => {
      const live = open.get(sessionID)
      return live !== undefined && !live.isReady() ? live : null
    }

    const openHeld = (sessionID: string) =>
      Effect.gen(function*() {
        const reopenable: Reopenable<Live, OpenError> = yield* makeReopenable<Live, OpenError>({
          open: Effect.tap(openLive(sessionID, () => session), (live) => Effect.forkDetach(closeWhenFaulted(live))),
          isClosed
        })
        // A storage that failed may have room again by the next demand, which opens the session anew.
        const closeWhenFaulted = (live: Live) =>
          Effect.flatMap(
            live.harness.faulted,
            () => Effect.suspend(() => reopenable.now() === live ? reopenable.close(() => Effect.void) : Effect.void)
          )
        const useOpen = reopenable.useOr((error) => asClosed(sessionID, error))
        const inLive = <A, E, R>(use: (live: Live) => Effect.Effect<A, E, R>): Effect.Effect<A, E | HarnessError, R> =>
          Effect.suspend(() => {
            const now = opening(sessionID)
            return now !== null ? use(now) : useOpen(use)
          })
        const conversation = (id: string): Through => (use) =>
          inLive((live) => Effect.flatMap(conversationOf(live, id), use))
        const session: OpenSession = {
          identity: { sessionID, location },
          main: enduring(mainConversation, conversation),
          conversation: (id) =>
            Effect.map(
              inLive(({ harness }) => harness.conversation(id)),
              (found) => found === null ? null : enduring(id, conversation)
            ),
          tree: inLive(({ harness }) => harness.tree),
          events: inLive(({ harness }) => harness.events)
        }
        const entry: Held = { ...reopenable, session }
        held.set(sessionID, entry)
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            held.delete(sessionID)
            started.delete(sessionID)
          })
        )
        yield* entry.current
        return entry
      })

    // By itself, so that whatever wants it opened waits for nothing.
    const reopen = (entry: Held) =>
      Effect.asVoid(FiberSet.run(work)(Effect.setContext(Effect.ignore(entry.current), base)))

    const sessions = yield* makeKeyed({ make: openHeld, idleTime: options.idleTime ?? Duration.millis(500) })

    /** Keeps a session open until `until` completes, whatever becomes of the caller. */
    const keep = (sessionID: string, until: (live: Live) => Effect.Effect<unknown, unknown>, set = work) =>
      Effect.scoped(Effect.flatMap(sessions.get(sessionID), (entry) => entry.use(until))).pipe(
        Effect.ignore,
        Effect.setContext(base),
        FiberSet.run(set),
        Effect.asVoid
      )

    const report = (sessionID: string, live: Live) =>
      Effect.gen(function*() {
        const { view } = yield* live.harness.main.snapshot
        const { cacheRead, cacheWrite, cost, input, output } = view.usage
        yield* store.report(sessionID, { status: "idle", usage: { cacheRead, cacheWrite, input, output }, cost })
      }).pipe(Effect.ignore)

    /** Names a session after what was asked first, unless somebody has named it. */
    const nameSession = (sessionID: string, live: Live) =>
      Effect.gen(function*() {
        if ((yield* store.get(sessionID)).title !== "") return
        const title = titleOfView((yield* live.harness.main.snapshot).view)
        if (title !== "") yield* store.rename(sessionID, title)
      }).pipe(Effect.ignore)

    const start = (sessionID: string, live: Live): Effect.Effect<void, HarnessError> =>
      Effect.gen(function*() {
        // Nothing runs before the gates of all plugins are there.
        if (!live.isReady()) return yield* keep(sessionID, (ready) => start(sessionID, ready))
        started.add(sessionID)
        yield* live.harness.resume
        if (yield* live.harness.main.busy) yield* account(sessionID, live)
        else yield* keepForBackground(sessionID)
      })

    /** Sessions that are kept open for what goes on in their background. */
    const kept = new Set<string>()

    /** What goes on in the background is told when it ends, and may begin a turn: until then the session stays open. */
    const keepForBackground = (sessionID: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (kept.has(sessionID)) return Effect.void
        kept.add(sessionID)
        const until = (now: Live) =>
          Effect.flatMap(now.harness.inBackground, (how) => {
            kept.delete(sessionID)
            return how === "woken" ? account(sessionID, now) : Effect.void
          })
        return keep(
          sessionID,
          (now) => Effect.ensuring(until(now), Effect.sync(() => kept.delete(sessionID))),
          background
        )
      })

    /** Tells the catalogue of work: what was asked first, that it runs, and at its end what it took. */
    const account = (sessionID: string, live: Live): Effect.Effect<void> =>
      Effect.gen(function*() {
        yield* nameSession(sessionID, live)
        // What waits for somebody to resume it is no work that runs.
        if (!started.has(sessionID)) return
        if (!(yield* live.harness.main.busy)) return yield* report(sessionID, live)
        yield* Effect.ignore(store.report(sessionID, { status: "active" }))
        yield* keep(sessionID, (now) =>
          Effect.gen(function*() {
            yield* now.harness.main.idle
            yield* report(sessionID, now)
            yield* keepForBackground(sessionID)
          }))
      })

    const using = <A, E>(sessionID: string, use: (live: Live) => Effect.Effect<A, E>) =>
      Effect.flatMap(CurrentSession, (current) => {
        const now = current === sessionID ? opening(sessionID) : null
        return now !== null
          ? use(now)
          : Effect.scoped(Effect.flatMap(sessions.get(sessionID), (entry) => entry.use(use)))
      })

    const conversationOf = (live: Live, id: string | undefined): Effect.Effect<Conversation, HarnessError> =>
      id === undefined
        ? Effect.succeed(live.harness.main)
        : Effect.flatMap(live.harness.conversation(id), (found) =>
          found === null
            ? Effect.fail(
              new HarnessFault({ code: "not_found", message: `There is no conversation ${id} in this session.` })
            )
            : Effect.succeed(found))

    const inputOf = (live: Live, inputID: string): Effect.Effect<InputHandle, HarnessError> =>
      Effect.flatMap(live.harness.main.input(inputID), (handle) =>
        handle === null
          ? Effect.fail(
            new HarnessFault({ code: "not_found", message: `There is no input ${inputID} in this session.` })
          )
          : Effect.succeed(handle))

    const prompt: SessionRuntimeShape["prompt"] = (
      { config, conversationID, prompt, requestID, resume, sessionID, whenBusy }
    ) =>
      using(sessionID, (live) =>
        Effect.gen(function*() {
          const conversation = yield* conversationOf(live, conversationID)
          const taken = yield* intakes.take(prompt, { sessionID, conversationID: conversation.id })
          const handle = yield* conversation.send({
            content: content(taken.prompt),
            ...(whenBusy === undefined ? {} : { whenBusy }),
            ...(requestID === undefined ? {} : { requestID }),
            ...(config === undefined ? {} : { config })
          })
          if (resume !== false) yield* start(sessionID, live)
          if (conversationID !== undefined) yield* keep(sessionID, () => handle.wait)
          return { inputID: handle.id, ...(taken.notices.length === 0 ? {} : { notices: taken.notices }) }
        })).pipe(Effect.withSpan("SessionRuntime.prompt", { attributes: { sessionID } }))

    const wait = (sessionID: string, inputID?: string): Effect.Effect<InputOutcome | void, OpenError> =>
      using<InputOutcome | void, HarnessError>(sessionID, (live) =>
        inputID === undefined
          ? live.harness.main.idle
          : Effect.flatMap(inputOf(live, inputID), (handle) => handle.wait))

    const reverter = Effect.suspend(() => {
      const by = reverters.all().at(-1)?.value
      return by === undefined
        ? Effect.fail(
          new HarnessFault({
            code: "not_permitted",
            message: "No plugin here keeps what sessions have done to take it back."
          })
        )
        : Effect.succeed(by)
    })

    const runtime: SessionRuntimeHost = {
      prompt,
      steer: (steered) => prompt({ ...steered, whenBusy: "steer" }),
      resume: (sessionID) => using(sessionID, (live) => start(sessionID, live)),
      // The overload's result depends on whether an input was named, which the implementation signature cannot say.
      wait: wait as SessionRuntimeShape["wait"],
      // Ending a turn is work, so a session that nobody has resumed is; the mark comes first, and nothing of the turn begins.
      interrupt: (sessionID, reason) =>
        using(sessionID, (live) =>
          Effect.all([live.harness.main.abort(reason), live.isReady() ? live.harness.resume : Effect.void], {
            concurrency: 2,
            discard: true
          })),
      active: Effect.gen(function*() {
        const active: Array<string> = []
        for (const [id, live] of open) {
          if (yield* live.harness.main.busy) {
            active.push(id)
          }
        }
        return active.sort()
      }),
      configure: (sessionID, patch) =>
        using(sessionID, (live) =>
          live.harness.main.configure(patch)),
      abortInput: (sessionID, inputID) =>
        using(sessionID, (live) => Effect.flatMap(inputOf(live, inputID), (handle) => handle.abort)),
      fork: (sessionID, at) =>
        using(sessionID, (live) => Effect.map(live.harness.main.fork(at), (conversation) => conversation.id)),
      revert: {
        stage: (sessionID, request) =>
          using(sessionID, ({ session }) => Effect.flatMap(reverter, (by) => by.stage(session, request))),
        clear: (sessionID, request = {}) =>
          using(sessionID, ({ session }) => Effect.flatMap(reverter, (by) => by.clear(session, request)))
      },
      intakes,
      reverters,
      decisions,
      finalText: (sessionID) => using(sessionID, (live) => live.harness.main.finalText),
      folder: files.folder,
      open: (sessionID, { resume = true } = {}) =>
        Effect.gen(function*() {
          const now = (yield* CurrentSession) === sessionID ? opening(sessionID) : null
          if (now !== null) return now.session
          const entry = yield* sessions.get(sessionID)
          yield* entry.use((live) => resume ? start(sessionID, live) : Effect.void)
          return entry.session
        }),
      declare: (change) =>
        Effect.gen(function*() {
          declarations = [...declarations.filter((declaration) => !change.remove.includes(declaration)), ...change.add]
            .sort((left, right) => left.order - right.order)
          // What had been closed for such a fault may open now, for those who still hold it.
          for (const entry of held.values()) {
            if (entry.now() === null && !entry.isSuspended()) yield* reopen(entry)
          }
          for (const [sessionID, live] of open) {
            const reconciled = yield* Effect.exit(live.reconcile)
            const entry = held.get(sessionID)
            if (Exit.isFailure(reconciled) && entry?.now() === live) {
              yield* entry.close(({ harness }) => harness.suspend)
            }
          }
        }),
      code,
      exchanging: exchanges.run,
      targets: () => [...open.values()],
      settled: FiberSet.awaitEmpty(work),
      atRest: Effect.gen(function*() {
        do {
          yield* FiberSet.awaitEmpty(work)
          yield* FiberSet.awaitEmpty(background)
        } while ((yield* FiberSet.size(work)) > 0)
      }),
      account: (sessionID) => using(sessionID, (live) => account(sessionID, live)),
      nextModel: ({ agent, model }) =>
        Effect.gen(function*() {
          if (model !== null) return model
          const offered = yield* decided().agent?.(agent) ?? Effect.succeed(anyAgent)
          return offered.model ?? (yield* models.table).default ?? fallbackModel
        }),
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
