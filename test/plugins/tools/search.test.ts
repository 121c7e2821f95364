import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import * as FileSystem from "node:fs/promises"
import { tmpdir } from "node:os"
import * as NodePath from "node:path"
import { findRipgrep } from "../../../packages/plugins/src/tools/search-ripgrep.ts"
import { workspace } from "./workspace.ts"

const path = process.env.PATH ?? ""

/** The same programs without that one: of a folder that has it, links to all others. */
const withoutRipgrep = path.split(NodePath.delimiter).map((directory) => {
  if (findRipgrep(directory) === null) return directory
  const others = mkdtempSync(NodePath.join(tmpdir(), "bezel-programs-"))
  for (const name of readdirSync(directory).filter((name) => name !== "rg")) {
    symlinkSync(NodePath.join(directory, name), NodePath.join(others, name))
  }
  afterAll(() => rmSync(others, { recursive: true, force: true }))
  return others
}).join(NodePath.delimiter)
const engines = [
  { engine: "built-in", path: withoutRipgrep },
  ...(findRipgrep(path) === null ? [] : [{ engine: "ripgrep", path }])
]

const tree = Effect.gen(function*() {
  const place = yield* workspace()
  yield* place.write(".gitignore", "dist/\n*.log\n!keep.log\n")
  yield* place.write("src/main.ts", "const needle = 1\r\nconst other = 2\n")
  yield* place.write("src/main.js", "needle\n")
  yield* place.write("src/deep/er/file.ts", "x\ny needle z\n")
  yield* place.write(".hidden/notes.md", "a needle\n")
  yield* place.write("dist/out.js", "needle\n")
  yield* place.write("a.log", "needle\n")
  yield* place.write("keep.log", "needle\n")
  yield* place.write(".git/config", "needle\n")
  yield* place.write("binary.bin", Buffer.concat([Buffer.from("needle\n"), Buffer.alloc(10)]))
  return place
})

