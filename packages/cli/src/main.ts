/**
 * The command proper: what the line asks for is looked up, run, and its end becomes an exit code.
 *
 * Whatever a command fails with becomes one line on stderr; `--verbose` adds the stack.
 */
import { sharingAgentModule } from "./agent-module.ts"
import { commandHelp, groupHelp } from "./arguments/help.ts"
import { parse } from "./arguments/parse.ts"
import { commands } from "./commands.ts"
import { exitCode, isExit } from "./exit.ts"
import { outliveReaders } from "./host/gone.ts"
import { printable } from "./run/text.ts"

/** For coordinators, which start it; it stands in no table, so that no help and no completion offers it. */
const hostCommand = "host-session"

export async function main(argv: ReadonlyArray<string>, version: string): Promise<void> {
  let lostOutput = false
  outliveReaders((error) => {
    // It may come again with each write, and behind the end of the command.
    if (!lostOutput) tell(`stdout cannot be written: ${error.message}`)
    lostOutput = true
    process.exitCode = exitCode.failed
  })
  const code = await execute(argv, version)
  process.exitCode = lostOutput ? exitCode.failed : code
}

/** The reason may quote what was typed, or a file of somebody else. */
const tell = (reason: string): void => {
  process.stderr.write(`bezel: ${printable(reason.replace(/\s*\n\s*/g, " "))}\n`)
}

async function execute(argv: ReadonlyArray<string>, version: string): Promise<number> {
  const parsed = argv[0] === hostCommand
    // Which settings hold for it stands in its order, so it is ready for plugin files in any case.
    ? { type: "execute" as const, execute: async (its: string) => (await sharingAgentModule()).hostSession(its) }
    : parse(argv, commands)
  const width = Math.min(process.stdout.columns ?? 80, 120)
  switch (parsed.type) {
    case "version":
      process.stdout.write(`${version}\n`)
      return exitCode.answered
    case "help":
      process.stdout.write(
        parsed.command === null
          ? groupHelp(parsed.group, commands, width)
          : commandHelp(parsed.command, commands, width)
      )
      return exitCode.answered
    case "usage":
      tell(parsed.message)
      return exitCode.usage
    case "execute":
      try {
        return await parsed.execute(version)
      } catch (error) {
        if (!isExit(error)) throw error
        tell(error.message)
        return error.code
      }
  }
}
