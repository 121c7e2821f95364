import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { bash, edit, git, world, write } from "./fixture.ts"

describe("taking back a turn", () => {
  it.live("puts back what write and edit changed, rewinds the conversation, and clearing brings both back", () =>
    Effect.gen(function*() {
      const { ask, clear, context, read, stage } = yield* world([
        "hello",
        write("new/deep/b.txt", "made\n"),
        edit("a.txt", "one", "two"),
        "done"
      ], { files: { "a.txt": "one\n" } })
      yield* ask("first")
      yield* ask("second")
      expect(read("a.txt")).toBe("two\n")
      const planned = yield* stage("last", { dryRun: true })
      expect(planned).toMatchObject({ status: "planned", prompt: "second" })
      expect(read("a.txt")).toBe("two\n")
      const staged = yield* stage()
      expect(staged).toMatchObject({ status: "staged", prompt: "second", conflicts: [], notes: [] })
      expect(staged.files.map(({ action, path }) => [action, path.split("/").at(-1)])).toEqual([
        ["change", "a.txt"],
        ["remove", "b.txt"]
      ])
      expect(staged.files[0]?.diff).toContain("-two\n+one\n")
      expect(read("a.txt")).toBe("one\n")
      expect(read("new")).toBeNull()
      expect(yield* context).not.toContain("second")
      expect(yield* context).toContain("first")
      expect(yield* clear).toMatchObject({ status: "cleared", prompt: "second" })
      expect(read("a.txt")).toBe("two\n")
      expect(read("new/deep/b.txt")).toBe("made\n")
      expect(yield* context).toContain("second")
    }).pipe(Effect.scoped))

  for (const isRepository of [true, false]) {
    it.live(`puts back what a command changed, made and deleted, ${isRepository ? "in" : "outside of"} a repository`, () =>
      Effect.gen(function*() {
        const { ask, clear, directory, file, read, stage } = yield* world([
          bash(
            "printf 'x\\r\\n' > a.txt; rm gone.txt; mkdir -p n/m; echo new > n/m/c.txt; chmod +x run.sh; ln -s a.txt link; printf '\\000\\001' > bin"
          ),
          "done"
        ], { files: { "a.txt": "1\r\n2\n", "gone.txt": "here", "run.sh": "true\n", bin: "\0\0" }, isRepository })
        yield* ask("go")
        expect(read("n/m/c.txt")).toBe("new\n")
        const staged = yield* stage()
        expect(staged.conflicts).toEqual([])
        expect(read("a.txt")).toBe("1\r\n2\n")
        expect(read("gone.txt")).toBe("here")
        expect(read("bin")).toBe("\0\0")
        expect(fs.existsSync(file("n"))).toBe(false)
        expect(fs.existsSync(file("link"))).toBe(false)
        expect(fs.statSync(file("run.sh")).mode & 0o111).toBe(0)
        if (isRepository) expect(git(directory, "status", "--porcelain")).toBe("")
        yield* clear
        expect(read("a.txt")).toBe("x\r\n")
        expect(read("gone.txt")).toBeNull()
        expect(fs.readlinkSync(file("link"))).toBe("a.txt")
        expect(fs.statSync(file("run.sh")).mode & 0o100).toBe(0o100)
      }).pipe(Effect.scoped))
  }
})
