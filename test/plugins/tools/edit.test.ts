import type { JsonValue } from "@bezel/core/json"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "node:fs/promises"
import { workspace } from "./workspace.ts"

const edited = (before: string | Uint8Array, oldText: string, newText: string) =>
  Effect.gen(function*() {
    const place = yield* workspace()
    yield* place.write("f.txt", before)
    yield* place.good("edit", { path: "f.txt", oldText, newText })
    return yield* place.bytes("f.txt")
  })

describe("editing a file", () => {
  it.live("replaces the text and shows what changed", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "a\nb\nc\n")
      const result = yield* place.call("edit", { path: "f.txt", oldText: "b", newText: "B\nBB" })
      expect(result.details).toEqual({
        path: place.path("f.txt"),
        replacements: 1,
        firstLine: 2,
        diff: "--- f.txt\n+++ f.txt\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+BB\n c\n"
      })
      expect((yield* place.bytes("f.txt")).toString()).toBe("a\nB\nBB\nc\n")
    }))

  it.live.each([
    {
      what: "CRLF lines",
      before: "foo\r\nbar\r\n",
      old: "foo\nbar\n",
      next: "foo\nmore\nbar\n",
      after: "foo\r\nmore\r\nbar\r\n"
    },
    {
      what: "one line among CRLF lines",
      before: "a\r\nfoo\r\nb\r\n",
      old: "foo",
      next: "foo\nbar",
      after: "a\r\nfoo\r\nbar\r\nb\r\n"
    },
    {
      what: "the LF part of a mixed file",
      before: "a\r\nb\nc\nd\r\n",
      old: "b\nc",
      next: "b\nx\nc",
      after: "a\r\nb\nx\nc\nd\r\n"
    },
    {
      what: "the CRLF part of a mixed file",
      before: "a\nb\r\nc\r\nd\n",
      old: "b\nc",
      next: "b\nx\nc",
      after: "a\nb\r\nx\r\nc\r\nd\n"
    },
    {
      what: "both endings in one place",
      before: "a\r\nb\nc",
      old: "a\nb\nc",
      next: "A\nB\nC\nD",
      after: "A\r\nB\nC\nD"
    },
    {
      what: "the last line, unfinished, of a CRLF file",
      before: "a\r\nb",
      old: "b",
      next: "b\nc",
      after: "a\r\nb\r\nc"
    },
    { what: "LF lines given with CRLF text", before: "a\nb\n", old: "a\r\nb", next: "a\r\nc", after: "a\nc\n" },
    {
      what: "a file with a byte order mark",
      before: "\ufefffoo\nbar\n",
      old: "foo",
      next: "FOO",
      after: "\ufeffFOO\nbar\n"
    },
    {
      what: "special characters of expressions",
      before: "f(x) = $1.*[a]\\d\n",
      old: "f(x) = $1.*[a]\\d",
      next: "$&$1$`",
      after: "$&$1$`\n"
    },
    {
      what: "line separators that are no line ends",
      before: "a\u2028b\u0085c\n",
      old: "b\u0085",
      next: "€",
      after: "a\u2028€c\n"
    },
    { what: "text removed with its line", before: "a\r\nb\r\nc\r\n", old: "b\n", next: "", after: "a\r\nc\r\n" }
  ])("keeps every byte outside of $what", ({ after, before, next, old }) =>
    Effect.gen(function*() {
      expect((yield* edited(before, old, next)).toString("latin1")).toBe(Buffer.from(after).toString("latin1"))
    }))

  it.live("keeps bytes that are no UTF-8", () =>
    Effect.gen(function*() {
      const before = Buffer.concat([
        Buffer.from("na"),
        Buffer.from([0xef]),
        Buffer.from("ve\nfoo\n"),
        Buffer.from([0xff, 0xfe])
      ])
      const after = Buffer.concat([
        Buffer.from("na"),
        Buffer.from([0xef]),
        Buffer.from("ve\nbär\n"),
        Buffer.from([0xff, 0xfe])
      ])
      expect((yield* edited(before, "foo", "bär")).equals(after)).toBe(true)
    }))

  it.live("says where several matches are, and replaces all of them when told to", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "x\ny\nx\nx\n")
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "x", newText: "z" })).toBe(
        "oldText occurs 3 times in f.txt (lines 1, 3, 4). Add surrounding lines until it occurs once, or set all to true."
      )
      expect((yield* place.bytes("f.txt")).toString()).toBe("x\ny\nx\nx\n")
      expect(yield* place.good("edit", { path: "f.txt", oldText: "x", newText: "xx", all: true })).toContain("3 places")
      expect((yield* place.bytes("f.txt")).toString()).toBe("xx\ny\nxx\nxx\n")
    }))

  it.live("says what to do when the text is not there", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "\tif (a)  {\n\t}\n")
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "  if (a) {", newText: "x" })).toContain(
        "Line 1 differs from it only in white space."
      )
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "nothing like it", newText: "x" })).toBe(
        "oldText is not in f.txt. Read the file and copy the text exactly, without line numbers."
      )
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "", newText: "x" })).toContain("oldText is empty")
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "if", newText: "if" })).toContain("Nothing changed")
      expect(yield* place.bad("edit", { path: "g.txt", oldText: "a", newText: "b" })).toContain(
        "There is no file g.txt. To create it use write."
      )
    }))

  it.live("names bytes that are not UTF-8 as a reason", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", Buffer.from("caf\xe9\n", "latin1"))
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "caf\ufffd", newText: "x" })).toContain(
        "bytes that are not UTF-8"
      )
    }))

  it.live("runs alone among edits of one real path, so that all land", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const names = Array.from({ length: 20 }, (_, index) => `name${index}.`)
      yield* place.write("f.txt", names.join("\n"))
      yield* Effect.promise(() => FileSystem.symlink("f.txt", place.path("link.txt")))
      yield* Effect.forEach(
        names,
        (name, index) =>
          place.good("edit", {
            path: index % 2 === 0 ? "f.txt" : "./link.txt",
            oldText: name,
            newText: `done${index}.`
          }),
        { concurrency: "unbounded" }
      )
      expect((yield* place.bytes("f.txt")).toString()).toBe(names.map((_, index) => `done${index}.`).join("\n"))
    }))

  it.live("says that the file has changed since it was read when its text is gone", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "old\n")
      yield* place.good("read", { path: "f.txt" })
      yield* place.write("f.txt", "changed by hand\n")
      expect(yield* place.bad("edit", { path: "f.txt", oldText: "old", newText: "new" })).toBe(
        "f.txt has changed since it was read, and oldText is no longer in it. Read it again, then edit."
      )
      expect((yield* place.bytes("f.txt")).toString()).toBe("changed by hand\n")
    }))

  it.live("lands where its text still is, though another place was changed by hand", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "one\ntwo\n")
      yield* place.good("read", { path: "f.txt" })
      yield* place.write("f.txt", "ONE\ntwo\n")
      yield* place.good("edit", { path: "f.txt", oldText: "two", newText: "TWO" })
      expect((yield* place.bytes("f.txt")).toString()).toBe("ONE\nTWO\n")
    }))

  it.live("of two edits to the same text, the second says so", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "old\n")
      const [first, second] = yield* Effect.all([
        place.call("edit", { path: "f.txt", oldText: "old", newText: "first" }),
        place.call("edit", { path: "f.txt", oldText: "old", newText: "second" })
      ], { concurrency: 2 })
      expect([first.isError, second.isError]).toEqual([false, true])
      expect((yield* place.bytes("f.txt")).toString()).toBe("first\n")
    }))

  it.live("keeps the mode of the file and follows a link to it", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("run.sh", "a\n")
      yield* Effect.promise(() => FileSystem.chmod(place.path("run.sh"), 0o755))
      yield* Effect.promise(() => FileSystem.symlink("run.sh", place.path("link.sh")))
      yield* place.good("edit", { path: "link.sh", oldText: "a", newText: "b" })
      expect((yield* Effect.promise(() => FileSystem.stat(place.path("run.sh")))).mode & 0o777).toBe(0o755)
      expect((yield* Effect.promise(() => FileSystem.lstat(place.path("link.sh")))).isSymbolicLink()).toBe(true)
    }))
})

