/** Notices: lines for the person that stand above the editor for a while, the newest few of them. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { type Block, span, text } from "../block.ts"
import type { Ui } from "../contributions.ts"

const noticeMillis = 6_000
const maxNotices = 4

export interface Notices {
  readonly notify: Ui["notify"]
  readonly blocks: () => ReadonlyArray<Block>
}

/** `fork` runs what takes a notice away again; `changed` asks for a frame. */
export const makeNotices = (changed: () => void, fork: (effect: Effect.Effect<void>) => void): Notices => {
  let notices: ReadonlyArray<Block> = []
  return {
    blocks: () => notices,
    notify: (message, level = "info") =>
      Effect.sync(() => {
        const color = level === "info" ? "muted" : level
        const notice = text(span(message, { color }), { marker: span(level === "info" ? "· " : "! ", { color }) })
        notices = [...notices.slice(1 - maxNotices), notice]
        changed()
        fork(Effect.andThen(
          Effect.sleep(noticeMillis),
          Effect.sync(() => {
            notices = notices.filter((other) => other !== notice)
            changed()
          })
        ))
      })
  }
}

/** Whether it is a failure with a message, which is a sentence for a person; all else is a defect of the plugin. */
export const isSaid = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.every((reason) =>
    Cause.isFailReason(reason) && typeof reason.error === "object" && reason.error !== null &&
    typeof Reflect.get(reason.error, "message") === "string" && Reflect.get(reason.error, "message") !== ""
  )
