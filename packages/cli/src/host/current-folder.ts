import { Exit, exitCode } from "../exit.ts"

/** The folder that the command runs in; an `Exit` where it is gone. */
export function currentFolder(): string {
  try {
    return process.cwd()
  } catch {
    throw new Exit(exitCode.usage, "the current folder was deleted; change to another one, or name one with --dir")
  }
}
