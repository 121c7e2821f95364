/** Where turns of a conversation begin: pure, over what is shown of it. */
import type { ViewEntry } from "@bezel/core/harness"

const spoken = new Set([
  "bezel.user",
  "bezel.assistant",
  "bezel.tool_result",
  "bezel.failure",
  "bezel.summary",
  "bezel.handoff",
  "bezel.rewind"
])

const callsTools = (entry: ViewEntry): boolean =>
  (entry.model ?? []).some(({ content, role }) =>
    role === "assistant" && typeof content !== "string" && content.some(({ type }) => type === "tool-call")
  )

/** A prompt goes on with a turn when tools were under way, or when the one before it has no answer yet. */
const goesOn = (before: ViewEntry | undefined): boolean =>
  before !== undefined && (before.kind === "bezel.user" || before.kind === "bezel.tool_result" || callsTools(before))

export const textOf = (entry: ViewEntry): string =>
  (entry.model ?? []).flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
  ).join("\n")

/** The prompts that begin turns, oldest first. */
export const turnStarts = (entries: ReadonlyArray<ViewEntry>): ReadonlyArray<ViewEntry> => {
  const starts: Array<ViewEntry> = []
  let before: ViewEntry | undefined
  for (const entry of entries) {
    if (entry.kind === "bezel.user" && !goesOn(before)) starts.push(entry)
    if (spoken.has(entry.kind)) before = entry
  }
  return starts
}
