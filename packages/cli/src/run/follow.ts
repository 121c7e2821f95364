/**
 * Follows a conversation from its watch: each envelope becomes a step, with the text that is new and the view after it.
 *
 * Plain synchronous code, it runs for every streamed frame: what is appended to the live answer is taken from the operations
 * as it is, the growing answer is never read again. The text of a request's answer is given exactly once, also the end of it
 * that no frame showed before the closing commit; after a `generation.retrying`, the next attempt's text starts anew.
 */
import type { ConversationView, Envelope, ViewEntry, ViewEvent } from "@bezel/core/harness"
import { apply } from "@bezel/core/json"

export interface Step {
  /** New text of the answer. */
  readonly text: string
  readonly events: ReadonlyArray<ViewEvent>
  readonly view: ConversationView
}

export class Follower {
  #view: ConversationView
  /** Length that was given of each part of the live answer. */
  #given: Array<number> = []

  constructor(view: ConversationView) {
    this.#view = view
  }

  get view(): ConversationView {
    return this.#view
  }

  next(envelope: Envelope): Step {
    const text: Array<string> = []
    this.#view = apply(this.#view, envelope.operations)
    const parts = this.#view.turn?.message?.parts ?? []
    for (const operation of envelope.operations) {
      if (operation[0] !== "append") continue
      const [turn, message, list, index, member, ...rest] = operation[1]
      if (turn !== "turn" || message !== "message" || list !== "parts" || member !== "text" || rest.length > 0) continue
      if (typeof index !== "number" || parts[index]?.type !== "text" || this.#given[index] === undefined) continue
      this.#given[index] += operation[2].length
      text.push(operation[2])
    }
    if (parts.length > 0) {
      for (const [index, part] of parts.entries()) {
        const given = this.#given[index] ?? 0
        if (part.type === "text" && part.text.length > given) text.push(part.text.slice(given))
        this.#given[index] = part.type === "text" ? part.text.length : 0
      }
    } else {
      const given = this.#given.reduce((sum, length) => sum + length, 0)
      const answer = this.#closedAnswer(envelope)
      if (answer !== null) text.push(answer.slice(given))
      this.#given = []
    }
    return { text: text.join(""), events: envelope.events, view: this.#view }
  }

  /** The text of the answer that this step has closed; an answer is closed once, whatever entries come behind it. */
  #closedAnswer(envelope: Envelope): string | null {
    const closing = envelope.events.find((event) => event.type === "generation.completed")
    const answer = closing === undefined
      ? undefined
      : this.#view.entries.findLast((entry) => entry.id === closing.entry)
    return answer === undefined ? null : answerText(answer)
  }
}

export const answerText = (entry: ViewEntry): string =>
  (entry.model ?? []).flatMap((message) =>
    message.role === "assistant" ? message.content.map((part) => part.type === "text" ? part.text : "") : []
  ).join("")
