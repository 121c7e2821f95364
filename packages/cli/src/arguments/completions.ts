/** Completion scripts for shells, made from the table of commands. Words that are not options complete as files. */
import type { Command } from "./command.ts"
import { optionName } from "./option.ts"
import { commonOptions } from "./parse.ts"

export const shells = ["bash", "zsh", "fish"] as const
export type Shell = (typeof shells)[number]

interface Level {
  /** Words before the one that is completed. */
  readonly path: string
  readonly words: ReadonlyArray<string>
}

/** What may follow each path of words: the next command words and the options. */
function levels(commands: ReadonlyArray<Command>): ReadonlyArray<Level> {
  const paths = new Set([
    "",
    ...commands.flatMap((item) => item.name.split(" ").map((_, at, all) => all.slice(0, at + 1).join(" ")))
  ])
  return [...paths].map((path) => {
    const prefix = path === "" ? "" : `${path} `
    const next = commands
      .filter((item) => item.name.startsWith(prefix) && item.name !== path)
      .map((item) => item.name.slice(prefix.length).split(" ")[0] ?? "")
    const own = commands.find((item) => item.name === path)?.options ?? {}
    return { path, words: [...new Set([...next, ...Object.keys({ ...own, ...commonOptions }).map(optionName)])] }
  })
}

/** Every option that is followed by a value, so that a value is not taken for a command. */
const valueOptions = (commands: ReadonlyArray<Command>): ReadonlyArray<string> => [
  ...new Set(
    [...commands.map((item) => item.options), commonOptions].flatMap((options) =>
      Object.entries(options).filter(([, option]) => option.placeholder !== null).map(([key]) => optionName(key))
    )
  )
]

export function completions(shell: Shell, commands: ReadonlyArray<Command>): string {
  const all = levels(commands)
  const valued = valueOptions(commands)
  const names = [...new Set(all.map((level) => level.path).filter((path) => path !== ""))]
  if (shell === "fish") return fish(commands)
  const script = `_bezel() {
  local words="" before="" word index=1 current="\${COMP_WORDS[COMP_CWORD]}"
  while [ "$index" -lt "$COMP_CWORD" ]; do
    word="\${COMP_WORDS[$index]}"
    case "$word" in
      ${valued.join("|")}) index=$((index + 1)) ;;
      -*) ;;
      *) case "\${before:+$before }$word" in
        ${names.map((name) => `"${name}"`).join("|")}) before="\${before:+$before }$word" ;;
      esac ;;
    esac
    index=$((index + 1))
  done
  case "$before" in
${all.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}
complete -o filenames -F _bezel bezel
`
  return shell === "bash"
    ? `# bash: bezel completions bash > ~/.local/share/bash-completion/completions/bezel\n${script}`
    : `# zsh: put this into .zshrc: source <(bezel completions zsh)\nautoload -U +X bashcompinit && bashcompinit\n${script}`
}

const quote = (text: string): string => `'${text.replaceAll("'", "\\'")}'`

function fish(commands: ReadonlyArray<Command>): string {
  const lines = ["# fish completion of bezel: bezel completions fish > ~/.config/fish/completions/bezel.fish"]
  for (const { name, options, summary } of commands) {
    const [first = "", second] = name.split(" ")
    const before = second === undefined ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${first}`
    if (name !== "") lines.push(`complete -c bezel -n ${quote(before)} -a ${second ?? first} -d ${quote(summary)}`)
    const inside = name === ""
      ? "__fish_use_subcommand"
      : name.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ")
    for (const [key, option] of Object.entries({ ...options, ...(name === "" ? commonOptions : {}) })) {
      const value = option.placeholder === null
        ? ""
        : option.choices === null
        ? " -r"
        : ` -x -a ${quote(option.choices.join(" "))}`
      lines.push(
        `complete -c bezel -n ${quote(inside)} -l ${optionName(key).slice(2)}${value} -d ${quote(option.description)}`
      )
    }
  }
  return lines.join("\n") + "\n"
}
