import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as FileSystem from "node:fs"
import { workspace } from "./workspace.ts"

const patch = (...lines: ReadonlyArray<string>) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n")
const update = (...lines: ReadonlyArray<string>) => patch("*** Update File: a.txt", ...lines)

describe("apply_patch", () => {
  it.effect("adds, updates, moves and deletes files by one patch, and says what it did", () =>
    Effect.gen(function*() {
      const { bytes, call, path, write } = yield* workspace()
      yield* write("old.ts", "one\ntwo\nthree\n")
      yield* write("gone.ts", "x\n")
      yield* write("stay.ts", "a\nb\n")
      FileSystem.chmodSync(path("old.ts"), 0o755)
      const result = yield* call("apply_patch", {
        patch: patch(
          "*** Add File: deep/new.ts",
          "+first",
          "+",
          "+third",
          "*** Update File: old.ts",
          "*** Move to: moved/old.ts",
          "@@",
          " one",
          "-two",
          "+zwei",
          "*** Update File: stay.ts",
          "@@",
          "-b",
          "+c",
          "*** Delete File: gone.ts"
        )
      })
      expect(result).toMatchObject({
        isError: false,
        content: [{ text: "Done:\nA deep/new.ts\nD old.ts\nA moved/old.ts\nM stay.ts\nD gone.ts" }]
      })
      expect(String(yield* bytes("deep/new.ts"))).toBe("first\n\nthird\n")
      expect(String(yield* bytes("moved/old.ts"))).toBe("one\nzwei\nthree\n")
      expect(String(yield* bytes("stay.ts"))).toBe("a\nc\n")
      expect([path("old.ts"), path("gone.ts")].map(FileSystem.existsSync)).toEqual([false, false])
      expect(result.details).toMatchObject({
        files: expect.arrayContaining([{ path: path("stay.ts"), change: "updated" }]),
        diff: expect.stringContaining("-b\n+c\n")
      })
    }))

  const fits: ReadonlyArray<readonly [what: string, before: string, hunks: ReadonlyArray<string>, after: string]> = [
    ["a hunk without an @@ line", "a\nb\nc\n", [" a", "-b", "+B"], "a\nB\nc\n"],
    ["several hunks in order", "a\nb\nc\nd\ne\n", ["@@", "-a", "+A", "@@", " d", "-e", "+E"], "A\nb\nc\nd\nE\n"],
    ["a place after a line of @@", "f1\nx\nf2\nx\n", ["@@ f2", "-x", "+y"], "f1\nx\nf2\ny\n"],
    ["a place after several lines of @@", "A\nf\nx\nB\nf\nx\n", ["@@ B", "@@ f", "-x", "+y"], "A\nf\nx\nB\nf\ny\n"],
    ["the line of @@ again as context", "f1\nx\nf2\nx\n", ["@@ f2", " f2", "-x", "+y"], "f1\nx\nf2\ny\n"],
    ["numbers of lines as in a unified diff", "a\nb\n", ["@@ -2,1 +2,1 @@", "-b", "+c"], "a\nc\n"],
    ["only additions after a line of @@", "a\nb\n", ["@@ a", "+x"], "a\nx\nb\n"],
    ["only additions, which go to the end", "a\nb\n", ["@@", "+x"], "a\nb\nx\n"],
    ["the end of the file", "x\na\nx\n", ["@@", "-x", "+y", "*** End of File"], "x\na\ny\n"],
    ["CRLF, which stays", "a\r\nb\r\nc\r\n", [" a", "-b", "+B", "+B2"], "a\r\nB\r\nB2\r\nc\r\n"],
    ["mixed line ends", "a\r\nb\nc\r\n", ["-b", "+B"], "a\r\nB\nc\r\n"],
    ["a byte order mark", "\uFEFFa\nb\n", [" a", "-b", "+B"], "\uFEFFa\nB\n"],
    ["no line end at the end, which stays so", "a\nb", ["-b", "+B"], "a\nB"],
    ["an addition after a last line without end", "a\nb", [" b", "+c"], "a\nb\nc"],
    ["blank space at line ends that the model left out", "a  \nb\t\nc\n", [" a", "-b", "+B"], "a  \nB\nc\n"],
    [
      "indentation that the model got wrong in the context",
      "    if x:\n        y\n",
      [" if x:", "-y", "+        z"],
      "    if x:\n        z\n"
    ],
    ["an empty line for an empty line of context", "a\n\nb\n", [" a", "", "-b", "+B"], "a\n\nB\n"],
    ["an empty line before the end", "a\nb\n", ["-b", "+B", ""], "a\nB\n"],
    ["lines that look like markers", "*** x\n@@ y\n", [" *** x", "-@@ y", "+@@ z"], "*** x\n@@ z\n"],
    ["CJK, emoji and combining marks", "数据\n🎉\ne\u0301\n", [" 数据", "-🎉", "+👩‍👩‍👧"], "数据\n👩‍👩‍👧\ne\u0301\n"],
    ["an empty file", "", ["+a"], "a\n"],
    ["everything removed", "a\n", ["-a"], ""],
    ["the first of several places", "x\nx\n", ["-x", "+y"], "y\nx\n"]
  ]
  it.effect.each(fits)("fits a hunk with %s", ([, before, hunks, after]) =>
    Effect.gen(function*() {
      const { bytes, good, write } = yield* workspace()
      yield* write("a.txt", before)
      yield* good("apply_patch", { patch: update(...hunks) })
      expect(JSON.stringify(String(yield* bytes("a.txt")))).toBe(JSON.stringify(after))
    }))

  it.effect("leaves bytes that are no UTF-8 as they are", () =>
    Effect.gen(function*() {
      const { bytes, good, write } = yield* workspace()
      yield* write("a.txt", Buffer.from("a\xff\nb\n", "latin1"))
      yield* good("apply_patch", { patch: update("-b", "+ü") })
      expect((yield* bytes("a.txt")).toString("latin1")).toBe("a\xff\n\u00c3\u00bc\n")
    }))

  const misfits: ReadonlyArray<readonly [what: string, patch: string, reason: RegExp]> = [
    [
      "a hunk whose line is not there",
      update("@@", " one", "-nowhere", "+x"),
      /A hunk of a\.txt \(line 3 of the patch\) does not fit: the file has no line "nowhere"\. .*Nothing was changed\./
    ],
    [
      "lines that do not follow each other",
      update("-one", "-three"),
      /but not one after the other: "one" and the 1 lines/
    ],
    [
      "a hunk behind its place",
      update("-three", "+3", "@@", "-one", "+1"),
      /its lines are at line 1, before the place .* in the order of the file/
    ],
    ["an @@ that there is not", update("@@ class B", "-one", "+1"), /there is no line "class B" for its @@/],
    [
      "lines that are not at the end",
      update("-one", "+1", "*** End of File"),
      /at line 1, and not at the end of the file/
    ],
    [
      "a file to update that there is not",
      patch("*** Update File: b.txt", "-a"),
      /There is no file b\.txt to update\./
    ],
    ["a file to delete that there is not", patch("*** Delete File: b.txt"), /There is no file b\.txt to delete\./],
    ["a file to add that there is", patch("*** Add File: a.txt", "+x"), /a\.txt exists already, so it cannot be added/],
    [
      "a file to move to that there is",
      update("*** Move to: c.txt"),
      /a\.txt cannot be moved: c\.txt exists already/
    ],
    ["a directory", patch("*** Update File: dir", "-a", "+b"), /dir is a directory and cannot be written/],
    ["a NUL in a path", patch("*** Add File: a\u0000b", "+x"), /NUL character/]
  ]
  it.effect.each(misfits)(
    "refuses %s, and changes nothing of the whole patch",
    ([, text, reason]) =>
      Effect.gen(function*() {
        const { bad, bytes, path, write } = yield* workspace()
        yield* write("a.txt", "one\ntwo\nthree\n")
        yield* write("c.txt", "c\n")
        yield* write("dir/x", "")
        const whole = text.replace(
          "*** Begin Patch",
          "*** Begin Patch\n*** Update File: c.txt\n-c\n+C\n*** Add File: n.txt\n+n"
        )
        const shifted = new RegExp(reason.source.replace("line 3 of the patch", "line 8 of the patch"))
        expect(yield* bad("apply_patch", { patch: whole })).toMatch(shifted)
        expect(String(yield* bytes("a.txt")) + String(yield* bytes("c.txt"))).toBe("one\ntwo\nthree\nc\n")
        expect(FileSystem.existsSync(path("n.txt"))).toBe(false)
      })
  )

  it.effect("takes back what it wrote when a later write fails", () =>
    Effect.gen(function*() {
      const { bad, bytes, path, write } = yield* workspace()
      yield* write("a.txt", "a\n")
      yield* write("gone.txt", "g\n")
      const text = yield* bad("apply_patch", {
        patch: patch(
          "*** Update File: a.txt",
          "-a",
          "+A",
          "*** Delete File: gone.txt",
          "*** Add File: n.txt",
          "+n",
          "*** Add File: n.txt/below",
          "+x"
        )
      })
      expect(text).toMatch(/Cannot write n\.txt\/below: .*Nothing was changed\./)
      expect([String(yield* bytes("a.txt")), String(yield* bytes("gone.txt"))]).toEqual(["a\n", "g\n"])
      expect(FileSystem.existsSync(path("n.txt"))).toBe(false)
    }))

  it.effect("refuses a patch that changes nothing", () =>
    Effect.gen(function*() {
      const { bad, write } = yield* workspace()
      yield* write("a.txt", "one\n")
      expect(yield* bad("apply_patch", { patch: update("-one", "+one") })).toMatch(
        /what the patch makes of them already/
      )
    }))

  const broken: ReadonlyArray<readonly [patch: string, reason: RegExp]> = [
    ["", /a patch begins with \*\*\* Begin Patch/],
    ["*** Begin Patch\n*** Add File: a\n+x", /a patch ends with \*\*\* End Patch/],
    [patch(), /it changes no file/],
    [patch("*** Add File:"), /line 2 of the patch: names no file/],
    [patch("*** Add File: a", "x"), /line 3 of the patch: each line of the new file a begins with \+/],
    [patch("*** Update File: a"), /says nothing to change in a/],
    [patch("*** Update File: a", " only context"), /line 3 of the patch: this hunk changes nothing/],
    [patch("*** Update File: a", "-x", "odd"), /line 4 of the patch: begins with neither a space, - nor \+: "odd"/],
    [patch("*** Move to: b"), /\*\*\* Move to has no place here/],
    [patch("text"), /line 2 of the patch: expected \*\*\* Add File/],
    ["Sure! Here it is:\n" + patch("*** Delete File: a"), /nothing may stand before/]
  ]
  it.effect.each(broken)(
    "that is no patch is refused before anybody is asked: %j",
    ([text, reason]) =>
      Effect.gen(function*() {
        const { offer } = yield* workspace()
        const answer = offer.accept("apply_patch", { patch: text })
        expect("refused" in answer && answer.refused.message).toMatch(reason)
      })
  )

  it.effect("takes a patch in a fence or a here document", () =>
    Effect.gen(function*() {
      const { good, path } = yield* workspace()
      yield* good("apply_patch", { patch: "```\n" + patch("*** Add File: a", "+x") + "\n```" })
      yield* good("apply_patch", { patch: "apply_patch <<'EOF'\n" + patch("*** Add File: b", "+x") + "\nEOF\n" })
      expect(["a", "b"].map((name) => FileSystem.existsSync(path(name)))).toEqual([true, true])
    }))

  it.effect("is an edit where it only changes files, else a write, of the real paths of all that it names", () =>
    Effect.gen(function*() {
      const { offer, path, write } = yield* workspace()
      yield* write("real.txt", "a\n")
      FileSystem.symlinkSync("real.txt", path("link.txt"))
      const permission = (text: string) => {
        const answer = offer.accept("apply_patch", { patch: text })
        return "accepted" in answer ? answer.accepted.permission : null
      }
      expect(permission(patch("*** Update File: link.txt", "-a", "+b"))).toEqual({
        access: "edit",
        subjects: [path("real.txt")]
      })
      expect(permission(patch("*** Update File: link.txt", "*** Move to: ../out.txt"))).toMatchObject({
        access: "write"
      })
      expect(permission(patch("*** Delete File: link.txt"))).toMatchObject({ access: "write" })
      expect(permission(patch("*** Add File: n", "+x"))).toEqual({ access: "write", subjects: [path("n")] })
    }))
})