describe.each(engines)("searching ($engine)", ({ engine, path: enginePath }) => {
  beforeAll(() => {
    process.env.PATH = enginePath
  })
  afterAll(() => {
    process.env.PATH = path
  })

  it.live("finds lines by path and line, hidden files included, ignored ones not, and says what was left out", () =>
    Effect.gen(function*() {
      const place = yield* tree
      const result = yield* place.call("search", { pattern: "needle" })
      expect(result.content).toEqual([{
        type: "text",
        text: [
          ".hidden/notes.md:1: a needle",
          "keep.log:1: needle",
          "src/deep/er/file.ts:2: y needle z",
          "src/main.js:1: needle",
          "src/main.ts:1: const needle = 1",
          "[Left out because git ignores it: 2 entries (a.log, dist/).]"
        ].join("\n")
      }])
      expect(result.details).toMatchObject({ matches: 5, files: 5, more: false, ignored: 2, engine })
    }))

  it.live("always looks at a path that is named exactly, ignored or not", () =>
    Effect.gen(function*() {
      const place = yield* tree
      yield* place.write("dist/more.log", "needle\n")
      expect(yield* place.good("search", { pattern: "needle", path: "dist" })).toBe(
        "dist/more.log:1: needle\ndist/out.js:1: needle"
      )
      expect(yield* place.good("search", { pattern: "needle", path: "a.log" })).toBe("a.log:1: needle")
      expect(yield* place.good("search", { pattern: "needle", path: ".git" })).toBe(".git/config:1: needle")
    }))

  it.live("looks also at files whose names are not UTF-8, and says that nobody can name them", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const odd = (...names: Array<string>) =>
        Buffer.concat([Buffer.from(place.directory), ...names.map((name) => Buffer.from(`/${name}`, "latin1"))])
      yield* Effect.promise(async () => {
        await FileSystem.mkdir(odd("caf\u00e9"))
        await FileSystem.writeFile(odd("caf\u00e9", "deep.txt"), "needle\n")
        await FileSystem.writeFile(odd("\u00ff\u00fe.txt"), "a needle\n")
      })
      yield* place.write("plain \ufffd.txt", "no\n")
      const text = yield* place.good("search", { pattern: "needle" })
      expect(text.split("\n")).toEqual([
        "caf\ufffd/deep.txt:1: needle",
        "\ufffd\ufffd.txt:1: a needle",
        expect.stringMatching(/not UTF-8/)
      ])
      expect(yield* place.good("list", {})).toMatch(/caf\ufffd\/\n {2}deep\.txt\n/)
    }))

  it.live("keeps to the ignore files of the workspace also where there is no git", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write(".gitignore", "*.log\n")
      yield* place.write("src/a.log", "needle\n")
      yield* place.write("src/a.txt", "needle\n")
      expect(yield* place.good("search", { pattern: "needle", path: "src" })).toBe(
        "src/a.txt:1: needle\n[Left out because git ignores it: 1 entry (a.log).]"
      )
    }))

  it.live.each([
    { glob: "*.ts", found: ["src/deep/er/file.ts", "src/main.ts"] },
    { glob: "src/*.{ts,js}", found: ["src/main.js", "src/main.ts"] },
    { glob: "*.{log,bin}", found: ["keep.log"] },
    { glob: "**/er/*", found: ["src/deep/er/file.ts"] },
    { glob: "[k-m]*.?[!x]*", found: ["keep.log", "src/main.js", "src/main.ts"] }
  ])("looks only into files that match $glob", ({ found, glob }) =>
    Effect.gen(function*() {
      const place = yield* tree
      const text = yield* place.good("search", { pattern: "needle", glob })
      expect(text.split("\n").filter((line) => !line.startsWith("[")).map((line) => line.split(":")[0])).toEqual(found)
    }))

  it.live("matches line by line, with the usual expressions", () =>
    Effect.gen(function*() {
      const place = yield* tree
      expect(yield* place.good("search", { pattern: "^const \\w+ = \\d$", path: "src" })).toContain(
        "src/main.ts:1: const needle = 1\nsrc/main.ts:2: const other = 2"
      )
      expect(yield* place.good("search", { pattern: "(?i)NEEDLE z" })).toContain("src/deep/er/file.ts:2")
      expect(yield* place.good("search", { pattern: "x\\s*y" })).toContain(
        'No line matches "x\\\\s*y" in the workspace.'
      )
    }))

  it.live("says what is wrong with a pattern that is no expression", () =>
    Effect.gen(function*() {
      const place = yield* tree
      expect(yield* place.bad("search", { pattern: "foo(" })).toMatch(
        /^The pattern is not a regular expression: .*To look for plain text/
      )
      expect(yield* place.bad("search", { pattern: "" })).toContain("The pattern is empty")
    }))

  it.live("ends an expression that would take forever", () =>
    Effect.gen(function*() {
      const place = yield* tree
      yield* place.write("evil.txt", `${"a".repeat(5_000)}!\n`)
      const before = performance.now()
      const result = yield* place.call("search", { pattern: "^(a+)+$" })
      expect(performance.now() - before).toBeLessThan(3_000)
      expect(JSON.stringify(result.content)).toContain("nested repetitions")
    }))

  it.live("is bounded in matches and in the length of a line, and says so", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("many.txt", "hit\n".repeat(1_000))
      yield* place.write("wide.txt", `hit ${"w".repeat(1_000_000)}\n`)
      const text = yield* place.good("search", { pattern: "hit" })
      expect(text).toContain("[Only the first 200 matches are shown; narrow the pattern, the path or the glob.]")
      expect(yield* place.good("search", { pattern: "hit", path: "wide.txt" })).toMatch(
        /^wide\.txt:1: hit w+ \[… 999,604 more characters\]$/
      )
    }))

  it.live("follows no links and waits for no pipe", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      execFileSync("mkfifo", [place.path("pipe")])
      yield* Effect.promise(() => FileSystem.symlink(".", place.path("loop")))
      yield* place.write("f.txt", "hit\n")
      execFileSync("git", ["init", "-q"], { cwd: place.directory })
      expect(yield* place.good("search", { pattern: "hit" })).toBe("f.txt:1: hit")
      expect(yield* place.bad("search", { pattern: "hit", path: "pipe" })).toContain("neither a file nor a directory")
      expect(yield* place.bad("search", { pattern: "hit", path: "none" })).toContain(
        "there is no such file or directory"
      )
    }))
})

