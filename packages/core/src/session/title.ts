/** The title of a session that nobody has named: the beginning of what was asked first. */
import type { ConversationView } from "../harness/index.ts"

/** Longest title, in UTF-16 units; what people read in a list. */
export const maxTitleLength = 500

/** A title that somebody gave, cut where it is longer than titles are. */
export const keptTitle = (title: string): string =>
  title.length <= maxTitleLength ? title : `${title.slice(0, maxTitleLength - 1).replace(/[\ud800-\udbff]$/, "")}…`

/** On one line, at most 80 characters. */
export const titleOf = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  const points = [...line]
  return points.length > 80 ? points.slice(0, 79).join("") + "…" : line
}

/** Empty while nothing was asked. */
export const titleOfView = ({ entries, inbox }: ConversationView): string => {
  for (const { kind, model } of entries) {
    if (kind !== "bezel.user") continue
    for (const message of model ?? []) {
      if (message.role !== "user") continue
      for (const part of message.content) if (part.type === "text" && part.text.trim() !== "") return titleOf(part.text)
    }
  }
  return titleOf(inbox[0]?.text ?? "")
}
