/**
 * The terminal facet of notices: rings or sends a message when the turn of the conversation that is shown has ended, or waits
 * for the person. Off unless the settings say so.
 */
import type { ConversationView } from "@bezel/core/harness"
import { Conversation } from "@bezel/core/host/contract"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Notices, type Notify } from "./contract.ts"

type Activity = "idle" | "working" | "waiting"

const activityOf = ({ turn }: ConversationView): Activity =>
  turn === null ? "idle" : turn.tools.some(({ waitingOn }) => waitingOn !== null) ? "waiting" : "working"

/** The first line of the newest answer, or how the turn ended without one. */
const endText = ({ entries }: ConversationView): string => {
  const newest = entries.findLast(({ kind, model }) => kind === "bezel.failure" || model?.[0]?.role === "assistant")
  if (newest?.kind === "bezel.failure") return "the turn ended without an answer"
  const [message] = newest?.model ?? []
  const content = message?.role === "assistant" ? message.content : []
  const text = content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n").trim()
  return text.split("\n", 1)[0]?.slice(0, 100) || "the turn has ended"
}

/** What is said at a change of what a conversation does; `null`: nothing. */
export const noticeOf = (before: Activity | null, view: ConversationView): string | null => {
  const now = activityOf(view)
  if (before === null || before === now || before === "idle") return null
  return now === "waiting" ? "waits for you" : now === "idle" ? endText(view) : null
}

type Context = Pick<TuiContext, "connection" | "observe" | "onActivate" | "use"> & {
  readonly ui: Pick<TuiContext["ui"], "attention">
}

/** The terminal facet. */
export const tui = Effect.fn("notices/tui")(function*(ctx: Context) {
  const service = yield* ctx.use(Notices)
  let how: Notify = "off"
  // Asked for at each connection: another host may have other settings.
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
    Stream.runForEach(
      Stream.filter(ctx.connection.changes, ({ status }) => status === "connected"),
      () =>
        Effect.map(Effect.orElseSucceed(service.how(), (): Notify => "off"), (said) => {
          how = said
        })
    )
  )))
  yield* ctx.observe(Conversation, (instance) => {
    let before: Activity | null = null
    return instance.view.forEach((view) =>
      Effect.suspend(() => {
        const { owner, parent } = view.conversation
        const text = noticeOf(before, view)
        before = activityOf(view)
        return text === null || how === "off" || owner !== null || parent !== null
          ? Effect.void
          : ctx.ui.attention(how === "bell" ? null : `Bezel: ${text}`)
      })
    )
  })
})