describe("listing", () => {
  it.live("shows a tree by name, hidden entries included, ignored ones counted", () =>
    Effect.gen(function*() {
      const place = yield* tree
      yield* Effect.promise(() => FileSystem.symlink("src", place.path("link")))
      expect(yield* place.good("list", {})).toBe([
        ".gitignore",
        ".hidden/",
        "  notes.md",
        "binary.bin",
        "keep.log",
        "link -> src",
        "src/",
        "  deep/",
        "  main.js",
        "  main.ts",
        "[Left out because git ignores it: 2 entries (a.log, dist/).]"
      ].join("\n"))
    }))

  it.live("goes as deep as it is told", () =>
    Effect.gen(function*() {
      const place = yield* tree
      expect(yield* place.good("list", { path: "src", depth: 1 })).toBe("deep/\nmain.js\nmain.ts")
      expect(yield* place.good("list", { path: "src", depth: 3 })).toBe("deep/\n  er/\n    file.ts\nmain.js\nmain.ts")
    }))

  it.live("always looks at a path that is named exactly", () =>
    Effect.gen(function*() {
      const place = yield* tree
      expect(yield* place.good("list", { path: "dist" })).toBe("out.js")
      expect(yield* place.good("list", { path: ".git" })).toBe("config")
    }))

  it.live("says that a directory is empty, that a path is a file, that there is none", () =>
    Effect.gen(function*() {
      const place = yield* tree
      yield* Effect.promise(() => FileSystem.mkdir(place.path("empty")))
      expect(yield* place.good("list", { path: "empty" })).toBe("empty is empty.")
      expect(yield* place.good("list", { path: "keep.log" })).toContain("is a file. Use read")
      expect(yield* place.bad("list", { path: "none" })).toContain("there is no such file or directory")
    }))

  it.live("is bounded, and one odd name stays one line", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* place.write("a\nb\u001b[31m", "")
      for (let index = 0; index < 1_100; index++) yield* place.write(`n${index}`, "")
      const text = yield* place.good("list", {})
      expect(text.split("\n")[0]).toBe("a\\u000ab\\u001b[31m")
      expect(text).toContain("[Only the first 1000 entries are shown")
    }))
})

describe.each(engines)("what git ignores ($engine)", ({ path: enginePath }) => {
  beforeAll(() => {
    process.env.PATH = enginePath
  })
  afterAll(() => {
    process.env.PATH = path
  })

  it.live("is what git says it is", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      execFileSync("git", ["init", "-q"], { cwd: place.directory })
      yield* place.write(
        ".gitignore",
        [
          "# a comment",
          "",
          "*.o",
          "!keep.o",
          "/top",
          "build/",
          "doc/*.txt",
          "**/cache",
          "a/**/z",
          "foo/**",
          "\\#odd",
          "\\!odd",
          "sp\\ ",
          "[a-c]x",
          "[!d]y?",
          "trail   ",
          "/deep/only/here"
        ].join("\n")
      )
      yield* place.write("sub/.gitignore", "!main.o\nlocal\n/anchored\n")
      yield* place.write(".git/info/exclude", "excluded\n")
      const paths = [
        "x.o",
        "keep.o",
        "top",
        "sub/top",
        "build/f",
        "sub/build/f",
        "buildx",
        "doc/a.txt",
        "doc/b/a.txt",
        "sub/cache/f",
        "cache",
        "a/z",
        "a/b/z",
        "a/b/c/z",
        "az",
        "foo/f",
        "foo/g/h",
        "xfoo/f",
        "#odd",
        "!odd",
        "sp ",
        "ax",
        "dx",
        "sub/bx",
        "ey1",
        "dy1",
        "y1",
        "trail",
        "deep/only/here",
        "deep/only/there",
        "sub/main.o",
        "sub/local",
        "local",
        "sub/anchored",
        "sub/q/anchored",
        "excluded",
        "sub/excluded",
        "日本/x.o",
        "日本/ok"
      ]
      for (const path of paths) yield* place.write(path, "hit\n")
      const tracked = execFileSync("git", [
        "-c",
        "core.quotePath=false",
        "-c",
        "core.excludesFile=/dev/null",
        "ls-files",
        "-z",
        "--others",
        "--exclude-standard"
      ], { cwd: place.directory, encoding: "utf8" })
        .split("\0").filter((path) => paths.includes(path)).sort()
      const text = yield* place.good("search", { pattern: "^hit$" })
      const found = text.split("\n").filter((line) => line.endsWith(":1: hit")).map((line) =>
        line.slice(0, -":1: hit".length)
      )
      expect(found.sort()).toEqual(tracked)
      expect(tracked.length).toBeGreaterThan(10)
    }))
})
