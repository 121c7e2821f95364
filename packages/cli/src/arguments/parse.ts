/**
 * Command line → command with its values, or one line that says what is wrong and what would be right.
 *
 * The first word that is no option names the command; options may stand before it. `--` ends options. Nothing is guessed: an
 * unknown option, a missing value and a word too many are refused.
 */
import type { Command, Environment } from "./command.ts"
import { flag, type Option, optionName, type Options, texts } from "./option.ts"
import { nearest } from "./suggest.ts"

/** Options that every command has. */
export const commonOptions = {
  set: texts("KEY=VALUE", "overrides one setting for this run"),
  noColor: flag("no colours (also with NO_COLOR)"),
  verbose: flag("more about what goes wrong, on stderr"),
  help: flag("this text", { short: "h" }),
  version: flag("the version", { short: "V" })
} satisfies Options

export type Parsed =
  | { readonly type: "execute"; readonly command: Command; readonly execute: (version: string) => Promise<number> }
  | { readonly type: "help"; readonly command: Command | null; readonly group: string }
  | { readonly type: "version" }
  | { readonly type: "usage"; readonly message: string }

interface Given {
  /** As written, for messages. */
  readonly word: string
  readonly value: string | null
}

/** What a word names, in one command. */
function lookup(word: string, options: Options): { readonly key: string; readonly option: Option<unknown> } | null {
  for (const [key, option] of Object.entries({ ...options, ...commonOptions })) {
    if (word === optionName(key) || (option.short !== null && word === `-${option.short}`)) return { key, option }
  }
  return null
}

const shown = (name: string) => name === "" ? "bezel" : `bezel ${name}`

export function parse(argv: ReadonlyArray<string>, commands: ReadonlyArray<Command>): Parsed {
  const root = commands.find((item) => item.name === "")
  if (root === undefined) throw new Error("a table of commands needs one with an empty name")
  const groups = new Set(commands.map((item) => item.name.split(" ")[0] ?? "").filter((name) => name !== ""))
  const anyOption = Object.assign({}, ...commands.map((item) => item.options)) as Options

  // 1. Split into options and words. Which options take a value is the same wherever they occur.
  const given: Array<Given> = []
  const words: Array<string> = []
  let current: Command | null = null
  const known = () => current === null ? anyOption : current.options
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? ""
    if (word === "--") {
      if (words.length === 0) current = root
      words.push(...argv.slice(index + 1))
      break
    }
    if (word === "-" || !word.startsWith("-")) {
      words.push(word)
      current ??= commandNamed(words, commands, groups, root)
      if (current?.notBuilt === true && !argv.includes("--help")) break
      continue
    }
    const equals = word.startsWith("--") ? word.indexOf("=") : -1
    const name = equals < 0 ? word : word.slice(0, equals)
    const found = lookup(name, known()) ?? lookup(name, root.options)
    if (found === null) return unknownOption(name, current ?? root)
    if (found.option.placeholder === null) {
      if (equals >= 0) return { type: "usage", message: `${name} takes no value` }
      given.push({ word: name, value: null })
      continue
    }
    if (equals >= 0) {
      given.push({ word: name, value: word.slice(equals + 1) })
      continue
    }
    const next = argv[index + 1]
    if (next === undefined || (next.startsWith("-") && next !== "-" && Number.isNaN(Number(next)))) {
      const hint = next === undefined ? "" : ` (write ${name}=${next} if that is the value)`
      return { type: "usage", message: `${name} needs a value: ${found.option.placeholder}${hint}` }
    }
    given.push({ word: name, value: next })
    index++
  }

  // 2. Which command, and which of the words are its arguments.
  const help = given.some(({ word }) => word === "--help" || word === "-h")
  if (words[0] === "help") return parse([...words.slice(1), "--help"], commands)
  if (current === null && given.some(({ word }) => word === "--version" || word === "-V")) return { type: "version" }
  const group = words[0] ?? ""
  if (current === null && groups.has(group)) {
    if (help || words.length === 1) {
      return help ? { type: "help", command: null, group } : unknownSubcommand(group, "", commands)
    }
    return unknownSubcommand(group, words[1] ?? "", commands)
  }
  const command = current ?? root
  if (help) return { type: "help", command, group: "" }
  const positionals = words.slice(command.name === "" ? 0 : command.name.split(" ").length)

  // 3. Values.
  const values = new Map<string, Array<string>>()
  for (const { word, value } of given) {
    const found = lookup(word, command.options)
    if (found === null) return unknownOption(word, command)
    values.set(found.key, [...(values.get(found.key) ?? []), value ?? ""])
  }
  const fault = command.notBuilt ? null : wordFault(positionals, command, groups)
  if (fault !== null) return { type: "usage", message: fault }
  const bound = command.bind(values, positionals)
  if ("expected" in bound) {
    const value = values.get(bound.key)?.at(-1) ?? ""
    return { type: "usage", message: `${optionName(bound.key)} takes ${bound.expected}, not "${value}"` }
  }
  const environment = (version: string): Environment => ({
    version,
    set: values.get("set") ?? [],
    verbose: values.has("verbose"),
    color: !values.has("noColor") && (process.env.NO_COLOR ?? "") === "" && process.env.TERM !== "dumb"
  })
  return { type: "execute", command, execute: (version) => bound.execute(environment(version)) }
}

/** The command that these words name so far; `root` when the first word is none; `null` when a second word decides. */
function commandNamed(
  words: ReadonlyArray<string>,
  commands: ReadonlyArray<Command>,
  groups: ReadonlySet<string>,
  root: Command
): Command | null {
  const [first = "", second] = words
  if (first === "help") return null
  const exact = commands.find((item) => item.name === (second === undefined ? first : `${first} ${second}`)) ??
    commands.find((item) => item.name === first)
  if (exact !== undefined && first !== "") return exact
  return groups.has(first) ? null : root
}

function wordFault(
  words: ReadonlyArray<string>,
  command: Command,
  groups: ReadonlySet<string>
): string | null {
  const missing = command.positionals.find((item, index) => item.required && words[index] === undefined)
  if (missing !== undefined) {
    return `${shown(command.name)} needs ${missing.placeholder} (${shown(command.name)} --help shows how)`
  }
  const extra = words[command.positionals.length]
  if (extra === undefined || command.positionals.at(-1)?.many === true) return null
  const near = command.name === "" ? nearest(words[0] ?? "", groups) : null
  if (near !== null) return `there is no command bezel ${words[0]}; did you mean bezel ${near}?`
  return `${shown(command.name)} does not take "${extra}" (${shown(command.name)} --help shows what it takes)`
}

function unknownOption(word: string, command: Command): Parsed {
  const names = Object.keys({ ...command.options, ...commonOptions }).map(optionName)
  const near = nearest(word, names)
  const hint = near === null ? `${shown(command.name)} --help lists them` : `did you mean ${near}?`
  return { type: "usage", message: `${shown(command.name)} has no option ${word}; ${hint}` }
}

function unknownSubcommand(group: string, word: string, commands: ReadonlyArray<Command>): Parsed {
  const names = commands.filter((item) => item.name.startsWith(`${group} `)).map((item) =>
    item.name.slice(group.length + 1)
  )
  if (word === "") return { type: "usage", message: `bezel ${group} needs one of: ${names.join(", ")}` }
  const near = nearest(word, names)
  const hint = near === null ? `there are ${names.join(", ")}` : `did you mean bezel ${group} ${near}?`
  return { type: "usage", message: `there is no command bezel ${group} ${word}; ${hint}` }
}
