/** What /help shows: commands with a name after the slash, keys that are bound, and those that always are. */
import { type Block, group, span, text } from "@bezel/tui"

/** Columns of a name, and those that a description beside it has at least. */
const nameColumns = 28
const leastDescription = 30

export const helpBlocks = (
  commands: ReadonlyArray<
    {
      readonly value: { readonly slash?: string; readonly argument?: string; readonly description: string }
      readonly key: string
    }
  >,
  keys: ReadonlyArray<{ readonly key: string; readonly binding: { readonly command: string } }>,
  columns: number
): ReadonlyArray<Block> => {
  const described = new Map(commands.map((command) => [command.key, command.value.description]))
  const line = (name: string, description: string): Block => {
    const words = span(description, { color: "muted" })
    return columns < nameColumns + leastDescription
      ? group([text(span(name, { color: "accent" }), { wrap: "clip" }), text(words, { indent: 2 })])
      : text(words, { marker: span(`${name} `.padEnd(nameColumns), { color: "accent" }) })
  }
  return [
    group(
      commands.flatMap(({ value }) =>
        value.slash === undefined
          ? []
          : [line(`/${value.slash}${value.argument === undefined ? "" : ` ${value.argument}`}`, value.description)]
      )
    ),
    text(""),
    group(keys.map(({ binding, key }) => line(key, described.get(binding.command) ?? binding.command))),
    line("enter", "Send; while the model works: at its next step"),
    line("shift+enter, ctrl+j", "New line"),
    line("@file", "Attach a file to the prompt"),
    line("!command", "Run a line in the shell"),
    line("ctrl+z", "Give the terminal to the shell; fg comes back")
  ]
}
