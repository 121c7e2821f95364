/**
 * Names plugins in a settings file and takes them out again, and leaves everything else of the file as a person wrote it.
 */
import { applyEdits, modify, parse, type ParseError } from "jsonc-parser"

const formattingOptions = { insertSpaces: true, tabSize: 2 }

const sourceOf = (entry: unknown): unknown =>
  typeof entry === "object" && entry !== null && "source" in entry ? entry.source : entry

/** The entries of `plugins` in the text of a settings file; `null`: the text cannot be read as one. */
function entriesOf(text: string): ReadonlyArray<unknown> | null {
  if (text.trim() === "") return []
  const errors: Array<ParseError> = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true })
  if (errors.length > 0 || typeof value !== "object" || value === null || Array.isArray(value)) return null
  const plugins = "plugins" in value ? value.plugins : []
  return Array.isArray(plugins) ? plugins : null
}

/** The text with the plugin in it; the text itself if it is named already; `null`: this is no settings file. */
export function withPlugin(text: string, source: string): string | null {
  const entries = entriesOf(text)
  if (entries === null) return null
  if (entries.some((entry) => sourceOf(entry) === source)) return text
  const path = entries.length === 0 ? ["plugins"] : ["plugins", entries.length]
  const value = entries.length === 0 ? [source] : source
  const changed = applyEdits(
    text.trim() === "" ? "{}\n" : text,
    modify(text.trim() === "" ? "{}\n" : text, path, value, { formattingOptions })
  )
  return changed.endsWith("\n") ? changed : `${changed}\n`
}

/** The text without any of these sources; `null`: this is no settings file. */
export function withoutPlugin(text: string, sources: ReadonlyArray<string>): string | null {
  const entries = entriesOf(text)
  if (entries === null) return null
  let changed = text
  for (let index = entries.length - 1; index >= 0; index--) {
    if (!sources.some((source) => source === sourceOf(entries[index]))) continue
    changed = applyEdits(changed, modify(changed, ["plugins", index], undefined, { formattingOptions }))
  }
  return changed
}
