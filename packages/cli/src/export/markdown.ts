/** A session as markdown: prompts quoted, answers as they are, tool calls folded where the reader can. Pure. */
import type { SessionExport } from "@bezel/core/session"
import { oneLine } from "../run/text.ts"
import { type Shown, shownOf } from "./transcript.ts"

/** A fence longer than any in the text. */
const fenced = (text: string, language = ""): string => {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map((run) => run.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`
}

const quoted = (text: string): string => text.replace(/^/gm, "> ")

/** Within a line of HTML, which markdown passes on. */
const inline = (text: string): string =>
  oneLine(text, 200).replace(/[&<>]/g, (sign) => sign === "&" ? "&amp;" : sign === "<" ? "&lt;" : "&gt;")

const folded = (title: string, ...parts: ReadonlyArray<string>): string =>
  `<details><summary>${inline(title)}</summary>\n\n${parts.join("\n\n")}\n\n</details>`

const blockOf = (shown: Shown): string => {
  switch (shown.type) {
    case "prompt":
      return [quoted(shown.text), ...shown.files.map(({ name }) => `> [${oneLine(name, 80)}]`)].join("\n>\n")
    case "answer":
      return shown.text
    case "reasoning":
      return folded("thinking", quoted(shown.text))
    case "files":
      return shown.files.map(({ name }) => `[${oneLine(name, 80)}]`).join("\n")
    case "note":
      return folded(shown.title, fenced(shown.text))
    case "call":
      return folded(
        `${shown.isError ? "✗" : "✓"} ${shown.title}`,
        fenced(shown.args, "json"),
        ...(shown.diff === null ? [] : [fenced(shown.diff, "diff")]),
        fenced(shown.result)
      )
  }
}

export const toMarkdown = (session: SessionExport): string => {
  const { record } = session
  const title = record.title.trim() === "" ? record.id : oneLine(record.title, 120)
  const about = [
    `session ${record.id}`,
    oneLine(record.location.directory, 200),
    new Date(record.createdAt).toISOString()
  ]
  return [`# ${title}`, about.join(" · "), ...shownOf(session).map(blockOf)].join("\n\n") + "\n"
}
