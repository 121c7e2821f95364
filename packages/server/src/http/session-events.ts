/**
 * The event stream of one session.
 *
 *     start ──▶ ready, or gap ──▶ commits and live text, as they come and as fast as the client reads ──▶ client gone
 *
 * Durable events carry the sequence of their commit as id, at the last event of the commit, so that resuming never skips part
 * of one. A client that comes back gets everything after its id; where that is too much, or its id is none of this session,
 * one `gap`, and it reads the session anew. A client that reads slowly delays itself alone: it is asked where it is, and gets
 * what is new since then. Deleting the session ends the stream.
 */
import type { HistoryItem } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { comment, frame, heartbeat, writeAll } from "./event-frames.ts"
import { toFailure } from "./failure.ts"
import { EventStream, type Write } from "./handler.ts"
import type { InteractionChange } from "./interactions.ts"
import { type LiveText, makeLiveText } from "./live-text.ts"
import type { SessionHub } from "./session-hub.ts"
import { timeOf } from "./shapes.ts"

/** Commits that a client may be behind; beyond, reading the session anew is quicker. */
export const mostBehind = 5_000

/** Changes of interactions that wait for a client; one that is further behind gets a gap. */
const mostInteractions = 256

/** Commits that are read at a time; a single one may be large. */
const batch = 20

/** Between two looks at a text that grows, so that many small pieces are one frame. */
const pause = "40 millis"

const asObject = (event: unknown): { readonly [key: string]: unknown } =>
  typeof event === "object" && event !== null ? event as { readonly [key: string]: unknown } : {}

const commitFrames = ({ at, events, sequence }: HistoryItem): ReadonlyArray<string> => {
  const last = events.length - 1
  return events.map((value, index) => {
    const event = asObject(value)
    const type = typeof event.type === "string" ? event.type : "event"
    return frame(type, { ...event, type, sequence, at: timeOf(at) }, index === last ? `${sequence}` : undefined)
  })
}

/**
 * The rest of the answers that a commit finishes: what came with it and in no frame before. The view may be behind the
 * commit, so an entry that it does not show yet is read where it is stored.
 */
const restOf = (hub: SessionHub, live: LiveText, { events }: HistoryItem) =>
  Effect.gen(function*() {
    const frames: Array<string> = []
    for (const event of events.map(asObject)) {
      const { entry: id, task, type } = event
      if (type !== "generation.completed" || typeof id !== "string" || typeof task !== "string") continue
      const entry = hub.main.view.value?.entries.findLast((candidate) => candidate.id === id) ??
        (yield* hub.entry(id))
      for (const delta of entry === null ? [] : live.finish(task, entry)) frames.push(frame("delta", delta))
    }
    return frames
  })

const interactionFrame = (change: InteractionChange): string =>
  change.type === "interaction.opened"
    ? frame(change.type, {
      type: change.type,
      id: change.offer.id,
      interaction: change.offer.interaction,
      sessionID: change.offer.session
    })
    : frame(change.type, { type: change.type, id: change.id, outcome: change.outcome })

/** `place` is the id that the client has seen last, or `null` for what comes from now on. */
export const sessionEvents = (hub: SessionHub, place: string | null): EventStream =>
  new EventStream({
    run: (write) =>
      follow(hub, place, write).pipe(
        Effect.raceFirst(hub.over),
        Effect.catch((error) => write(frame("error", toFailure(error).body)))
      )
  })

const follow = (hub: SessionHub, place: string | null, write: Write) =>
  Effect.gen(function*() {
    yield* hub.attend
    const changed = Latch.makeUnsafe(true)
    let interactions: Array<InteractionChange> = hub.requests.list().map((offer) => ({
      type: "interaction.opened",
      offer
    }))
    let isMissing = false
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        hub.follow((change) => {
          if (change !== null) {
            if (interactions.length < mostInteractions) interactions.push(change)
            else isMissing = true
          }
          changed.openUnsafe()
        })
      ),
      (unfollow) => Effect.sync(unfollow)
    )

    const newest = yield* hub.newest
    const wanted = place === null ? newest : /^\d{1,15}$/.test(place) ? Number(place) : null
    const isGood = wanted !== null && wanted <= newest && newest - wanted <= mostBehind
    let at = isGood ? wanted : newest
    const gap = () => frame("gap", { type: "gap", sequence: at }, `${at}`)
    yield* write(isGood ? frame("ready", { type: "ready", sequence: at }, `${at}`) : gap())

    const live = makeLiveText()
    const commits = Effect.gen(function*() {
      for (;;) {
        if (hub.commits.last() - at > mostBehind) {
          at = hub.commits.last()
          yield* write(gap())
        }
        // Those that are not kept any more are where they are stored; each batch is read when the one before was sent.
        const items: ReadonlyArray<HistoryItem> = hub.commits.after(at) ??
          (yield* hub.history(at, batch))
        if (items.length === 0) return
        for (const item of items) {
          // What was finished before this client came is no news to complete.
          const rest = item.sequence > newest ? yield* restOf(hub, live, item) : []
          at = item.sequence
          yield* writeAll(write, [...rest, ...commitFrames(item)])
        }
      }
    })
    const lives = Effect.suspend(() => {
      const view = hub.main.view.value
      const told = interactions
      interactions = []
      const grown = view === undefined ? [] : live.advance(view).map((event) => frame(event.type, event))
      const frames = [...told.map(interactionFrame), ...grown]
      if (isMissing) {
        isMissing = false
        frames.push(gap())
      }
      const written = writeAll(write, frames)
      return grown.length === 0 ? written : Effect.andThen(written, Effect.sleep(pause))
    })

    for (;;) {
      const isNews = yield* Effect.timeoutOption(changed.await, heartbeat)
      changed.closeUnsafe()
      if (isNews._tag === "None") yield* write(comment)
      yield* commits
      yield* lives
    }
  })
