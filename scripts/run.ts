/** Runs one tool of the repository with the repository's own Node, and says what failed. */
import { spawnSync } from "node:child_process"
import { delimiter, join } from "node:path"

export const root = join(import.meta.dirname, "..")

const environment = {
  ...process.env,
  PATH: join(root, "node_modules/.bin") + delimiter + (process.env.PATH ?? "")
}

/** True if the program ended with 0; its output goes where ours goes. */
export function run(program: string, ...argv: ReadonlyArray<string>): boolean {
  const { status, error } = spawnSync(program, argv, { cwd: root, env: environment, stdio: "inherit" })
  if (error !== undefined) console.error(`${program} could not be started: ${error.message}`)
  return status === 0
}

/** The same for a package's program in JavaScript, by file, so that no install script of that package is needed. */
export function runScript(file: string, ...argv: ReadonlyArray<string>): boolean {
  return run(process.execPath, join(root, file), ...argv)
}
