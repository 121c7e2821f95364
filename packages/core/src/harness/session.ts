/**
 * An open session: commit line, scheduler and registrations over one storage, for the life of a scope.
 *
 * It knows task kinds, not what they do. Closing stops every invocation and marks nothing: what was running recovers at the
 * next open.
 */
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { type JsonValue, toJson } from "../json/index.ts"
import type { ConversationRecord, EntryRecord, InputRecord, Storage, StorageError } from "../storage/index.ts"
import {
  type ExtensionTransaction,
  type Harness,
  HarnessError,
  type HarnessReport,
  type Registration,
  type SessionEvents,
  type TaskKind,
  type Watch
} from "./api.ts"
import { type Authority, extensionTransaction } from "./extension-transaction.ts"
import { type Extensions, makeExtensions } from "./extensions.ts"
import type { RunnableKind } from "./kind.ts"
import { type CommitLine, makeLine, watcherCapacity } from "./line.ts"
import { loadConversation, loadSession, loadTranscript, newConversation } from "./load.ts"
import { type Projections, snapshot } from "./projection.ts"
import { makeScheduler, type Scheduler } from "./scheduler.ts"
import type { ConversationState } from "./state.ts"
import { isCustomKind } from "./task-kind.ts"
import type { FinishedTransaction, Transaction } from "./transaction.ts"
import type { ConversationConfig, ConversationView, Envelope } from "./view.ts"

export interface OpenOptions {
  readonly sessionID: string
  /** What a conversation is configured with until it says otherwise. */
  readonly defaults: ConversationConfig
  /** Begins a turn for an entry that asks for an answer; what a turn is, the harness does not know. */
  readonly wake: (tx: Transaction, conversation: ConversationState) => void
  /** How long a hook at a custom kind's point may take. */
  readonly hookLimit?: Duration.Input
  readonly onReport?: (report: HarnessReport) => void
}

export interface Session {
  readonly storage: Storage
  readonly options: OpenOptions
  readonly line: CommitLine
  readonly scheduler: Scheduler
  readonly extensions: Extensions
  readonly report: (report: HarnessReport) => void
  readonly main: ConversationState
  /** A conversation by id; `not_found` if the session has none of that name. */
  readonly conversation: (id: string) => Effect.Effect<ConversationState, HarnessError>
  /**
   * Creates a conversation in a commit, which may fill it. Once the commit is stored, `adopt` enters it; one that nobody
   * adopted is read from storage at its first use.
   */
  readonly create: (tx: Transaction, record: ConversationRecord) => ConversationState
  readonly adopt: (created: ConversationState) => ConversationState
  /** The active transcript as it is now; it grows with the commits behind this. */
  readonly transcript: (state: ConversationState) => Effect.Effect<ReadonlyArray<EntryRecord>, HarnessError>
  /** The view, as of one revision. */
  readonly materialized: (state: ConversationState) => Effect.Effect<Materialized, HarnessError>
  readonly watch: (state: ConversationState) => Effect.Effect<Watch, HarnessError, Scope.Scope>
  readonly events: Harness["events"]
  /** Completes once an input has ended, with its final record. */
  readonly inputEnd: (id: string) => Effect.Effect<InputRecord, HarnessError>
  /** Completes once `condition` holds; it is tried after every commit. */
  readonly until: (condition: () => boolean) => Effect.Effect<void, HarnessError>
  /** Completes when storage has failed and the session has stopped. */
  readonly faulted: Effect.Effect<HarnessError>
  /** Lets tasks of an extension's kind run, until the scope ends or it is unregistered. */
  readonly registerKind: <I>(kind: TaskKind<I>) => Effect.Effect<Registration, HarnessError, Scope.Scope>
  /** Whether a kind that is registered now has a setting of this name. */
  readonly isKindSetting: (key: string) => boolean
  readonly transaction: (
    tx: Transaction,
    state: ConversationState,
    options: { readonly mayCreate: boolean }
  ) => ExtensionTransaction
  /** Ends live tasks whose kind nobody has registered; done once, before anything runs. */
  readonly orphan: Effect.Effect<void, HarnessError>
}

export interface Materialized {
  readonly view: ConversationView
  readonly revision: number
}

