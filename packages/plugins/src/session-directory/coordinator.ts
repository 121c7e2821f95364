/**
 * The directory's authority: the records of the fleet as replicated state, and the few changes that a session host may ask
 * for, each checked against the identity that the transport has found.
 *
 * What a session is called and when it was last active comes from the records; how a running one is comes from its host.
 */
import { type CoordinatorContext, type HostIdentity, isSameLocation, requireHost, requireLease } from "@bezel/core/host"
import { ServiceError } from "@bezel/core/service"
import type { SessionRecord } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { userInfo } from "node:os"
import {
  type DirectoryEvent,
  type ListedStatus,
  SessionDirectory,
  SessionDirectoryOptions,
  type SessionSummary
} from "./contract.ts"

type Context = Pick<CoordinatorContext, "options" | "fleet" | "provide" | "state" | "events" | "onActivate">

/** The plugin's options are not what it takes. */
export class SessionDirectoryOptionsError
  extends Schema.TaggedError<SessionDirectoryOptionsError>()("SessionDirectoryOptionsError", {
    message: Schema.String
  })
{}

const ownerName = (): string => {
  try {
    return userInfo().username
  } catch {
    // A user without an entry in the system's table has a number only.
    return String(process.getuid?.() ?? "")
  }
}

/** What a caller is told of a failure of the records: what it asked for wrongly, or that they cannot be used now. */
const refused = (error: { readonly _tag: string; readonly message: string }): ServiceError => {
  if (error instanceof ServiceError) return error
  if (error._tag === "UnknownSession") {
    return new ServiceError({ code: "unauthorized", message: "This host has no session of that id." })
  }
  return new ServiceError({
    code: "unavailable",
    message: error._tag === "SessionInUse"
      ? "The session is in use; close it first."
      : "The records of sessions cannot be used at the moment."
  })
}

const summaryOf = (record: SessionRecord, owner: string, status: ListedStatus): SessionSummary => ({
  sessionID: record.id,
  title: record.title,
  status,
  updatedAt: record.updatedAt,
  ...(record.forkedFrom === undefined ? {} : { forkedFrom: record.forkedFrom }),
  owner,
  cwd: record.location.directory,
  workspaceID: record.location.workspaceID
})

