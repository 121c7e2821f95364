import { execFileSync } from "node:child_process"
import { expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { runInTerminal } from "../../e2e/terminal.ts"

it("the terminal shows the branch and what has changed, and follows both", async () => {
  const home = makeHome()
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { cwd: home.work, stdio: "pipe" })
  git("init", "-q", "-b", "main")
  home.write("work/a.txt", "a\n")
  git("add", ".")
  git("commit", "-q", "-m", "first")
  const terminal = runInTerminal(home, "bezel")
  await terminal.shows(/~\/work\s+main\s/)
  home.write("work/b.txt", "b\n")
  git("add", "b.txt")
  await terminal.shows(/~\/work\s+main \+1/)
  git("checkout", "-q", "-b", "other")
  await terminal.shows(/~\/work\s+other \+1/)
  expect(terminal.text()).toContain("bezel/offline")
})
