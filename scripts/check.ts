/**
 * The static checks: types, lint, format, unused code, import rules, documentation. All of them run, also when one fails;
 * the last line names those that failed. `--fix` formats and mends what can be mended first; `--static` leaves out the
 * rules that are written as tests, for a caller that runs all tests anyway.
 */
import { run, runScript } from "./run.ts"

const fix = process.argv.includes("--fix")

const checks: ReadonlyArray<readonly [name: string, passes: () => boolean]> = [
  ["types", () => run("tsc", "--project", ".")],
  ["lint", () => run("oxlint", "--quiet", ...(fix ? ["--fix"] : []))],
  ["format", () => runScript("scripts/format.ts", ...(fix ? [] : ["--check"]))],
  ["unused code", () => run("knip", "--no-progress", "--no-config-hints")],
  ["import rules and documentation", () => run("vitest", "run", "test/repo", "--reporter=dot")]
]

const wanted = process.argv.includes("--static") ? checks.slice(0, -1) : checks
const failed = wanted.filter(([name, passes]) => {
  console.log(`- ${name}`)
  return !passes()
})
if (failed.length > 0) {
  console.error(`check: failed: ${failed.map(([name]) => name).join(", ")}`)
  process.exitCode = 1
}
