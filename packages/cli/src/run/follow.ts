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
  #entries: number

  constructor(view: ConversationView) {
    this.#view = view
    this.#entries = view.entries.length
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
      const answer = this.#newAnswer()
      if (answer !== null) text.push(answer.slice(given))
      this.#given = []
    }
    this.#entries = this.#view.entries.length
    return { text: text.join(""), events: envelope.events, view: this.#view }
  }

  /** The text of an answer that this step has put into the transcript. */
  #newAnswer(): string | null {
    const added = this.#view.entries.slice(Math.min(this.#entries, Math.max(0, this.#view.entries.length - 8)))
    const answer = added.findLast((entry) => entry.kind === "bezel.assistant" && entry.model !== null)
    return answer === undefined || this.#entries >= this.#view.entries.length ? null : answerText(answer)
  }
}

export const answerText = (entry: ViewEntry): string =>
  (entry.model ?? []).flatMap((message) =>
    message.role === "assistant" ? message.content.map((part) => part.type === "text" ? part.text : "") : []
  ).join("")