describe("several edits at once", () => {
  it.effect("are made one after the other, each on what the one before it made, and shown as one diff", () =>
    Effect.gen(function*() {
      const { bytes, call, write } = yield* workspace()
      yield* write("a.txt", "one\r\ntwo\r\nthree\r\n")
      const result = yield* call("edit", {
        path: "a.txt",
        edits: [
          { oldText: "three", newText: "drei" },
          { oldText: "one", newText: "eins\nzwei" },
          { oldText: "zwei", newText: "2", all: true }
        ]
      })
      expect(String(yield* bytes("a.txt"))).toBe("eins\r\n2\r\ntwo\r\ndrei\r\n")
      expect(result).toMatchObject({
        isError: false,
        details: { replacements: 3, firstLine: 1, diff: expect.stringContaining("-three\r\n+drei") }
      })
    }))

  const refused: ReadonlyArray<readonly [args: { readonly [name: string]: JsonValue }, reason: RegExp]> = [
    [
      { edits: [{ oldText: "one", newText: "1" }, { oldText: "nine", newText: "9" }] },
      /^Edit 2 of 2, so none was made: oldText is not in a\.txt/
    ],
    [{ edits: [{ oldText: "one", newText: "1" }, { oldText: "one", newText: "2" }] }, /^Edit 2 of 2/],
    [{ edits: [] }, /Nothing to edit/],
    [{}, /Nothing to edit/],
    [{ oldText: "one" }, /newText is missing/],
    [{ newText: "one" }, /oldText is missing/],
    [{ oldText: "one", newText: "1", edits: [{ oldText: "two", newText: "2" }] }, /not both/],
    [{ edits: [{ oldText: "", newText: "x" }] }, /oldText is empty/]
  ]
  it.effect.each(refused)("are all made or none: %j", ([args, reason]) =>
    Effect.gen(function*() {
      const { bad, bytes, write } = yield* workspace()
      yield* write("a.txt", "one\ntwo\n")
      expect(yield* bad("edit", { path: "a.txt", ...args })).toMatch(reason)
      expect(String(yield* bytes("a.txt"))).toBe("one\ntwo\n")
    }))
})
