/**
 * Everything that continuous integration runs: build the command, the static checks, then all tests.
 * Arguments go to vitest (`npm test -- test/core`); with any, the static checks are left out.
 */
import { buildCommand } from "./build.ts"
import { run, runScript } from "./run.ts"

const selection = process.argv.slice(2)
await buildCommand()
const checked = selection.length > 0 || runScript("scripts/check.ts", "--static")
const tested = run("vitest", "run", ...selection)
if (!checked) console.error("test: the static checks failed (see above)")
process.exitCode = checked && tested ? 0 : 1
