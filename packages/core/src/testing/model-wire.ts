/**
 * Answers as server-sent events of the two wires, for `model-server.ts`. What comes out is what the real providers send, as
 * far as clients read it.
 */
import type { JsonValue } from "../json/index.ts"
import type { AnswerReply } from "./model-server.ts"

const list = (text: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  text === undefined ? [] : typeof text === "string" ? [text] : text

const pieces = (text: string, size: number): ReadonlyArray<string> => {
  const points = [...text]
  return Array.from(
    { length: Math.ceil(points.length / size) },
    (_, index) => points.slice(index * size, (index + 1) * size).join("")
  )
}

const written = (args: string | object): string => typeof args === "string" ? args : JSON.stringify(args)

const event = (data: JsonValue, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

/** OpenAI chat completions, up to `[DONE]`. */
export const chatCompletionsEvents = (reply: AnswerReply): ReadonlyArray<string> => {
  const calls = reply.calls ?? []
  const chunk = (delta: JsonValue, finish: string | null = null): string =>
    event({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "test",
      choices: [{ index: 0, delta, finish_reason: finish }]
    })
  const events = [
    chunk({ role: "assistant", content: "" }),
    ...list(reply.reasoning).map((text) => chunk({ reasoning_content: text })),
    ...list(reply.text).map((text) => chunk({ content: text })),
    ...calls.flatMap((call, index) => [
      chunk({
        tool_calls: [{
          index,
          id: call.id ?? `call_${index + 1}`,
          type: "function",
          function: { name: call.name, arguments: "" }
        }]
      }),
      ...pieces(written(call.args), reply.argumentChunk ?? 16).map((text) =>
        chunk({ tool_calls: [{ index, function: { arguments: text } }] })
      )
    ])
  ]
  const finish = reply.finish === undefined ? calls.length > 0 ? "tool_calls" : "stop" : reply.finish
  if (finish === null) return events
  const { cacheRead = 0, input = 10, output = 5 } = reply.usage ?? {}
  return [
    ...events,
    chunk({}, finish),
    event({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "test",
      choices: [],
      usage: {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        prompt_tokens_details: { cached_tokens: cacheRead }
      }
    }),
    "data: [DONE]\n\n"
  ]
}

const stopReasons: { readonly [finish: string]: string } = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal"
}

/** Anthropic messages, up to `message_stop`. */
export const messagesEvents = (reply: AnswerReply): ReadonlyArray<string> => {
  const calls = reply.calls ?? []
  const { cacheRead = 0, input = 10, output = 5 } = reply.usage ?? {}
  const named = (data: { readonly type: string; readonly [key: string]: JsonValue }): string => event(data, data.type)
  const usage = { input_tokens: input - cacheRead, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: 0 }
  const events = [
    named({
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "test",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1 }
      }
    })
  ]
  let index = 0
  const block = (
    start: { readonly [key: string]: JsonValue },
    deltas: ReadonlyArray<{ readonly [key: string]: JsonValue }>
  ): void => {
    events.push(named({ type: "content_block_start", index, content_block: start }))
    for (const delta of deltas) events.push(named({ type: "content_block_delta", index, delta }))
    events.push(named({ type: "content_block_stop", index }))
    index++
  }
  if (reply.reasoning !== undefined) {
    block({ type: "thinking", thinking: "", signature: "" }, [
      ...list(reply.reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
      ...reply.signature === undefined ? [] : [{ type: "signature_delta", signature: reply.signature }]
    ])
  }
  if (reply.text !== undefined) {
    block({ type: "text", text: "" }, list(reply.text).map((text) => ({ type: "text_delta", text })))
  }
  calls.forEach((call, at) =>
    block(
      { type: "tool_use", id: call.id ?? `call_${at + 1}`, name: call.name, input: {} },
      pieces(written(call.args), reply.argumentChunk ?? 16).map((partial) => ({
        type: "input_json_delta",
        partial_json: partial
      }))
    )
  )
  const finish = reply.finish === undefined ? calls.length > 0 ? "tool_calls" : "stop" : reply.finish
  if (finish === null) return events
  return [
    ...events,
    named({
      type: "message_delta",
      delta: { stop_reason: stopReasons[finish] ?? finish, stop_sequence: null },
      usage: { output_tokens: output }
    }),
    named({ type: "message_stop" })
  ]
}