/** The facet for coordinators. */
export const coordinator = Effect.fn("session-directory/coordinator")(function*(ctx: Context) {
  const { limit = 500 } = yield* Effect.mapError(
    Schema.decodeUnknownEffect(SessionDirectoryOptions, { onExcessProperty: "error" })(ctx.options ?? {}),
    (error) =>
      new SessionDirectoryOptionsError({
        message: `The options of the session directory are not valid: ${error.message}`
      })
  )
  const { processes, records } = ctx.fleet
  const owner = ownerName()
  const state = yield* ctx.state(SessionDirectory.contract.state.state, { revision: 0, sessions: [] })
  const happened = yield* ctx.events(SessionDirectory.contract.events.happened)
  /** How the sessions of running hosts are, as those have said. */
  const reported = new Map<string, "active" | "idle">()
  // One change at a time: what a change is made from must be what it replaces.
  const line = yield* Semaphore.make(1)

  const summary = (record: SessionRecord) => summaryOf(record, owner, reported.get(record.id) ?? record.status)

  const apply = (sessions: ReadonlyArray<SessionSummary>, event: DirectoryEvent | null) =>
    Effect.andThen(
      state.set({ revision: state.value.revision + 1, sessions: sessions.slice(0, limit) }),
      event === null ? Effect.void : happened.emit(event)
    )

  const others = (sessionID: string) => state.value.sessions.filter((session) => session.sessionID !== sessionID)

  const changed = (record: SessionRecord) =>
    Effect.suspend(() => {
      const session = summary(record)
      const known = state.value.sessions.find(({ sessionID }) => sessionID === record.id)
      // A child of another session is listed nowhere.
      if (known === undefined) {
        return record.parentID === null
          ? apply([session, ...others(record.id)], { type: "changed", session })
          : Effect.void
      }
      const sessions = session.updatedAt > known.updatedAt
        ? [session, ...others(record.id)]
        : state.value.sessions.map((one) => one === known ? session : one)
      return apply(sessions, { type: "changed", session })
    })

  const read = Effect.gen(function*() {
    const { sessions } = yield* Effect.mapError(records.list({ parentID: null, archived: false, limit }), refused)
    yield* apply(sessions.map(summary), null)
  }).pipe(line.withPermits(1))

  /** The session, if the calling host has it; what exists elsewhere and what does not exist look the same. */
  const leased = (sessionID: string) =>
    Effect.gen(function*() {
      const host: HostIdentity = yield* requireHost
      const record = yield* records.get(sessionID).pipe(
        Effect.catchTag("UnknownSession", () => Effect.succeed(null)),
        Effect.mapError(refused)
      )
      yield* requireLease(record)
      return { host, record }
    })

  yield* ctx.provide(SessionDirectory, {
    state,
    happened,
    create: ({ cwd, title, workspaceID }) =>
      Effect.gen(function*() {
        const host = yield* requireHost
        const location = { directory: cwd, workspaceID }
        if (!isSameLocation(host.location, location)) {
          return yield* new ServiceError({
            code: "unauthorized",
            message: "A session host can create sessions in its own workspace only."
          })
        }
        const record = yield* Effect.mapError(
          records.create({ location, ...(title === undefined ? {} : { title }) }),
          refused
        )
        yield* Effect.onError(processes.start(record.id), () => Effect.ignore(records.remove(record.id)))
        const session = summary(record)
        yield* line.withPermits(1)(
          Effect.suspend(() => apply([session, ...others(record.id)], { type: "created", session }))
        )
        return session
      }).pipe(Effect.withSpan("SessionDirectory.create")),
    rename: ({ sessionID, title }) =>
      Effect.gen(function*() {
        yield* leased(sessionID)
        const record = yield* Effect.mapError(records.rename(sessionID, title), refused)
        yield* line.withPermits(1)(changed(record))
      }),
    remove: ({ sessionID }) =>
      Effect.gen(function*() {
        yield* leased(sessionID)
        yield* processes.stop(sessionID)
        yield* Effect.mapError(records.remove(sessionID), refused)
        reported.delete(sessionID)
        yield* line.withPermits(1)(Effect.suspend(() => apply(others(sessionID), { type: "deleted", sessionID })))
      }).pipe(Effect.withSpan("SessionDirectory.remove")),
    report: ({ sessionID, status }) =>
      Effect.gen(function*() {
        const { record } = yield* leased(sessionID)
        reported.set(sessionID, status)
        if (record !== null) yield* line.withPermits(1)(changed(record))
      }),
    refresh: () => Effect.andThen(requireHost, read)
  })

  yield* ctx.onActivate(Effect.gen(function*() {
    // Nothing of it is worth keeping the coordinator from starting; whoever asks for a refresh is told.
    yield* Effect.catch(read, (error) => Effect.logWarning(`The session directory is empty for now: ${error.message}`))
    yield* Effect.forkScoped(Stream.runForEach(processes.changes, (host) =>
      Effect.suspend(() => {
        if (host.state === "running" || host.state === "starting") return Effect.void
        const isOf = (session: SessionSummary) =>
          host.sessionID === null
            ? isSameLocation({ directory: session.cwd, workspaceID: session.workspaceID }, host.location)
            : host.sessionID === session.sessionID
        // What a host has said of its sessions ends with it.
        const ended = state.value.sessions.filter((session) => isOf(session) && reported.has(session.sessionID))
        for (const session of ended) reported.delete(session.sessionID)
        const status = host.state === "failed" || host.state === "waiting" ? "failed" : "closed"
        return Effect.forEach(ended, (session) => {
          const next: SessionSummary = { ...session, status }
          return apply(state.value.sessions.map((one) => one.sessionID === next.sessionID ? next : one), {
            type: "changed",
            session: next
          })
        }, { discard: true })
      }).pipe(line.withPermits(1))))
  }))
})
