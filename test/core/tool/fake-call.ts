/** A call for tests: what it streams and saves is kept in memory. */
import type { JsonValue } from "@bezel/core/json"
import type { ToolCall } from "@bezel/core/tool"
import * as Effect from "effect/Effect"

export interface FakeCall {
  readonly call: ToolCall
  /** What watchers got, delivery by delivery. */
  readonly streamed: Array<string>
  readonly progressed: Array<JsonValue>
  /** Saved bytes by path. */
  readonly artifacts: Map<string, Buffer>
  readonly closed: Set<string>
}

export const fakeCall = (
  options: { readonly name?: string; readonly callID?: string; readonly artifactBytes?: number } = {}
): FakeCall => {
  const streamed: Array<string> = []
  const progressed: Array<JsonValue> = []
  const artifacts = new Map<string, Buffer>()
  const closed = new Set<string>()
  const memo: ToolCall["memo"] = (_name: string, candidate?: JsonValue) => Effect.succeed(candidate as never)
  const call: ToolCall = {
    sessionID: "session-1",
    conversationID: "conversation-1",
    taskID: "task-1",
    callID: options.callID ?? "call-1",
    name: options.name ?? "tool",
    stream: (chunk) =>
      Effect.sync(() => {
        streamed.push(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())
      }),
    progress: (value) =>
      Effect.sync(() => {
        progressed.push(value)
      }),
    memo,
    onAbort: () => Effect.void,
    task: () => Effect.die(new Error("a tool of this test started a task")),
    waitForTask: () => Effect.die(new Error("a tool of this test waited for a task")),
    slot: () => Effect.succeed(null),
    conversation: () => Effect.die(new Error("a tool of this test started a conversation")),
    fs: Effect.die(new Error("a tool of this test asked for files")),
    process: { spawn: () => Effect.die(new Error("a tool of this test started a process")) },
    artifact: (name) =>
      Effect.sync(() => {
        const path = `/artifacts/${name}`
        const most = options.artifactBytes ?? 100 * 1024 * 1024
        artifacts.set(path, Buffer.alloc(0))
        return {
          path,
          write: (chunk) =>
            Effect.sync(() => {
              const before = artifacts.get(path) ?? Buffer.alloc(0)
              const after = Buffer.concat([before, chunk]).subarray(0, most)
              artifacts.set(path, after)
              return after.length === before.length + chunk.length
            }),
          close: Effect.sync(() => {
            closed.add(path)
          })
        }
      })
  }
  return { call, streamed, progressed, artifacts, closed }
}
