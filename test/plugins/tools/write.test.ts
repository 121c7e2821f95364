import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "node:fs/promises"
import { workspace } from "./workspace.ts"

describe("writing a file", () => {
  it.live("creates it with its parents and says so", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const result = yield* place.call("write", { path: "a/b/c.txt", content: "é\n" })
      expect(result.details).toEqual({
        path: place.path("a/b/c.txt"),
        created: true,
        bytes: 3,
        diff: "--- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1 @@\n+é\n"
      })
      expect((yield* place.bytes("a/b/c.txt")).toString()).toBe("é\n")
    }))

  it.live("replaces it as a new file of the same mode and leaves nothing beside it", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("run.sh", "old\n")
      yield* Effect.promise(() => FileSystem.chmod(place.path("run.sh"), 0o751))
      const before = yield* Effect.promise(() => FileSystem.stat(place.path("run.sh")))
      const result = yield* place.call("write", { path: "run.sh", content: "new\n" })
      const after = yield* Effect.promise(() => FileSystem.stat(place.path("run.sh")))
      expect(after.mode & 0o777).toBe(0o751)
      expect(after.ino).not.toBe(before.ino)
      expect(yield* Effect.promise(() => FileSystem.readdir(place.directory))).toEqual(["run.sh"])
      expect(result.details).toMatchObject({
        created: false,
        diff: "--- run.sh\n+++ run.sh\n@@ -1 +1 @@\n-old\n+new\n"
      })
    }))

  it.live("writes through a symbolic link, also one whose target is not there yet", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("target.txt", "old")
      yield* Effect.promise(() => FileSystem.symlink("target.txt", place.path("link")))
      yield* Effect.promise(() => FileSystem.symlink("later.txt", place.path("dangling")))
      yield* place.good("write", { path: "link", content: "new" })
      yield* place.good("write", { path: "dangling", content: "made" })
      expect((yield* place.bytes("target.txt")).toString()).toBe("new")
      expect((yield* place.bytes("later.txt")).toString()).toBe("made")
      expect((yield* Effect.promise(() => FileSystem.lstat(place.path("link")))).isSymbolicLink()).toBe(true)
    }))

  it.live("refuses a directory, a name below a file, and a device", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("file", "x")
      expect(yield* place.bad("write", { path: ".", content: "" })).toContain("is a directory")
      expect(yield* place.bad("write", { path: "new/", content: "" })).toContain("names a directory")
      expect(yield* place.bad("write", { path: "file/below", content: "" })).toContain("a part of the path is a file")
      expect(yield* place.bad("write", { path: "/dev/null", content: "" })).toContain("not a regular file")
    }))

  it.live("does not replace what has changed since the session read or wrote it, until it has read that", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("f.txt", "one\n")
      yield* place.good("read", { path: "f.txt" })
      yield* place.write("f.txt", "by a person, and longer\n")
      for (const _ of [1, 2]) {
        expect(yield* place.bad("write", { path: "f.txt", content: "two\n" })).toBe(
          "f.txt has changed since it was read, so it was not replaced. Read it again, then write it."
        )
      }
      expect((yield* place.bytes("f.txt")).toString()).toBe("by a person, and longer\n")
      yield* place.good("read", { path: "f.txt" })
      yield* place.good("write", { path: "f.txt", content: "two\n" })
      yield* place.good("write", { path: "f.txt", content: "three\n" })
      yield* place.write("f.txt", "again by a person\n")
      yield* place.bad("write", { path: "f.txt", content: "four\n" })
      // A session that has not seen the file replaces it, and one that is gone may be made anew.
      yield* place.call("write", { path: "f.txt", content: "five\n" }, "s2")
      yield* Effect.promise(() => FileSystem.rm(place.path("f.txt")))
      yield* place.good("write", { path: "f.txt", content: "six\n" })
      expect((yield* place.bytes("f.txt")).toString()).toBe("six\n")
    }))

  it.live("keeps the old content when the new cannot be written", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const message = yield* place.bad("write", { path: "/proc/bezel.txt", content: "x" })
      expect(message).toMatch(/^Cannot write \/proc\/bezel\.txt: /)
      yield* place.write("kept.txt", "kept")
      expect((yield* place.bytes("kept.txt")).toString()).toBe("kept")
    }))
})
