import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as FileSystem from "node:fs/promises"
import { workspace } from "./workspace.ts"

describe("reading a file", () => {
  it.live("shows its lines with their numbers, without their ends", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("a.txt", "one\r\ntwo\nthree")
      const result = yield* place.call("read", { path: "a.txt" })
      expect(result.content).toEqual([{ type: "text", text: "1\tone\n2\ttwo\n3\tthree" }])
      expect(result.details).toEqual({ path: place.path("a.txt"), kind: "text", firstLine: 1, lines: 3, more: false })
    }))

  it.live("shows a part and says where to read on", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("a.txt", Array.from({ length: 10 }, (_, index) => `line ${index + 1}\n`).join(""))
      expect(yield* place.good("read", { path: "a.txt", offset: 4, limit: 2 })).toBe(
        "4\tline 4\n5\tline 5\n[More lines follow; read on with offset 6.]"
      )
      expect(yield* place.good("read", { path: "a.txt", offset: 9 })).toBe("9\tline 9\n10\tline 10")
      expect(yield* place.good("read", { path: "a.txt", limit: 10 })).not.toContain("More lines")
    }))

  it.live("says how long the file is when the offset is past its end", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("a.txt", "one\n")
      expect(yield* place.bad("read", { path: "a.txt", offset: 5 })).toBe(
        "a.txt has only 1 line; offset 5 is past its end."
      )
    }))

  it.live("says that an empty file is empty", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("empty.txt", "")
      expect(yield* place.good("read", { path: "empty.txt" })).toBe("The file empty.txt is empty.")
    }))

  it.live("refuses a device, a pipe without a writer and a directory, at once", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      execFileSync("mkfifo", [place.path("pipe")])
      expect(yield* place.bad("read", { path: "/dev/zero" })).toContain("is a device, not a regular file")
      expect(yield* place.bad("read", { path: "pipe" })).toContain("is a named pipe, not a regular file")
      expect(yield* place.bad("read", { path: "." })).toContain("is a directory. Use list")
    }))

  it.live("reads no more of 3 GB than it shows, whatever the limit", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("big.txt", "first\n" + "0123456789abcdef\n".repeat(10_000))
      yield* Effect.promise(() => FileSystem.truncate(place.path("big.txt"), 3 * 1024 ** 3))
      const before = performance.now()
      const text = yield* place.good("read", { path: "big.txt", limit: 1_000_000_000 })
      expect(performance.now() - before).toBeLessThan(2_000)
      expect(text.length).toBeLessThan(64 * 1024)
      expect(text).toMatch(/read on with offset \d+/)
    }))

  it.live("reads a file whose size is said to be zero", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      expect(yield* place.good("read", { path: "/proc/self/status" })).toContain("1\tName:")
    }))

  it.live("cuts a very long line between characters and says how much is left", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("long.txt", `${"😀".repeat(100_000)}\nnext\n`)
      const text = yield* place.good("read", { path: "long.txt" })
      expect(text).toContain("[… 196,000 more characters in this line]\n2\tnext")
      expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|\ufffd/)
    }))

  it.live("decodes characters that its pieces split", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("wide.txt", `${"x".repeat(65_534)}\n€ after\n`)
      expect(yield* place.good("read", { path: "wide.txt", offset: 2 })).toBe("2\t€ after")
    }))

  it.live("shows an image by what it is, not by its name, and describes other binaries", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const png = Buffer.from(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "base64"
      )
      yield* place.write("picture.txt", png)
      yield* place.write("tool.png", Buffer.concat([Buffer.from([0x7f, 0x45, 0x4c, 0x46]), Buffer.alloc(100)]))
      const image = yield* place.call("read", { path: "picture.txt" })
      expect(image.content[1]).toEqual({
        type: "file",
        mediaType: "image/png",
        fileName: "picture.txt",
        data: png.toString("base64")
      })
      expect(yield* place.good("read", { path: "tool.png" })).toContain("is an ELF program or library (104 bytes)")
    }))

  it.live("says in one sentence what is wrong with a path", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      expect(yield* place.bad("read", { path: "none.txt" })).toBe(
        "Cannot read none.txt: there is no such file or directory."
      )
      expect(yield* place.bad("read", { path: "" })).toContain("The path is empty")
      expect(yield* place.bad("read", { path: "a\u0000b" })).toContain("NUL")
      expect(yield* place.bad("read", { path: "x".repeat(5_000) })).toContain("the name is too long")
    }))

  it.live("names what is read by its real path, for permission rules", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("real/secret.txt", "s")
      yield* Effect.promise(() => FileSystem.symlink("real", place.path("link")))
      yield* Effect.promise(() => FileSystem.symlink("../gone/new.txt", place.path("dangling")))
      const subjects = (name: string, path: string) => {
        const answer = place.offer.accept(name, name === "write" ? { path, content: "" } : { path })
        return "accepted" in answer ? answer.accepted.permission : answer.refused
      }
      expect(subjects("read", "link/../link/secret.txt")).toEqual({
        access: "read",
        subjects: [place.path("real/secret.txt")]
      })
      expect(subjects("write", "link/new/file.txt")).toEqual({
        access: "write",
        subjects: [place.path("real/new/file.txt")]
      })
      expect(subjects("write", "dangling")).toEqual({ access: "write", subjects: [place.path("../gone/new.txt")] })
      expect(subjects("list", "/")).toEqual({ access: "list", subjects: ["/"] })
    }))
})