const storageFault = (error: StorageError): HarnessError =>
  new HarnessError({ code: "faulted", message: `This session could not be read: ${error.message}` })

export const openSession = Effect.fn("Harness.open")(function*(
  storage: Storage,
  makeKinds: (session: Session) => ReadonlyArray<RunnableKind>,
  options: OpenOptions
): Effect.fn.Return<Session, StorageError | HarnessError, Scope.Scope> {
  const state = yield* loadSession(storage, options.sessionID)
  const kinds = new Map<string, RunnableKind>()
  const registered = new Map<string, object>()
  const configKeys = new Map<string, string>()
  const waiting = new Set<{ readonly condition: () => boolean; readonly done: Deferred.Deferred<void, HarnessError> }>()
  const ends = new Map<string, Deferred.Deferred<InputRecord, HarnessError>>()
  const loading = Semaphore.makeUnsafe(1)
  const stopped = Deferred.makeUnsafe<HarnessError>()

  const report = (item: HarnessReport): void => options.onReport?.(item)

  const projections: Projections = {
    namespaces: () => extensions.projected(),
    namespace: (id) => {
      const project = extensions.projection(id)
      return project && ((slices) => shown(`the view of the namespace "${id}"`, () => project(slices)))
    },
    task: (task) => {
      const kind = kinds.get(task.kind)
      if (kind?.describe === undefined) return undefined
      const slot = state.conversations.get(task.conversation)?.sticky.slots[task.id]?.data
      const { describe } = kind
      const status = shown(`the description of the task kind "${task.kind}"`, () => describe(task, slot)) ?? null
      return { kind: task.kind, background: task.background, status }
    }
  }

  /** What fails to show now: told once, until it shows again. */
  const failing = new Set<string>()

  /** What a plugin's code shows. It runs behind a stored commit, which must not fail because of it: then nothing is shown. */
  const shown = (what: string, project: () => JsonValue): JsonValue | undefined => {
    let fault: string
    try {
      const projected = toJson(project())
      if (Result.isSuccess(projected)) {
        failing.delete(what)
        return projected.success
      }
      fault = projected.failure.message
    } catch (error) {
      fault = error instanceof Error ? error.message : String(error)
    }
    const message = `Nothing is shown where ${what} failed: ${fault}`
    if (!failing.has(what)) report({ level: "warning", message, conversationID: null })
    failing.add(what)
    return undefined
  }

  const committed = (finished: FinishedTransaction): void => {
    for (const input of finished.batch.inputs) {
      if (input.status !== "done" && input.status !== "unanswered") continue
      const end = ends.get(input.id)
      ends.delete(input.id)
      if (end !== undefined) Deferred.doneUnsafe(end, Effect.succeed(input))
    }
    for (const waiter of waiting) {
      if (!waiter.condition()) continue
      waiting.delete(waiter)
      Deferred.doneUnsafe(waiter.done, Effect.void)
    }
    scheduler.committed(finished.batch.tasks)
  }

  const stopWaiters = (error: HarnessError): void => {
    for (const end of ends.values()) Deferred.doneUnsafe(end, Effect.fail(error))
    for (const waiter of waiting) Deferred.doneUnsafe(waiter.done, Effect.fail(error))
    ends.clear()
    waiting.clear()
  }

  const line = makeLine(storage, state, projections, {
    committed,
    faulted: (error) => {
      const fault = storageFault(error)
      scheduler.halt()
      stopWaiters(fault)
      Deferred.doneUnsafe(stopped, Effect.succeed(fault))
      report({ level: "error", message: fault.message, conversationID: null })
    }
  })

  const conversation = (id: string): Effect.Effect<ConversationState, HarnessError> =>
    Effect.suspend(() => {
      const known = state.conversations.get(id)
      return known !== undefined ? Effect.succeed(known) : loading.withPermit(load(id))
    })

  const load = Effect.fnUntraced(function*(id: string): Effect.fn.Return<ConversationState, HarnessError> {
    const known = state.conversations.get(id)
    if (known !== undefined) return known
    const record = yield* Effect.mapError(storage.conversation(id), storageFault)
    if (record === null) {
      return yield* new HarnessError({
        code: "not_found",
        message: `The session ${options.sessionID} has no conversation "${id}".`
      })
    }
    return yield* enter(record)
  })

  const enter = Effect.fnUntraced(
    function*(record: ConversationRecord): Effect.fn.Return<ConversationState, HarnessError> {
      const loaded = yield* Effect.mapError(loadConversation(storage, record, options.defaults), storageFault)
      state.conversations.set(record.id, loaded)
      return loaded
    }
  )

  const readTranscript = (target: ConversationState): Effect.Effect<Array<EntryRecord>, HarnessError> =>
    Effect.suspend(() =>
      target.transcript !== null
        ? Effect.succeed(target.transcript)
        : Effect.map(Effect.mapError(loadTranscript(storage, target.record), storageFault), (read) =>
          target.transcript = [...read])
    )

  const transcript = (target: ConversationState): Effect.Effect<ReadonlyArray<EntryRecord>, HarnessError> =>
    line.exclusive(readTranscript(target))

  const materialized = (target: ConversationState): Effect.Effect<Materialized, HarnessError> =>
    line.exclusive(Effect.map(readTranscript(target), () => {
      const view = target.view ??= snapshot(state, target, projections)
      return { view, revision: target.revision }
    }))

  const watch = (target: ConversationState): Effect.Effect<Watch, HarnessError, Scope.Scope> =>
    Effect.gen(function*() {
      yield* transcript(target)
      const queue = yield* Queue.dropping<Envelope, HarnessError>(watcherCapacity)
      yield* Effect.addFinalizer(() => {
        target.watchers.delete(queue)
        return Queue.shutdown(queue)
      })
      // Snapshot and subscription are one step of the line: nothing is missed and nothing comes twice.
      return yield* line.exclusive(Effect.sync((): Watch => {
        const view = target.view ??= snapshot(state, target, projections)
        target.watchers.add(queue)
        return { revision: target.revision, view, envelopes: Stream.fromQueue(queue) }
      }))
    })

  const events: Harness["events"] = Effect.gen(function*() {
    const queue = yield* Queue.dropping<SessionEvents, HarnessError>(watcherCapacity)
    yield* Effect.addFinalizer(() => {
      state.listeners.delete(queue)
      return Queue.shutdown(queue)
    })
    yield* line.read(() => state.listeners.add(queue))
    return Stream.fromQueue(queue)
  })

  const inputEnd = (id: string): Effect.Effect<InputRecord, HarnessError> =>
    Effect.flatten(line.read((): Effect.Effect<InputRecord, HarnessError> => {
      if (!state.inputs.has(id)) {
        return Effect.flatMap(Effect.mapError(storage.input(id), storageFault), (record) =>
          record === null
            ? Effect.fail(
              new HarnessError({ code: "not_found", message: `The session ${options.sessionID} has no input "${id}".` })
            )
            : Effect.succeed(record))
      }
      const known = ends.get(id)
      const end = known ?? Deferred.makeUnsafe<InputRecord, HarnessError>()
      if (known === undefined) ends.set(id, end)
      return Deferred.await(end)
    }))

  const until = (condition: () => boolean): Effect.Effect<void, HarnessError> =>
    Effect.flatten(line.read((): Effect.Effect<void, HarnessError> => {
      if (condition()) return Effect.void
      const waiter = { condition, done: Deferred.makeUnsafe<void, HarnessError>() }
      waiting.add(waiter)
      return Effect.ensuring(
        Deferred.await(waiter.done),
        Effect.sync(() => {
          waiting.delete(waiter)
        })
      )
    }))

  // Finalizers run last registered first: invocations end, then the line closes, then waiters are told.
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      line.close,
      Effect.sync(() => {
        stopWaiters(new HarnessError({ code: "closed", message: "This session was closed." }))
      })
    )
  )
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const extensions = makeExtensions(storage, () => line, conversation)
  const scheduler = makeScheduler({ line, kinds, conversation, report, run: (effect) => run(effect) })
  yield* Effect.addFinalizer(() => scheduler.stop)

  const authority: Authority = {
    ...extensions.authority,
    wake: options.wake,
    assertKind: (kind) => {
      if (registered.get(kind.name) !== kind) {
        throw new HarnessError({
          code: "stale_definition",
          message:
            `The task kind "${kind.name}" is not registered, or was registered again; use the object that is registered now.`
        })
      }
    }
  }

  const transaction: Session["transaction"] = (tx, target, mayCreate) =>
    extensionTransaction(tx, target, storage, authority, mayCreate)

  const registerKind = <I>(kind: TaskKind<I>): Effect.Effect<Registration, HarnessError, Scope.Scope> =>
    Effect.suspend(() => {
      if (!isCustomKind(kind)) {
        return Effect.fail(
          new HarnessError({ code: "invalid", message: `The task kind "${kind.name}" was not made by TaskKind.make.` })
        )
      }
      if (kinds.has(kind.name)) {
        return Effect.fail(
          new HarnessError({ code: "duplicate", message: `The task kind "${kind.name}" is registered already.` })
        )
      }
      for (const key of kind.configKeys) {
        const owner = configKeys.get(key)
        if (owner !== undefined) {
          return Effect.fail(
            new HarnessError({
              code: "duplicate",
              message:
                `The setting "${key}" of the task kind "${kind.name}" is the kind "${owner}"'s already; name it otherwise.`
            })
          )
        }
      }
      const runnable = kind.runnable({
        sessionID: options.sessionID,
        transaction: (target) => (tx, mayCreate) => transaction(tx, target, mayCreate),
        points: {
          hooksAt: extensions.hooksAt,
          report,
          released: scheduler.released,
          ...(options.hookLimit === undefined ? {} : { hookLimit: options.hookLimit })
        }
      })
      const unregister = Effect.sync(() => {
        if (kinds.get(kind.name) !== runnable) return
        kinds.delete(kind.name)
        registered.delete(kind.name)
        for (const key of kind.configKeys) configKeys.delete(key)
      })
      return Effect.acquireRelease(
        Effect.sync(() => {
          kinds.set(kind.name, runnable)
          registered.set(kind.name, kind)
          for (const key of kind.configKeys) configKeys.set(key, kind.name)
          line.show({ kind: kind.name })
          scheduler.dispatch()
          return { unregister }
        }),
        () => unregister
      )
    })

  const orphan = line.commit((tx) => {
    for (const task of state.tasks.values()) {
      const target = state.conversations.get(task.conversation)
      if (kinds.has(task.kind) || target === undefined) continue
      tx.putTask(target, { ...task, status: "orphaned" })
      tx.emit(target, { type: "task.ended", id: task.id, kind: task.kind, status: "orphaned" })
    }
  })

  const main = yield* openMain(storage, line, enter)
  const session: Session = {
    storage,
    options,
    line,
    scheduler,
    extensions,
    report,
    main,
    conversation,
    create: (tx, record) => {
      tx.putConversation(record)
      return newConversation(record, options.defaults)
    },
    adopt: (created) => {
      const known = state.conversations.get(created.record.id)
      if (known !== undefined) return known
      state.conversations.set(created.record.id, created)
      return created
    },
    transcript,
    materialized,
    watch,
    events,
    inputEnd,
    until,
    faulted: Deferred.await(stopped),
    registerKind,
    isKindSetting: (key) => configKeys.has(key),
    transaction,
    orphan
  }
  for (const kind of makeKinds(session)) kinds.set(kind.name, kind)
  return session
})

/** The root conversation is `c1`, made by the first open. */
const openMain = Effect.fnUntraced(function*(
  storage: Storage,
  line: CommitLine,
  enter: (record: ConversationRecord) => Effect.Effect<ConversationState, HarnessError>
): Effect.fn.Return<ConversationState, StorageError | HarnessError> {
  const stored = yield* storage.conversation(mainConversation)
  if (stored !== null) return yield* enter(stored)
  const record = yield* line.commit((tx) => {
    const created: ConversationRecord = { id: mainConversation, parent: null, owner: null, createdAt: tx.now }
    line.state.nextID = Math.max(line.state.nextID, 2)
    tx.putConversation(created)
    return created
  })
  return yield* enter(record)
})

/** Name of a session's root conversation. */
export const mainConversation = "c1"
