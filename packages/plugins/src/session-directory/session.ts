/**
 * The projection: what presentations see of the directory, derived by the session host from what its coordinator sends.
 *
 * State comes from state deliveries alone, and events go on under their own cause; neither is read inside the other, since
 * the two can overtake each other. One upstream subscription feeds any number of clients. Owner, folder and workspace stop
 * here. Without a coordinator, or while it is away, the last list stays and every change fails with `unavailable`.
 */
import { type SessionContext, viaUpstream } from "@bezel/core/host"
import { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type PickerEntry, SessionDirectory, SessionPicker, type SessionSummary } from "./contract.ts"

type Context = Pick<
  SessionContext,
  "events" | "location" | "onActivate" | "onSession" | "own" | "provide" | "state" | "upstream"
>

const entryOf = ({ forkedFrom, sessionID, status, title, updatedAt }: SessionSummary): PickerEntry => ({
  sessionID,
  title,
  status,
  updatedAt,
  ...(forkedFrom === undefined ? {} : { forkedFrom })
})

/** The facet for session hosts. */
export const session = Effect.fn("session-directory/session")(function*(ctx: Context) {
  const state = yield* ctx.state(SessionPicker.contract.state.state, { revision: 0, sessions: [], upstream: "none" })
  const happened = yield* ctx.events(SessionPicker.contract.events.happened)
  const directory = yield* Effect.catch(ctx.upstream.use(SessionDirectory), (error) => Effect.succeed(error))
  if (directory instanceof ServiceError) {
    const missing = () => Effect.fail(directory)
    return yield* ctx.provide(SessionPicker, {
      state,
      happened,
      create: missing,
      rename: missing,
      remove: missing,
      refresh: missing
    })
  }

  const { directory: cwd, workspaceID } = ctx.location
  const isVisible = (one: SessionSummary) => one.cwd === cwd && one.workspaceID === workspaceID
  /** A session that the person cannot see is to them one that does not exist. */
  const visible = (sessionID: string) =>
    Effect.suspend(() =>
      state.value.sessions.some((one) => one.sessionID === sessionID)
        ? Effect.void
        : Effect.fail(
          new ServiceError({
            code: "invalid_arguments",
            message: `There is no session ${sessionID.slice(0, 80)} here.`
          })
        )
    )

  yield* ctx.provide(SessionPicker, {
    state,
    happened,
    create: ({ title }) =>
      Effect.map(
        viaUpstream(directory.create({ cwd, workspaceID, ...(title === undefined ? {} : { title }) })),
        entryOf
      ),
    rename: ({ sessionID, title }) =>
      Effect.andThen(visible(sessionID), viaUpstream(directory.rename({ sessionID, title }))),
    remove: ({ sessionID }) => Effect.andThen(visible(sessionID), viaUpstream(directory.remove({ sessionID }))),
    refresh: () => viaUpstream(directory.refresh())
  })

  yield* ctx.onActivate(Effect.gen(function*() {
    yield* Effect.forkScoped(
      directory.state.forEach(({ revision, sessions }) =>
        state.set({ ...state.value, revision, sessions: sessions.filter(isVisible).map(entryOf) })
      )
    )
    yield* Effect.forkScoped(directory.happened.forEach((event) => {
      if (event.type === "deleted") return happened.emit(event)
      return isVisible(event.session)
        ? happened.emit({ type: event.type, session: entryOf(event.session) })
        : Effect.void
    }))
    yield* Effect.forkScoped(
      Stream.runForEach(
        ctx.upstream.connection.changes,
        ({ status }) => state.set({ ...state.value, upstream: status === "connected" ? "connected" : "disconnected" })
      )
    )
  }))

  // How a session is, is said whenever that changes, and again when the coordinator is back.
  yield* ctx.onSession(({ identity: { sessionID }, main }) =>
    Effect.gen(function*() {
      let said: boolean | null = null
      const say = Effect.gen(function*() {
        const busy = yield* main.busy
        if (busy === said) return
        said = busy
        yield* directory.report({ sessionID, status: busy ? "active" : "idle" }).pipe(
          Effect.catch(() =>
            Effect.sync(() => {
              said = null
            })
          )
        )
      })
      const { envelopes } = yield* main.watch
      // What is said is how it is then, so a coordinator that is slow to listen makes nothing pile up.
      const newest = Stream.buffer(envelopes, { capacity: 1, strategy: "sliding" })
      yield* Effect.forkScoped(Effect.ignore(Stream.runForEach(newest, () => say)))
      yield* Effect.forkScoped(Stream.runForEach(ctx.upstream.connection.changes, ({ status }) =>
        Effect.suspend(() => {
          if (status !== "connected") return Effect.void
          said = null
          return say
        })))
    })
  )
})
