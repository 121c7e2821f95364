/**
 * Guards over the raw events of a stream: what a provider package would drop or guess in silence is a fault of the protocol
 * here. A guard sees each event before what is made of it, and answers with what is wrong, or `null`.
 *
 * A fragment of a call must say, by id or by index, which call it belongs to; with one open call it need not. A block that
 * is continued must be open, and none is begun twice.
 */
export interface StreamGuard {
  readonly event: (raw: unknown) => string | null
  /** True once the provider has said why it ends. */
  readonly finished: () => boolean
  /** Characters of arguments that the events held, to compare with those that arrived; `null` where that needs no check. */
  readonly argumentLength: () => number | null
}

type Fields = { readonly [key: string]: unknown }
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === "string" && value.trim() !== ""

/** For a protocol that we have no guard for. */
export const noGuard = (): StreamGuard => ({ event: () => null, finished: () => true, argumentLength: () => null })

/** OpenAI chat completions. */
export const chatCompletionsGuard = (): StreamGuard => {
  const byIndex = new Map<number, string | null>()
  const ids = new Set<string>()
  let calls = 0
  let length = 0
  let finished = false

  const fragment = (delta: Fields): string | null => {
    const index = typeof delta["index"] === "number" ? delta["index"] : null
    const id = isText(delta["id"]) ? delta["id"] : null
    const fn = isFields(delta["function"]) ? delta["function"] : {}
    const named = isText(fn["name"])
    if (typeof fn["arguments"] === "string") length += fn["arguments"].length
    if (index === null && id === null && !named && calls > 1) {
      return "A fragment of a tool call does not say which of several calls it belongs to."
    }
    if (id !== null && index !== null && !named && ids.has(id) && byIndex.has(index) && byIndex.get(index) !== id) {
      return "A fragment of a tool call has the id of one call and the index of another."
    }
    if (index !== null && !byIndex.has(index)) {
      byIndex.set(index, id)
      calls++
    } else if (index !== null && id !== null && byIndex.get(index) === null) {
      byIndex.set(index, id)
    } else if (index === null && (id === null ? named : !ids.has(id))) {
      calls++
    }
    if (id !== null) ids.add(id)
    return null
  }

  return {
    event: (raw) => {
      if (!isFields(raw) || !Array.isArray(raw["choices"])) return null
      const choice: unknown = raw["choices"][0]
      if (!isFields(choice)) return null
      if (isText(choice["finish_reason"])) finished = true
      const delta = choice["delta"]
      if (!isFields(delta) || !Array.isArray(delta["tool_calls"])) return null
      for (const call of delta["tool_calls"]) {
        const fault = isFields(call) ? fragment(call) : null
        if (fault !== null) return fault
      }
      return null
    },
    finished: () => finished,
    argumentLength: () => length
  }
}

/** Anthropic messages. */
export const messagesGuard = (): StreamGuard => {
  const open = new Map<number, string>()
  const ids = new Set<string>()
  let finished = false
  const needs: { readonly [delta: string]: string } = {
    input_json_delta: "tool_use",
    text_delta: "text",
    thinking_delta: "thinking"
  }
  return {
    event: (raw) => {
      if (!isFields(raw)) return null
      const index = typeof raw["index"] === "number" ? raw["index"] : -1
      switch (raw["type"]) {
        case "content_block_start": {
          if (open.has(index)) return `Block ${index} of the answer begins twice.`
          const block = isFields(raw["content_block"]) ? raw["content_block"] : {}
          const id = block["id"]
          if (isText(id)) {
            if (ids.has(id)) return "Two tool calls of the answer have the same id."
            ids.add(id)
          }
          open.set(index, String(block["type"]))
          return null
        }
        case "content_block_delta": {
          const kind = open.get(index)
          if (kind === undefined) return `A part of block ${index} arrives while that block is not open.`
          const delta = isFields(raw["delta"]) ? raw["delta"] : {}
          const needed = needs[String(delta["type"])]
          return needed === "tool_use" && !kind.endsWith("tool_use") || needed === "text" && kind !== "text"
            ? `A part of block ${index} does not fit that block.`
            : null
        }
        case "content_block_stop":
          return open.delete(index) ? null : `Block ${index} of the answer ends without having begun.`
        case "message_delta":
          if (isFields(raw["delta"]) && isText(raw["delta"]["stop_reason"])) finished = true
          return null
        default:
          return null
      }
    },
    finished: () => finished,
    argumentLength: () => null
  }
}
