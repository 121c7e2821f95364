/**
 * The commands of `bezel/offline`: what a prompt says, as calls of tools.
 *
 * `read FILE`, `list [DIR]`, `search REGEX [in PATH or GLOB]`, `run COMMAND`, `write FILE: TEXT`, `edit FILE: OLD => NEW`,
 * `ask QUESTION? A | B | C`, `task DESCRIPTION: PROMPT`; several joined by ` then `, which counts only where another command
 * follows it. A name or an expression may stand in quotes of any kind. Anything else is no command.
 */
import type { JsonObject } from "@bezel/core/json"

/** One command: as it was written, and the call that does it. */
export interface OfflineCommand {
  readonly written: string
  readonly tool: string
  readonly params: JsonObject
}

const verbs = "read|list|search|run|write|edit|ask|task"
// After a semicolon "then" is the shell's own word.
const joint = new RegExp(`(?<!;)\\s+then\\s+(?=(?:${verbs})(?:\\s|$))`)

const unquote = (text: string): string => {
  const trimmed = text.trim()
  const quoted = /^(["'`])([\s\S]+)\1$/.exec(trimmed)
  return quoted?.[2] ?? trimmed
}

const call = (written: string, tool: string, params: JsonObject): OfflineCommand => ({ written, tool, params })

const parsers: { readonly [verb: string]: (rest: string, written: string) => OfflineCommand | null } = {
  read: (rest, written) => rest === "" ? null : call(written, "read", { path: unquote(rest) }),
  list: (rest, written) => call(written, "list", rest === "" ? {} : { path: unquote(rest) }),
  search: (rest, written) => {
    const found = /^("[^"]+"|'[^']+'|`[^`]+`|[\s\S]+?)(?:\s+in\s+(\S+|"[^"]+"|'[^']+'|`[^`]+`))?$/.exec(rest)
    const pattern = unquote(found?.[1] ?? "")
    if (pattern === "") return null
    if (found?.[2] === undefined) return call(written, "search", { pattern })
    const where = unquote(found[2])
    return call(written, "search", /[*?[{]/.test(where) ? { pattern, glob: where } : { pattern, path: where })
  },
  run: (rest, written) => rest === "" ? null : call(written, "bash", { command: rest }),
  write: (rest, written) => {
    const found = /^([^:\n]+):[ \t]?\n?([\s\S]*)$/.exec(rest)
    return found === null ? null : call(written, "write", { path: unquote(found[1] ?? ""), content: found[2] ?? "" })
  },
  edit: (rest, written) => {
    const found = /^([^:\n]+):[ \t]?([\s\S]+?)\s=>(?:[ \t]|(?=\n)|$)([\s\S]*)$/.exec(rest)
    return found === null
      ? null
      : call(written, "edit", { path: unquote(found[1] ?? ""), oldText: found[2] ?? "", newText: found[3] ?? "" })
  },
  ask: (rest, written) => {
    const found = /^([^?]+\?)([\s\S]*)$/.exec(rest)
    if (found === null) return null
    const options = (found[2] ?? "").split("|").map((option) => option.trim()).filter((option) => option !== "")
    return call(written, "question", { question: (found[1] ?? "").trim(), options })
  },
  task: (rest, written) => {
    const found = /^([^:\n]+):\s*([\s\S]+)$/.exec(rest)
    return found === null
      ? null
      : call(written, "subagent", { description: unquote(found[1] ?? ""), prompt: (found[2] ?? "").trim() })
  }
}

const parseOne = (written: string): OfflineCommand | null => {
  const found = /^(\S+)(?:\s+([\s\S]*))?$/.exec(written)
  const verb = found?.[1] ?? ""
  return Object.hasOwn(parsers, verb) ? parsers[verb]?.(found?.[2] ?? "", written) ?? null : null
}

/** The commands of a prompt in order, or `null` if any part of it is none. */
export const parseCommands = (prompt: string): ReadonlyArray<OfflineCommand> | null => {
  const text = prompt.trim()
  // All that follows `task` is its prompt, which may have commands of its own.
  const parts = /^task\s/.test(text) ? [text] : text.split(joint)
  const commands: Array<OfflineCommand> = []
  for (const part of parts) {
    const command = parseOne(part.trim())
    if (command === null) return null
    commands.push(command)
  }
  return commands
}

/** The grammar for people, one line each. */
export const grammarHelp = [
  "read FILE",
  "list [DIR]",
  "search REGEX [in PATH or GLOB]",
  "run COMMAND",
  "write FILE: TEXT",
  "edit FILE: OLD => NEW",
  "ask QUESTION? A | B | C",
  "task DESCRIPTION: PROMPT"
]
