/** The sessions of a place in the terminal: `/sessions` shows another one, `/new` begins one, `/rename` names one. It knows of no coordinator. */
import type { TuiContext } from "@bezel/tui"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type PickerEntry, SessionPicker } from "./contract.ts"
import { forkTree, searchSessions } from "./tree.ts"

const minute = 60_000

/** How long ago, in the largest unit that fits. */
const ago = (millis: number): string => {
  if (millis < minute) return "just now"
  if (millis < 60 * minute) return `${Math.floor(millis / minute)} min ago`
  if (millis < 24 * 60 * minute) return `${Math.floor(millis / (60 * minute))} h ago`
  return `${Math.floor(millis / (24 * 60 * minute))} d ago`
}

const labelOf = ({ sessionID, title }: PickerEntry): string =>
  title.trim() === "" ? `untitled, ${sessionID}` : title.replace(/\s+/g, " ")

const descriptionOf = (entry: PickerEntry, current: string | null, now: number): string =>
  [
    ...(entry.sessionID === current ? ["this one"] : []),
    ...(entry.status === "active" || entry.status === "failed" ? [entry.status] : []),
    ago(now - entry.updatedAt)
  ].join(", ")

/** The terminal facet. */
export const tui = Effect.fn("session-directory/tui")(function*(ctx: TuiContext) {
  const opened = yield* Effect.cached(ctx.use(SessionPicker))

  yield* ctx.commands.register("session.choose", {
    slash: "sessions",
    argument: "[WORDS]",
    description: "Show another session of this folder; WORDS of its title narrow the list",
    run: (words) =>
      Effect.gen(function*() {
        const picker = yield* opened
        yield* picker.ready
        const { revision = 0 } = picker.state.value ?? {}
        // What a refresh has found comes beside its answer. A list that cannot be renewed is still a list.
        yield* picker.refresh().pipe(
          Effect.andThen(Stream.runHead(Stream.filter(picker.state.changes, (state) => state.revision > revision))),
          Effect.timeout("1 second"),
          Effect.ignore
        )
        const known = picker.state.value
        if (known === undefined || known.sessions.length === 0) {
          return yield* ctx.ui.notify(
            known?.upstream === "none"
              ? "Other sessions are not known here: this host has no coordinator."
              : "There are no sessions here yet.",
            "warning"
          )
        }
        const found = searchSessions(known.sessions, words)
        if (found.length === 0) return yield* ctx.ui.notify(`No session here is called anything like ${words}.`)
        const current = (yield* ctx.session.current)?.sessionID ?? null
        const now = yield* Clock.currentTimeMillis
        const sessionID = yield* ctx.ui.select({
          title: known.upstream === "connected"
            ? "Sessions"
            : "Sessions, as they were before the coordinator went away",
          options: forkTree(found).map(({ depth, entry }) => ({
            value: entry.sessionID,
            label: depth === 0 ? labelOf(entry) : `${"  ".repeat(Math.min(depth, 8) - 1)}└ ${labelOf(entry)}`,
            description: descriptionOf(entry, current, now)
          }))
        })
        if (sessionID !== null && sessionID !== current) yield* ctx.session.select(sessionID)
      })
  })

  yield* ctx.commands.register("session.rename", {
    slash: "rename",
    argument: "TITLE",
    description: "Give this session another title",
    run: (given) =>
      Effect.gen(function*() {
        const current = yield* ctx.session.current
        if (current === null) return yield* ctx.ui.notify("No session is attached.", "warning")
        const title = given === "" ? yield* ctx.ui.input({ title: "What is this session called?" }) : given
        if (title === null || title.trim() === "") return
        const picker = yield* opened
        yield* picker.rename({ sessionID: current.sessionID, title: title.trim() })
        yield* ctx.ui.notify(`This session is called ${title.trim()} now.`)
      })
  })

  yield* ctx.commands.register("session.new", {
    slash: "new",
    argument: "[TITLE]",
    description: "Begin a new session",
    run: (title) =>
      Effect.gen(function*() {
        const picker = yield* opened
        const { sessionID } = yield* picker.create(title === "" ? {} : { title })
        yield* ctx.session.select(sessionID)
      })
  })
})
