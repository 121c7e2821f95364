/**
 * Settling a call: run the tool, let `afterTool` change the result, bound it.
 *
 * Never fails. A typed failure is an error result as it is; a defect is told to the model in one sentence and logged
 * whole. Interrupting the settling fiber interrupts the tool and nothing more happens; a tool that interrupts itself
 * has failed. A result without content has what the tool streamed, else "(no output)".
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { artifactName, boundResult } from "./bounds.ts"
import { coalesceLast, coalesceText } from "./coalesce.ts"
import { makeCollector } from "./collector.ts"
import { defaultBounds, toolResult } from "./define.ts"
import type { AcceptedCall, SettleOptions } from "./materialization.ts"
import type { ToolCall, ToolResult } from "./tool.ts"
import { ToolFailure } from "./tool.ts"

export const settle = (call: AcceptedCall, api: ToolCall, options: SettleOptions): Effect.Effect<ToolResult> =>
  Effect.scoped(Effect.gen(function*() {
    const { tool } = call
    // A stream's end tells more than its beginning, unless the tool says otherwise.
    const bounds = tool.bounds ?? { ...defaultBounds, keep: "both" }
    const collector = makeCollector({ bounds, artifact: api.artifact(artifactName(api)) })
    yield* Effect.addFinalizer(() => collector.finish)
    const stream = yield* coalesceText(api.stream, collector.isBinary)
    const progress = yield* coalesceLast(api.progress)
    const observed: ToolCall = {
      ...api,
      stream: (chunk) => Effect.andThen(collector.write(chunk), stream.push(chunk)),
      progress: progress.push
    }
    const exit = yield* Effect.exit(Effect.suspend(() => {
      const moved = movedSince(call)
      return moved === null ? tool.execute(call.input, observed) : Effect.fail(new ToolFailure({ message: moved }))
    }))
    yield* Effect.catchCause(
      Effect.andThen(stream.flush, progress.flush),
      (cause) => Effect.logWarning("The last output of a tool did not reach its watchers", cause)
    )
    const streamed = yield* collector.finish
    const ran = Exit.isSuccess(exit) ? exit.value : yield* failed(call, exit.cause)
    const filled = withStreamed(ran, streamed.text)
    const after = yield* Effect.catchCause(options.afterTool(filled), (cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.as(Effect.logError("A handler after a tool failed and is skipped", cause), filled))
    const textBounded = ran.content.length === 0 && after.content === filled.content
    return yield* boundResult(after, { bounds: tool.bounds, textBounded, call: api })
  })).pipe(Effect.withSpan("tool.settle", { attributes: { tool: call.name, callID: api.callID } }))

/** A symbolic link that has been changed since a call was allowed must not make it touch something else. */
const movedSince = (call: AcceptedCall): string | null => {
  if (call.tool.permission === null) return null
  const now = call.tool.permission(call.input)
  if (now.access === call.permission.access && now.subjects.join("\0") === call.permission.subjects.join("\0")) {
    return null
  }
  return `What this call would touch has changed since it was allowed (${call.permission.subjects.join(", ")} is now ${
    now.subjects.join(", ")
  }), so it was not run. Call it again.`
}

/** What was streamed before a failure tells what went wrong, so it stays beside the error. */
const withStreamed = (result: ToolResult, streamed: string): ToolResult => {
  if (streamed === "") return result
  if (result.content.length === 0) return { ...result, content: [{ type: "text", text: streamed }] }
  return result.isError && result.details === null
    ? { ...result, content: [...result.content, { type: "text", text: streamed }] }
    : result
}

const failed = Effect.fnUntraced(function*(call: AcceptedCall, cause: Cause.Cause<ToolFailure>) {
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure !== undefined) {
    const { details, message } = failure.error
    return toolResult({ content: message, isError: true, ...(details === undefined ? {} : { details }) })
  }
  if (Cause.hasInterruptsOnly(cause)) {
    return toolResult({ content: `The tool ${call.name} was interrupted before it finished.`, isError: true })
  }
  yield* Effect.logError(`Tool ${call.name} of plugin ${call.declaration.plugin} failed unexpectedly`, cause)
  return toolResult({
    content: `The tool ${call.name} failed because of a fault in it: ${firstLine(Cause.squash(cause))}.`,
    isError: true
  })
})

const firstLine = (defect: unknown): string => {
  const text = defect instanceof Error
    ? defect.message
    : typeof defect === "string"
    ? defect
    : "it threw something that is no error"
  return (text.split("\n", 1)[0] ?? "").slice(0, 200).replace(/[\ud800-\udbff]$/, "").replace(/[.\s]+$/, "") ||
    "no message"
}
