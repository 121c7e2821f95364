import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { takeCaptures, withCaptures } from "./captures.ts"
import { root } from "./command.ts"

it("the screens in docs/terminal.md are what a terminal shows (node scripts/captures.ts writes them)", {
  timeout: 120_000
}, async () => {
  const page = readFileSync(join(root, "docs/terminal.md"), "utf8")
  const captures = await takeCaptures()
  expect(page).toBe(withCaptures(page, captures))
  // Each of them is on the page.
  const shown = [...page.matchAll(/<!-- screen: (.*?) -->/g)].map(([, name]) => name)
  expect(shown.sort()).toEqual([...captures.keys()].sort())
})
