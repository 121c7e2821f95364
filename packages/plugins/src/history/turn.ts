/** Which turn of a conversation an entry belongs to: found by its prompt, among what is active. */
import { HarnessError } from "@bezel/core/harness"
import type { OpenSession } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import { textOf, turnStarts } from "./turn-starts.ts"

/** The first prompt of a turn. */
export interface Turn {
  readonly entry: string
  /** Its place in the order of entries. */
  readonly ordinal: number
  readonly text: string
}

const ordinalOf = (session: OpenSession, id: string): Effect.Effect<number | null, HarnessError> =>
  Effect.gen(function*() {
    let before: number | undefined
    for (;;) {
      const page = yield* session.main.entries({
        kind: "bezel.user",
        newestFirst: true,
        limit: 200,
        ...(before === undefined ? {} : { before })
      })
      const found = page.find((entry) => entry.id === id)
      if (found !== undefined) return found.ordinal
      const last = page.at(-1)
      if (last === undefined || page.length < 200) return null
      before = last.ordinal
    }
  })

/** The turn of an entry, or the newest one for `last`. */
export const findTurn = Effect.fnUntraced(
  function*(session: OpenSession, to: string): Effect.fn.Return<Turn, HarnessError> {
    const { view } = yield* session.main.snapshot
    const index = to === "last" ? view.entries.length - 1 : view.entries.findIndex(({ id }) => id === to)
    if (to !== "last" && index < 0) {
      return yield* new HarnessError({
        code: "not_found",
        message: `The conversation has no entry "${
          to.slice(0, 200)
        }" that could be taken back; \`bezel session show ID --json\` lists them.`
      })
    }
    const start = turnStarts(view.entries.slice(0, index + 1)).at(-1)
    const ordinal = start === undefined ? null : yield* ordinalOf(session, start.id)
    if (start === undefined || ordinal === null) {
      return yield* new HarnessError({
        code: "invalid",
        message: to === "last"
          ? "There is nothing in this conversation yet that could be taken back."
          : "There is no prompt before that entry, so there is no turn to take back."
      })
    }
    return { entry: start.id, ordinal, text: textOf(start) }
  }
)
