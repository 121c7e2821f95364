import { decodeHead, describeFault, parseMarkdown, readMarkdown } from "@bezel/plugins/markdown"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const faultOf = (text: string) => {
  const read = parseMarkdown(text)
  return Result.isFailure(read) ? describeFault("a.md", read.failure) : null
}

describe("a markdown file", () => {
  it.each([
    ["---\na: 1\n---\nbody\n", { a: 1 }, "body"],
    ["---\r\na: 1\r\n---\r\nbody\r\n", { a: 1 }, "body"],
    ["\uFEFF---\na: 1\n---\n", { a: 1 }, ""],
    ["---\n---\nbody", {}, "body"],
    ["\uFEFFbody", {}, "body"],
    ["text\n---\na: 1\n---\n", {}, "text\n---\na: 1\n---"],
    ["", {}, ""]
  ])("is front matter and what follows it: %j", (text, head, body) => {
    expect(Result.getOrThrow(parseMarkdown(text))).toMatchObject({ head, body })
  })

  it.each([
    ["---\nname: x\ndescription: a: b\n---\n", /^a\.md:3: its front matter is not YAML \(Invalid colon/],
    ["---\na: [1,\n---\n", /^a\.md:2: its front matter is not YAML/],
    ["---\n- a\n- b\n---\n", /^a\.md:2: its front matter is no list of members/],
    ["---\na: 1\nbody without an end\n", /^a\.md:1: its front matter is not ended by a line of ---$/]
  ])("that is broken is told with its line: %j", (text, fault) => {
    expect(faultOf(text)).toMatch(fault)
  })

  it("has the line of a member that is not what it should be", () => {
    const read = Result.getOrThrow(parseMarkdown("---\na: ok\nsize: much\n---\n"))
    const decoded = decodeHead(Schema.Struct({ a: Schema.String, size: Schema.Finite }), read, true)
    expect(Result.isFailure(decoded) && describeFault("a.md", decoded.failure)).toMatch(/^a\.md:3: .*number.*"size"/)
  })

  it.effect("is not read where a project's link leads out of it, nor when it is too large or no text", () =>
    Effect.gen(function*() {
      const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-markdown-")))
      yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(home, { recursive: true })))
      fs.mkdirSync(path.join(home, "p"))
      fs.writeFileSync(path.join(home, "secret.md"), "k-secret")
      fs.symlinkSync("../secret.md", path.join(home, "p/a.md"))
      fs.writeFileSync(path.join(home, "p/large.md"), "x".repeat(300_000))
      fs.writeFileSync(path.join(home, "p/odd.md"), Buffer.from([0xff, 0xfe]))
      const read = (name: string) =>
        Effect.map(
          readMarkdown(path.join(home, "p", name), path.join(home, "p")),
          (result) => result === null ? "absent" : Result.isFailure(result) ? result.failure.what : result.success.body
        )
      expect(yield* read("a.md")).toBe("it is a link that leads out of the project")
      expect(yield* read("large.md")).toBe("it is larger than 256 KiB")
      expect(yield* read("odd.md")).toBe("it is not UTF-8 text")
      expect(yield* read("none.md")).toBe("absent")
      expect(yield* read("../secret.md")).toBe("it is a link that leads out of the project")
    }))
})
