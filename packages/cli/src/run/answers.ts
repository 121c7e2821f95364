/**
 * How the turns of a run have ended: that of its own input, and behind it those which began without an input, because
 * something in the background had an end that the model was to answer.
 */
import type { ConversationView, InputOutcome, ViewEvent } from "@bezel/core/harness"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { answerText, type Step } from "./follow.ts"

export class Answers {
  readonly #inputID: string
  /** Of turns that what ends in the background has begun, in order. */
  readonly woken: Array<InputOutcome> = []
  /** Whether the input has had its end. */
  hasEnded = false

  constructor(inputID: string) {
    this.#inputID = inputID
  }

  step({ events, view }: Step): void {
    for (const event of events) {
      if (event.type === "input.aborted" && event.id === this.#inputID) this.hasEnded = true
      if (event.type !== "turn.ended" || !Array.isArray(event.inputs)) continue
      if (event.inputs.includes(this.#inputID)) this.hasEnded = true
      else if (this.hasEnded && event.inputs.length === 0) this.woken.push(outcomeOf(event, view))
    }
  }
}

const TurnEnded = Schema.Union([
  Schema.Struct({ status: Schema.Literal("done"), entry: Schema.String }),
  Schema.Struct({
    status: Schema.Literal("unanswered"),
    reason: Schema.Literals(["terminated", "aborted", "failed", "stale"]),
    error: Schema.NullOr(Schema.Struct({ kind: Schema.String, message: Schema.String }))
  })
])

const outcomeOf = (event: ViewEvent, view: ConversationView): InputOutcome => {
  const end = Schema.decodeUnknownOption(TurnEnded)(event)
  if (Option.isNone(end)) return { status: "unanswered", reason: "failed", error: null }
  if (end.value.status === "unanswered") return end.value
  const { entry: answer } = end.value
  const entry = view.entries.findLast(({ id }) => id === answer)
  return { status: "done", answer, text: entry === undefined ? "" : answerText(entry) }
}
