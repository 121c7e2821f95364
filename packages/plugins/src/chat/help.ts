/** What /help shows: commands with a name after the slash, keys that are bound, and those that always are. */
import { type Block, group, span, text } from "@bezel/tui"

export const helpBlocks = (
  commands: ReadonlyArray<
    {
      readonly value: { readonly slash?: string; readonly argument?: string; readonly description: string }
      readonly key: string
    }
  >,
  keys: ReadonlyArray<{ readonly key: string; readonly binding: { readonly command: string } }>
): ReadonlyArray<Block> => {
  const described = new Map(commands.map((command) => [command.key, command.value.description]))
  const line = (name: string, description: string): Block =>
    text([span(name.padEnd(24), { color: "accent" }), span(description, { color: "muted" })], { wrap: "clip" })
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
