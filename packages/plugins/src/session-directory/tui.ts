/**
 * The sessions of a place in the terminal: `/sessions` shows another one, or names or removes it, `/new` begins one,
 * `/rename` names the one that is shown. It knows of no coordinator.
 */
import { text, type TuiContext } from "@bezel/tui"
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

/** What is done with a session of the list. */
interface Choice {
  readonly what: "show" | "rename" | "remove"
  readonly sessionID: string
}

/** The terminal facet. */
export const tui = Effect.fn("session-directory/tui")(function*(ctx: TuiContext) {
  const opened = yield* Effect.cached(ctx.use(SessionPicker))

  yield* ctx.commands.register("session.choose", {
    slash: "sessions",
    argument: "[WORDS]",
    description: "Show, rename or remove a session of this folder; WORDS of its title narrow the list",
    run: (words) => choose(words)
  })

  const choose = (words: string): Effect.Effect<void, { readonly message: string }> =>
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
      const choice = yield* ctx.ui.select<Choice>({
        search: true,
        actions: [
          { key: "ctrl+r", label: "rename", value: (chosen) => ({ ...chosen, what: "rename" }) },
          { key: "ctrl+x", label: "remove", value: (chosen) => ({ ...chosen, what: "remove" }) }
        ],
        title: known.upstream === "connected"
          ? "Sessions"
          : "Sessions, as they were before the coordinator went away",
        options: forkTree(found).map(({ depth, entry }) => ({
          value: { what: "show", sessionID: entry.sessionID },
          label: depth === 0 ? labelOf(entry) : `${"  ".repeat(Math.min(depth, 8) - 1)}└ ${labelOf(entry)}`,
          description: descriptionOf(entry, current, now)
        }))
      })
      if (choice === null) return
      const { sessionID, what } = choice
      if (what === "show") return sessionID === current ? undefined : yield* ctx.session.select(sessionID)
      const chosen = found.find((entry) => entry.sessionID === sessionID)
      const title = chosen === undefined ? sessionID : labelOf(chosen)
      if (what === "rename") {
        const wish = (yield* ctx.ui.input({ title: `What is ${title} called?`, placeholder: title }))?.trim() ?? ""
        if (wish !== "") yield* picker.rename({ sessionID, title: wish })
      } else if (sessionID === current) {
        return yield* ctx.ui.notify("This session is shown here; show another one before you remove it.", "warning")
      } else if (
        yield* ctx.ui.confirm({
          title: `Remove ${title}?`,
          body: [text("What was said in it is deleted for good.", { indent: 2 })],
          yes: "Remove it",
          no: "Keep it"
        })
      ) {
        yield* picker.remove({ sessionID })
        yield* ctx.ui.notify(`${title} is removed.`)
      }
      return yield* choose(words)
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
