/** Help, made from the table of commands: what stands here is what the parser takes. */
import type { Command } from "./command.ts"
import { type Option, optionName, type Options } from "./option.ts"
import { commonOptions } from "./parse.ts"

const indent = (lines: ReadonlyArray<string>): string => lines.map((line) => `  ${line}`).join("\n")

/** Two columns, the second wrapped to the width. */
function table(rows: ReadonlyArray<readonly [left: string, right: string]>, width: number): string {
  const left = Math.min(30, Math.max(...rows.map(([name]) => name.length)))
  const room = Math.max(24, width - left - 4)
  return indent(rows.flatMap(([name, description]) => {
    const lines = wrap(description, room)
    const first = name.length > left ? [name] : [`${name.padEnd(left)}  ${lines.shift() ?? ""}`]
    return [...first, ...lines.map((line) => `${"".padEnd(left)}  ${line}`)].map((line) => line.trimEnd())
  }))
}

function wrap(text: string, width: number): Array<string> {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

const written = (key: string, option: Option<unknown>): string =>
  (option.short === null ? "" : `-${option.short}, `) +
  optionName(key) +
  (option.placeholder === null ? "" : ` ${option.placeholder}`)

const optionRows = (options: Options) =>
  Object.entries(options).map(([key, option]) => [written(key, option), option.description] as const)

const usage = (command: Command): string =>
  [
    "bezel",
    command.name,
    ...command.positionals.map((item) => item.required ? item.placeholder : `[${item.placeholder}]`)
  ]
    .filter((word) => word !== "")
    .join(" ")

/** Help of one command; for the root command also the list of all others. */
export function commandHelp(command: Command, commands: ReadonlyArray<Command>, width: number): string {
  const options = { ...command.options, ...commonOptions }
  const { version, ...rest } = options
  const sections = [
    command.summary.charAt(0).toUpperCase() + command.summary.slice(1) + ".",
    `Usage:\n${indent([`${usage(command)} [options]`])}`,
    ...(command.name === "" ? [`Commands:\n${table(summaries(commands), width)}`] : []),
    `Options:\n${table(optionRows(command.name === "" ? { ...rest, version } : rest), width)}`,
    ...(command.examples.length === 0 ? [] : [`Examples:\n${indent(command.examples)}`])
  ]
  return sections.join("\n\n") + "\n"
}

const summaries = (commands: ReadonlyArray<Command>) =>
  commands.filter((item) => item.name !== "").map((item) => [usage(item).slice("bezel ".length), item.summary] as const)

/** Help of a word that is the start of several commands. */
export function groupHelp(group: string, commands: ReadonlyArray<Command>, width: number): string {
  const members = commands.filter((item) => item.name.startsWith(`${group} `))
  const examples = members.flatMap((item) => item.examples.slice(0, 1))
  return [
    `Usage:\n${indent([`bezel ${group} <command> [options]`])}`,
    `Commands:\n${table(summaries(members), width)}`,
    ...(examples.length === 0 ? [] : [`Examples:\n${indent(examples)}`])
  ].join("\n\n") + "\n"
}
