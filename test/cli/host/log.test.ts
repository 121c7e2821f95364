import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { lineWriter } from "../../../packages/cli/src/host/log.ts"

const makeFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "bezel-log-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

it("the log appends whole lines to a private file, which is made with the first one", () => {
  const folder = join(makeFolder(), "log")
  const write = lineWriter(folder)
  expect(statSync(folder, { throwIfNoEntry: false })).toBe(undefined)
  write('{"a":1}')
  write('{"b":2}')
  const file = join(folder, "bezel.jsonl")
  expect(readFileSync(file, "utf8")).toBe('{"a":1}\n{"b":2}\n')
  expect([statSync(file).mode & 0o777, statSync(folder).mode & 0o777]).toEqual([0o600, 0o700])
})

it("a log that has grown too large is set aside, once", () => {
  const folder = makeFolder()
  writeFileSync(join(folder, "bezel.1.jsonl"), "oldest")
  writeFileSync(join(folder, "bezel.jsonl"), "x".repeat(4 * 1024 * 1024 + 1))
  const write = lineWriter(folder)
  write("new")
  expect(readFileSync(join(folder, "bezel.jsonl"), "utf8")).toBe("new\n")
  expect(statSync(join(folder, "bezel.1.jsonl")).size).toBe(4 * 1024 * 1024 + 1)
})

it("a folder that cannot be written turns the log off, not the program", () => {
  const file = join(makeFolder(), "file")
  writeFileSync(file, "")
  const write = lineWriter(join(file, "log"))
  expect(() => write("line")).not.toThrow()
})
