/**
 * One session as the API holds it: a client of its host, shared by all who call or follow the session here.
 *
 * It is opened by the first who needs it and kept while anybody does, while the session asks something that only clients here
 * may answer, and a while longer. Followers are woken by what happens and read for themselves, each at its own pace: nothing
 * is queued for them.
 */
import { mainConversation } from "@bezel/core/harness"
import { Conversation, conversationKey } from "@bezel/core/host"
import { type Keyed, makeKeyed } from "@bezel/core/location"
import type { ConnectionShape, RequestAnswers } from "@bezel/core/rpc"
import { type Facade, ServiceError } from "@bezel/core/service"
import type { EntryRecord, HistoryItem, StorageError } from "@bezel/core/storage"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as RcRef from "effect/RcRef"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { whenConnected } from "../host-processes.ts"
import type { FleetShape } from "../serve/fleet.ts"
import { type CommitLog, makeCommitLog } from "./commit-log.ts"
import {
  type InteractionChange,
  makeOpenRequests,
  makeSettled,
  type OpenRequests,
  type Settled
} from "./interactions.ts"
import { keptReader } from "./kept-reader.ts"

export interface SessionHub {
  readonly sessionID: string
  readonly connection: ConnectionShape
  /** Has the session's work run from now on; to look at it and to follow it starts nothing. */
  readonly work: Effect.Effect<void, ServiceError>
  readonly main: Facade<Conversation>
  readonly conversation: (id: string) => Effect.Effect<Facade<Conversation>, never, Scope.Scope>
  /** The newest durable commits, kept while somebody follows. */
  readonly commits: CommitLog
  /** Number of the newest commit; 0 for a session that nobody has written yet. */
  readonly newest: Effect.Effect<number, StorageError>
  /** Commits with events after a sequence, oldest first, from where they are stored. */
  readonly history: (after: number, limit: number) => Effect.Effect<ReadonlyArray<HistoryItem>, StorageError>
  readonly entry: (id: string) => Effect.Effect<EntryRecord | null, StorageError>
  readonly requests: OpenRequests
  /**
   * Whoever follows what happens or looks at what is open is somebody who can be asked, for the length of the scope and as
   * long as anything is open after it; whoever only gives a prompt and waits is not. Completes when what is open is known.
   */
  readonly attend: Effect.Effect<RequestAnswers, never, Scope.Scope>
  /** The input that was accepted here last, or `null`: what waits for the session waits for it first. */
  readonly newestInput: () => string | null
  readonly accepted: (inputID: string) => void
  /** Completes when the session is to be deleted: whoever follows it leaves. */
  readonly over: Effect.Effect<void>
  /** Calls back at each change of anything, until the returned function is called. */
  readonly follow: (wake: (change: InteractionChange | null) => void) => () => void
}

