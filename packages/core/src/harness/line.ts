/**
 * The commit line of one session: one commit at a time, in order of arrival, each atomic in storage and then in memory.
 *
 * A commit is admitted, builds its transaction synchronously, is stored, and only then changes what anybody can see: memory,
 * the views, the watchers, the scheduler. A builder that throws leaves no trace. A storage failure leaves the outcome
 * unknown, so the line stops (`faulted`) and reopening recovers. A caller interrupted before its commit is admitted
 * discards it; afterwards the commit is not torn.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { DraftRevoked } from "../json/index.ts"
import type { Storage, StorageError, TaskRecord } from "../storage/index.ts"
import { HarnessError } from "./api.ts"
import { appendTranscript, applyToView, envelopeOf, type Projected, type Projections, shownNow } from "./projection.ts"
import type { ConversationState, SessionState } from "./state.ts"
import { type FinishedTransaction, Transaction } from "./transaction.ts"
import type { Envelope } from "./view.ts"

/** Set while a fiber builds a commit, so that entering the line again fails at once instead of waiting for itself. */
const Committing = Context.Reference<boolean>("@bezel/core/harness/Committing", { defaultValue: () => false })

export interface CommitLine {
  readonly state: SessionState
  /** Runs `build` in one commit. `HarnessError`s that it throws are the failure of the commit. */
  readonly commit: <A>(build: (tx: Transaction) => A) => Effect.Effect<A, HarnessError>
  /**
   * The same for a builder that is an effect, which may read storage and nothing else that waits: it has `buildLimit`, for
   * it holds the line. Interrupting it before it has ended leaves no trace.
   */
  readonly commitEffect: <A, E>(build: (tx: Transaction) => Effect.Effect<A, E>) => Effect.Effect<A, E | HarnessError>
  /** Runs a read beside no commit: what it sees is one revision. */
  readonly read: <A>(read: () => A) => Effect.Effect<A, HarnessError>
  /** Runs an effect while no commit runs. It may not commit. */
  readonly exclusive: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | HarnessError>
  /** What has just been registered shows in the views that are followed, of which it was missing. */
  readonly show: (what: Projected) => void
  readonly close: Effect.Effect<void>
}

export interface LineObserver {
  /** After each commit, in order, outside the builder, with the tasks that it wrote. */
  readonly committed: (finished: FinishedTransaction) => void
  /** Once, when storage fails. */
  readonly faulted: (error: StorageError) => void
}

/** How many envelopes a watcher may be behind before it is cut off (it then takes a fresh snapshot). */
export const watcherCapacity = 4_096

export const makeLine = (
  storage: Pick<Storage, "commit">,
  state: SessionState,
  projections: Projections,
  observer: LineObserver
): CommitLine => {
  const permits = Semaphore.makeUnsafe(1)
  let stopped: HarnessError | null = null

  const admit = <A, E>(body: Effect.Effect<A, E>): Effect.Effect<A, E | HarnessError> =>
    Effect.flatMap(Committing, (committing) =>
      committing
        ? Effect.fail(
          new HarnessError({
            code: "nested_commit",
            message:
              "A commit was started inside another commit of the same session; finish the first one, then commit."
          })
        )
        : permits.withPermit(
          Effect.suspend((): Effect.Effect<A, E | HarnessError> => stopped === null ? body : Effect.fail(stopped))
        ))

  const commit = <A>(build: (tx: Transaction) => A): Effect.Effect<A, HarnessError> =>
    admit(Effect.uninterruptible(Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const tx = new Transaction(state, now)
      let result: A
      try {
        result = build(tx)
      } catch (error) {
        tx.discard()
        return rejected(error)
      }
      return store(tx, result)
    })))

  const commitEffect = <A, E>(build: (tx: Transaction) => Effect.Effect<A, E>): Effect.Effect<A, E | HarnessError> =>
    admit(Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const tx = new Transaction(state, now)
        const built = Effect.suspend(() => build(tx)).pipe(
          Effect.provideService(Committing, true),
          Effect.timeoutOrElse({ duration: buildLimit, orElse: () => Effect.fail(tooLong) })
        )
        return Effect.matchCauseEffect(restore(built), {
          onFailure: (cause) => {
            tx.discard()
            const defect = Cause.findDefect(cause)
            return Result.isSuccess(defect) ? rejected(defect.success) : Effect.failCause(cause)
          },
          onSuccess: (result) => store(tx, result)
        })
      })
    ))

  const store = <A>(tx: Transaction, result: A): Effect.Effect<A, HarnessError> => {
    if (tx.poisoned !== null) {
      tx.discard()
      return Effect.fail(tx.poisoned)
    }
    const finished = tx.finish()
    if (finished.isEmpty) return Effect.succeed(result)
    return Effect.matchEffect(storage.commit(finished.batch), {
      onFailure: (error) => {
        stopped = new HarnessError({
          code: "faulted",
          message: `This session stopped because its storage failed: ${
            error.message.replace(/\.?$/, ".")
          } Reopen it to go on from the last stored commit.`
        })
        failWatchers(stopped)
        observer.faulted(error)
        return Effect.fail(stopped)
      },
      onSuccess: () => {
        applyToMemory(state, finished)
        publish(state, finished, projections)
        observer.committed(finished)
        return Effect.succeed(result)
      }
    })
  }

  const failWatchers = (error: HarnessError): void => {
    for (const conversation of state.conversations.values()) {
      for (const watcher of conversation.watchers) Queue.failCauseUnsafe(watcher, Cause.fail(error))
      conversation.watchers.clear()
    }
    for (const listener of state.listeners) Queue.failCauseUnsafe(listener, Cause.fail(error))
    state.listeners.clear()
  }

  return {
    state,
    commit,
    commitEffect,
    read: (read) => admit(Effect.sync(read)),
    exclusive: (effect) => admit(Effect.provideService(effect, Committing, true)),
    show: (what) => {
      for (const conversation of state.conversations.values()) {
        const operations = shownNow(state, conversation, projections, what)
        if (operations.length > 0) deliver(conversation, { operations, events: [] })
      }
    },
    close: permits.withPermit(Effect.sync(() => {
      stopped ??= new HarnessError({ code: "closed", message: "This session is closed; open it again to go on." })
      failWatchers(stopped)
    }))
  }
}

