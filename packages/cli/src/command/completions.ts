import type { Execute } from "../arguments/command.ts"
import { completions, shells } from "../arguments/completions.ts"
import { commands } from "../commands.ts"
import { Exit, exitCode } from "../exit.ts"

/** `bezel completions SHELL` */
export const printCompletions: Execute<{}> = async (_, [name = ""]) => {
  const shell = shells.find((item) => item === name)
  if (shell === undefined) {
    throw new Exit(exitCode.usage, `there are completions for ${shells.join(", ")}, not for "${name}"`)
  }
  process.stdout.write(completions(shell, commands))
  return exitCode.answered
}
