/** A whole task in a real repository with a test suite of its own: read, edit, run the tests, mend, answer. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { JsonObject } from "../../packages/core/src/json/index.ts"
import {
  type RecordedRequest,
  type ServerReply,
  startModelServer
} from "../../packages/core/src/testing/model-server.ts"
import { type Home, makeHome } from "./command.ts"

const broken = `/** Cents as euros, with two digits. */
export const euros = (cents) => {
  const whole = Math.floor(cents / 100)
  return \`\${whole}.\${cents % 100}\`
}
`
const suite = `import assert from "node:assert/strict"
import { test } from "node:test"
import { euros } from "../src/euros.mjs"
test("has two digits", () => assert.equal(euros(1205), "12.05"))
test("knows debts", () => assert.equal(euros(-1205), "-12.05"))
`
const runTests = "node --test test/euros.test.mjs"

const git = (home: Home, ...argv: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", home.work, "-c", "user.name=t", "-c", "user.email=t@t", ...argv], { encoding: "utf8" })

const repository = () => {
  const home = makeHome()
  home.write("work/src/euros.mjs", broken)
  home.write("work/test/euros.test.mjs", suite)
  git(home, "init", "-q")
  git(home, "add", ".")
  git(home, "commit", "-q", "-m", "Start")
  return home
}

const passes = (home: Home): boolean => {
  try {
    execFileSync(process.execPath, ["--test", "test/euros.test.mjs"], {
      cwd: home.work,
      env: { PATH: process.env.PATH }
    })
    return true
  } catch {
    return false
  }
}

/** The text of the newest tool result in a request. */
const lastResult = ({ body }: RecordedRequest): string => {
  const messages = Array.isArray(body.messages) ? body.messages : []
  return JSON.stringify(messages.at(-1) ?? null)
}

const step = (name: string, args: JsonObject) => ({ calls: [{ name, args }] })

describe("a task in a repository", { timeout: 90_000 }, () => {
  it("is done by a model that reads, edits, runs the tests, mends what failed, and answers", async () => {
    const seen: Array<string> = []
    const then = (reply: ServerReply) => (request: RecordedRequest) => {
      seen.push(lastResult(request))
      return reply
    }
    const server = await startModelServer(
      step("read", { path: "src/euros.mjs" }),
      then(step("edit", {
        path: "src/euros.mjs",
        oldText: "${cents % 100}`",
        newText: '${String(cents % 100).padStart(2, "0")}`'
      })),
      then(step("bash", { command: runTests })),
      then(step("edit", {
        path: "src/euros.mjs",
        oldText: "  const whole = Math.floor(cents / 100)\n",
        newText: "  if (cents < 0) return `-${euros(-cents)}`\n  const whole = Math.floor(cents / 100)\n"
      })),
      then(step("bash", { command: runTests })),
      then({ text: "Both tests pass: two digits now, and debts keep their sign." })
    )
    const home = repository()
    home.useServer(server, { permissions: { edit: "allow", bash: { "node --test *": "allow" } } })
    const ended = await home.run(["run", "make the tests pass"])
    await server.close()
    expect(ended).toMatchObject({ code: 0, stdout: "Both tests pass: two digits now, and debts keep their sign.\n" })
    expect(seen[0]).toContain("Cents as euros")
    expect(seen[2]).toMatch(/not ok|✖ knows debts/)
    expect(seen[2]).toContain("knows debts")
    expect(seen[4]).toMatch(/pass 2/)
    expect(passes(home)).toBe(true)
    expect(git(home, "status", "--porcelain")).toBe(" M src/euros.mjs\n")
    expect(git(home, "log", "--oneline").trim().split("\n")).toHaveLength(1)
  })

  it("is done without any model, by the offline grammar, in one prompt and its continuation", async () => {
    const home = repository()
    const first = await home.run([
      "run",
      "--allow",
      "edit",
      "--allow",
      "bash(node --test *)",
      `read src/euros.mjs then edit src/euros.mjs: \${cents % 100}\` => \${String(cents % 100).padStart(2, "0")}\` then run ${runTests}`
    ])
    expect(first.code).toBe(0)
    expect(first.stdout).toContain("knows debts")
    expect(passes(home)).toBe(false)
    const second = await home.run([
      "run",
      "--continue",
      "--allow",
      "edit",
      "--allow",
      "bash(node --test *)",
      `edit src/euros.mjs: const whole => if (cents < 0) return "-" + euros(-cents); const whole then run ${runTests}`
    ])
    expect(second.code).toBe(0)
    expect(second.stdout).toMatch(/pass 2/)
    expect(passes(home)).toBe(true)
    expect(readFileSync(join(home.work, "src/euros.mjs"), "utf8")).toContain("padStart")
  })
})