const tooSlow = new HarnessError({
  code: "closed",
  message: "This watcher fell too far behind and was cut off; watch again for a fresh snapshot."
})

/** How long an effect may build one commit. */
const buildLimit = "5 seconds"

const tooLong = new HarnessError({
  code: "invalid",
  message:
    "A commit took longer than 5 seconds to build and was discarded; do what waits before the commit, not inside it."
})

const rejected = (error: unknown): Effect.Effect<never, HarnessError> => {
  if (error instanceof HarnessError) return Effect.fail(error)
  if (error instanceof DraftRevoked) {
    return Effect.fail(new HarnessError({ code: "draft_revoked", message: error.message }))
  }
  return Effect.die(error)
}

const isLive = (task: TaskRecord): boolean => task.status === "pending" || task.status === "running"

const applyToMemory = (state: SessionState, finished: FinishedTransaction): void => {
  if (finished.session !== null) {
    state.session = finished.session.value
    state.storedSession = true
  }
  for (const task of finished.batch.tasks) {
    if (isLive(task)) state.tasks.set(task.id, task)
    else state.tasks.delete(task.id)
  }
  for (const input of finished.batch.inputs) {
    if (input.status === "queued" || input.status === "placed") state.inputs.set(input.id, input)
    else state.inputs.delete(input.id)
  }
  for (const record of finished.batch.conversations) {
    const known = state.conversations.get(record.id)
    if (known !== undefined) known.record = record
  }
  for (const change of finished.changes) {
    const { conversation } = change
    if (change.sticky !== null) {
      conversation.sticky = change.sticky.value
      conversation.storedSticky = true
    }
    if (change.rewindable !== null) {
      conversation.rewindable = change.rewindable.value
      conversation.storedRewindable = true
    }
    if (conversation.transcript !== null) {
      const continued = change.continues === undefined ? conversation.transcript : [...change.continues]
      conversation.transcript = appendTranscript(continued, change.entries)
    }
  }
}

const publish = (state: SessionState, finished: FinishedTransaction, projections: Projections): void => {
  const sessionOperations = finished.session?.operations ?? []
  const published = new Set<ConversationState>()
  for (const change of finished.changes) {
    published.add(change.conversation)
    deliver(change.conversation, envelopeOf(state, change, sessionOperations, projections))
    if (change.events.length > 0) {
      offer(state.listeners, { conversation: change.conversation.record.id, events: change.events })
    }
  }
  if (sessionOperations.length === 0) return
  // A session-wide slice shows in every conversation, also in those that this commit did not touch.
  for (const conversation of state.conversations.values()) {
    if (published.has(conversation)) continue
    const change = { conversation, entries: [], events: [], sticky: null, rewindable: null, tasks: [] }
    const envelope = envelopeOf(state, change, sessionOperations, projections)
    if (envelope.operations.length > 0) deliver(conversation, envelope)
  }
}

const deliver = (conversation: ConversationState, envelope: Omit<Envelope, "revision">): void => {
  conversation.revision += 1
  if (conversation.view === null) return
  if (conversation.watchers.size === 0) {
    conversation.view = null
    return
  }
  conversation.view = applyToView(conversation.view, envelope.operations)
  const numbered: Envelope = { revision: conversation.revision, ...envelope }
  offer(conversation.watchers, numbered)
}

/** Gives each of them what has happened, and cuts off who has no more room. */
const offer = <A>(queues: Set<Queue.Queue<A, HarnessError>>, what: A): void => {
  for (const queue of queues) {
    if (Queue.offerUnsafe(queue, what)) continue
    queues.delete(queue)
    Queue.failCauseUnsafe(queue, Cause.fail(tooSlow))
  }
}
