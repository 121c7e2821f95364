/**
 * What a follower of an answer has been sent, and what it still lacks: the difference between the view that it knows and the
 * view as it is.
 *
 * A follower who reads slowly gets one longer difference in place of many short ones, so what waits for it is never more than
 * one answer, and everything between two looks is coalesced by itself. A hot path, so plain TypeScript.
 */
import type { ConversationView, ViewEntry, ViewMessagePart } from "@bezel/core/harness"

export interface Delta {
  readonly type: "delta"
  readonly task: string
  readonly part: number
  readonly kind: ViewMessagePart["type"]
  readonly offset: number
  readonly text: string
}

export interface ToolOutput {
  readonly type: "tool.output"
  readonly callID: string
  readonly offset: number
  readonly text: string
}

export interface LiveText {
  /** What is new in a view. */
  readonly advance: (view: ConversationView) => ReadonlyArray<Delta | ToolOutput>
  /** What a finished answer says beyond what was sent of it. */
  readonly finish: (task: string, entry: Pick<ViewEntry, "model">) => ReadonlyArray<Delta>
}

/** From where on a text differs from what was sent: its end, if it only grew. */
const divergence = (sent: string, text: string): number => {
  if (text.startsWith(sent)) return sent.length
  let at = 0
  while (at < sent.length && at < text.length && sent.charCodeAt(at) === text.charCodeAt(at)) at++
  // Not between the halves of one character.
  const before = text.charCodeAt(at - 1)
  return before >= 0xd800 && before < 0xdc00 ? at - 1 : at
}

/** Without half a character at its end, which the next look brings whole. */
const whole = (text: string): string => {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last < 0xdc00 ? text.slice(0, -1) : text
}

export const makeLiveText = (): LiveText => {
  let task: string | null = null
  let parts: Array<string> = []
  let outputs = new Map<string, string>()

  const deltasOf = (shown: ReadonlyArray<{ readonly type: Delta["kind"]; readonly text: string }>): Array<Delta> => {
    const deltas: Array<Delta> = []
    for (const [part, { text: full, type }] of shown.entries()) {
      const text = whole(full)
      const sent = parts[part] ?? ""
      if (text === sent) continue
      const offset = divergence(sent, text)
      parts[part] = text
      deltas.push({ type: "delta", task: task ?? "", part, kind: type, offset, text: text.slice(offset) })
    }
    return deltas
  }

  return {
    advance: ({ turn }) => {
      const found: Array<Delta | ToolOutput> = []
      if (turn !== null && turn.generation !== null && turn.message !== null) {
        if (turn.generation.task !== task) {
          task = turn.generation.task
          parts = []
        }
        found.push(...deltasOf(turn.message.parts))
      }
      const now = new Map<string, string>()
      for (const { callId, output } of turn?.tools ?? []) {
        if (output === "") continue
        const sent = outputs.get(callId) ?? ""
        const text = whole(output)
        now.set(callId, text)
        if (text === sent) continue
        const offset = divergence(sent, text)
        found.push({ type: "tool.output", callID: callId, offset, text: text.slice(offset) })
      }
      outputs = now
      return found
    },
    finish: (finished, { model }) => {
      const message = model?.find(({ role }) => role === "assistant")
      if (message?.role !== "assistant") return []
      if (task !== finished) {
        task = finished
        parts = []
      }
      return deltasOf(message.content.map((part, index) =>
        part.type === "text" || part.type === "reasoning"
          ? { type: part.type, text: part.text }
          // Its arguments stand in the entry; what was streamed of them is no text to complete.
          : { type: "tool-call", text: parts[index] ?? "" }
      ))
    }
  }
}