export interface SessionHubs {
  readonly get: (sessionID: string) => Effect.Effect<SessionHub, ServiceError | StorageError, Scope.Scope>
  /** Deletes a session: those who follow it leave, and nobody comes back to it meanwhile. */
  readonly removing: <A, E>(sessionID: string, remove: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly settled: Settled
  /** How many are open. */
  readonly size: () => number
}

/** How long one stays after its last user. While it does, the session is open, and cannot be deleted. */
const idleTime = "100 millis"

/** Sessions whose newest input is remembered. */
const remembered = 1_000

/** Commits that are read at a time; a single one may be large. */
const batch = 50

export const makeSessionHubs = (fleet: FleetShape): Effect.Effect<SessionHubs, never, Scope.Scope> =>
  Effect.gen(function*() {
    const settled = makeSettled()
    const endings = new Map<string, Deferred.Deferred<void>>()
    /** What each session accepted last. It outlives the hub: who waits may come when that has just been closed. */
    const inputs = new Map<string, string>()

    const make = (sessionID: string): Effect.Effect<SessionHub, ServiceError | StorageError, Scope.Scope> =>
      Effect.gen(function*() {
        const connection = yield* fleet.attached(sessionID)
        const conversation = (id: string) => connection.use(Conversation, { key: conversationKey(sessionID, id) })
        const main = yield* conversation(mainConversation)
        const reader = yield* keptReader(fleet.files, sessionID)
        const newest = reader.read(0, (storage) => storage.sequence)
        const history: SessionHub["history"] = (after, limit) =>
          reader.read<ReadonlyArray<HistoryItem>>([], (storage) => storage.history(after, limit))
        const commits = makeCommitLog(yield* newest)
        const followers = new Set<(change: InteractionChange | null) => void>()
        const tell = (change: InteractionChange | null) => {
          for (const wake of followers) wake(change)
        }

        // While something is asked, how it ends must be known to those who answer late: what holds the hub then is the question.
        const asked = Latch.makeUnsafe(false)
        const quiet = Latch.makeUnsafe(true)
        const requests = makeOpenRequests(settled, (change) => {
          const isAsked = requests.list().length > 0
          if (isAsked) asked.openUnsafe()
          else asked.closeUnsafe()
          if (isAsked) quiet.closeUnsafe()
          else quiet.openUnsafe()
          tell(change)
        })
        const attending = yield* RcRef.make({
          acquire: connection.interactions.handOn(requests.port),
          idleTimeToLive: idleTime
        })
        const attend = RcRef.get(attending)
        const untilQuiet = Effect.scoped(
          Effect.andThen(Effect.andThen(attend, Effect.ignore(hubs.get(sessionID))), quiet.await)
        )
        const over = Deferred.makeUnsafe<void>()
        yield* Effect.forkScoped(
          Effect.raceFirst(Effect.forever(Effect.andThen(asked.await, untilQuiet)), Deferred.await(over))
        )

        // Durable events are read where they are stored, when a conversation says that there are new ones.
        const more = Latch.makeUnsafe(false)
        const read = Effect.gen(function*() {
          yield* more.await
          more.closeUnsafe()
          for (;;) {
            if (followers.size === 0) break
            const items = yield* history(commits.last(), batch)
            commits.append(items)
            if (items.length > 0) tell(null)
            if (items.length < batch) break
          }
        }).pipe(
          Effect.catch((error) => Effect.logWarning(`Events of session ${sessionID} cannot be read: ${error.message}`))
        )
        yield* Effect.forkScoped(Effect.forever(read))
        yield* connection.observe(Conversation, (instance) =>
          Stream.runForEach(
            Stream.merge(Stream.map(instance.happened, () => null), Stream.map(instance.view.statuses, () => null)),
            () => Effect.sync(() => more.openUnsafe())
          ))
        yield* Effect.forkScoped(Stream.runForEach(main.view.changes, () => Effect.sync(() => tell(null))))

        yield* Effect.acquireRelease(
          Effect.sync(() => endings.set(sessionID, over)),
          () => Effect.sync(() => endings.delete(sessionID))
        )
        // Once is enough: the connection has it go on after a loss.
        let works = false
        const start = Effect.scoped(fleet.working(sessionID)).pipe(
          Effect.andThen(Effect.sync(() => {
            works = true
          }))
        )
        return {
          sessionID,
          connection,
          work: Effect.suspend(() => works ? Effect.void : start),
          newestInput: () => inputs.get(sessionID) ?? null,
          accepted: (inputID) => {
            inputs.delete(sessionID)
            inputs.set(sessionID, inputID)
            for (const oldest of inputs.keys()) {
              if (inputs.size <= remembered) break
              inputs.delete(oldest)
            }
          },
          over: Deferred.await(over),
          main,
          conversation,
          commits,
          requests,
          attend,
          newest,
          history,
          entry: (id) => reader.read<EntryRecord | null>(null, (storage) => storage.entry(id)),
          follow: (wake) => {
            followers.add(wake)
            // Nothing was read while nobody followed.
            more.openUnsafe()
            return () => {
              followers.delete(wake)
            }
          }
        }
      })

    const hubs: Keyed<string, SessionHub, ServiceError | StorageError> = yield* makeKeyed({ make, idleTime })
    // One that is kept may be of a host that has gone meanwhile and is being started again.
    const removed = new Map<string, number>()
    const get: SessionHubs["get"] = (sessionID) =>
      Effect.suspend(() =>
        removed.has(sessionID)
          ? Effect.fail(
            new ServiceError({ code: "unavailable", message: `The session ${sessionID} is being deleted.` })
          )
          : Effect.tap(hubs.get(sessionID), ({ connection }) => whenConnected(connection))
      )
    const count = (sessionID: string, change: number) => {
      const now = (removed.get(sessionID) ?? 0) + change
      if (now === 0) removed.delete(sessionID)
      else removed.set(sessionID, now)
    }
    /** One that is asked may be kept by its own question, and one that was just used for a moment. */
    const letGo = (sessionID: string) =>
      Effect.gen(function*() {
        const over = endings.get(sessionID)
        if (over !== undefined) Deferred.doneUnsafe(over, Effect.void)
        yield* hubs.closeIdle(sessionID)
      })
    return {
      get,
      removing: (sessionID, remove) =>
        Effect.acquireUseRelease(
          Effect.sync(() => count(sessionID, 1)),
          () =>
            Effect.raceFirst(
              remove,
              Effect.forever(Effect.andThen(letGo(sessionID), Effect.sleep("20 millis")))
            ),
          () => Effect.sync(() => count(sessionID, -1))
        ),
      settled,
      size: () => endings.size
    }
  })
