/** A patch over several files whose process is killed between two of them: what the model is told when the session goes on. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { messagesOf, serve } from "./run-fixture.ts"

/** Ends the process by SIGKILL right after the so-manieth file has been put in its place. */
const killAfter = (count: number, suffix: string) => `
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"
const rename = fs.rename
let left = ${count}
fs.rename = async (from, to) => {
  if (left === 0 && String(to).endsWith("${suffix}")) process.kill(process.pid, "SIGKILL")
  await rename(from, to)
  if (String(to).endsWith("${suffix}") && --left === 0) process.kill(process.pid, "SIGKILL")
}
syncBuiltinESMExports()
`

const patch = [
  "*** Begin Patch",
  "*** Update File: one.txt",
  "@@",
  "-1",
  "+one",
  "*** Delete File: gone.txt",
  "*** Update File: from.txt",
  "*** Move to: to.txt",
  "@@",
  "-f",
  "+t",
  "*** Update File: two.txt",
  "@@",
  "-2",
  "+two",
  "*** End Patch"
].join("\n")

const crashed = async (kill: string) => {
  const home = makeHome()
  for (const [name, content] of Object.entries({ one: "1", two: "2", from: "f", gone: "g" })) {
    home.write(`work/${name}.txt`, `${content}\n`)
  }
  const server = await serve({ calls: [{ id: "c1", name: "apply_patch", args: { patch } }] }, { text: "I see." }, {
    text: "Done."
  })
  home.useServer(server)
  const preload = home.write("kill.mjs", kill)
  const killed = await home.run(["run", "--yes", "go"], { env: { NODE_OPTIONS: `--import=${preload}` } })
  expect(killed.signal ?? killed.code).not.toBe(0)
  const read = (name: string) => {
    const path = join(home.work, `${name}.txt`)
    return existsSync(path) ? readFileSync(path, "utf8").trim() : null
  }
  /** What the model is told of the call when the session goes on. */
  const goOn = async () => {
    expect(await home.run(["run", "--continue", "--yes", "what happened?"])).toMatchObject({ code: 0 })
    const told = messagesOf(server.requests.at(-1)?.body).filter(({ role }) => role === "tool")
    expect(told.map(({ tool_call_id }) => tool_call_id)).toEqual(["c1"])
    return String(told[0]?.content)
  }
  return { home, read, goOn }
}

it("is told file by file, nothing more is written, and what is moved is never gone", async () => {
  const { goOn, read } = await crashed(killAfter(2, ".txt"))
  const files = () => ["one", "to", "from", "two", "gone"].map(read)
  expect(files()).toEqual(["one", "t", "f", "2", "g"])
  expect(await goOn()).toBe([
    "Bezel ended while this patch was being written, so it is done only in part.",
    "Done:",
    "M one.txt",
    "A to.txt",
    "Not done:",
    "D gone.txt",
    "D from.txt",
    "M two.txt",
    "Make another patch for what is not done; read the files first."
  ].join("\n"))
  expect(files()).toEqual(["one", "t", "f", "2", "g"])
})

it("names what somebody has changed since as not known", async () => {
  const { goOn, home, read } = await crashed(killAfter(2, ".txt"))
  home.write("work/two.txt", "by hand\n")
  expect(await goOn()).toContain("Not known, for these have been changed since or cannot be read:\nM two.txt")
  expect(read("two")).toBe("by hand")
})

it("is made when the session goes on if the process was killed before the first file", async () => {
  const { goOn, read } = await crashed(killAfter(0, "one.txt"))
  expect(["one", "to", "from", "two", "gone"].map(read)).toEqual(["1", null, "f", "2", "g"])
  expect(await goOn()).toMatch(/^Done:\nM one.txt\n/)
  expect(["one", "to", "from", "two", "gone"].map(read)).toEqual(["one", "t", null, "two", null])
})
