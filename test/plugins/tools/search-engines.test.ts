/** Search with ripgrep and without: what it knows of a pattern, and the same results whatever is asked of what. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { execFileSync } from "node:child_process"
import * as FileSystem from "node:fs/promises"
import { requiredText } from "../../../packages/plugins/src/tools/required-text.ts"
import { findRipgrep, ripgrepCandidates } from "../../../packages/plugins/src/tools/search-ripgrep.ts"
import { searchTool } from "../../../packages/plugins/src/tools/search.ts"
import { workspace } from "./workspace.ts"

describe("what every match of a pattern contains", () => {
  it.each<[string, ReadonlyArray<string> | null]>([
    ["needle", ["needle"]],
    ["^const \\w+ = \\d$", ["const "]],
    ["foo\\.bar", ["foo.bar"]],
    ["foo|barn", ["foo", "barn"]],
    ["foo|x", null],
    ["colou?r", ["colo"]],
    ["ab*cde", ["cde"]],
    ["ab+cde", ["cde"]],
    ["abc{2,3}de", ["ab"]],
    ["x{0}", null],
    ["(foo|bar) end", [" end"]],
    ["(a(b|[)])c)def", ["def"]],
    ["[abc]def[^]]", ["def"]],
    ["\\bword\\b", ["word"]],
    ["\\x41bc", null],
    ["\\u{41}bc", null],
    ["\\p{L}bc", null],
    ["(x)yz\\1", null],
    ["(?i)Needle", ["Needle"]],
    ["(?i)größe", ["gr"]],
    ["(?=foo)bar", ["bar"]],
    ["(unclosed", null],
    ["[unclosed", null],
    ["closed)", null],
    [".", null],
    ["a", null],
    ["a\ufffdbc", null],
    ["a\ud800bc", null],
    ["日本語", ["日本語"]],
    ["😀x?", ["😀"]],
    ["\\", null]
  ])("%j: %j", (pattern, texts) => {
    expect(requiredText(pattern)?.texts ?? null).toEqual(texts)
  })
})

const place = Effect.gen(function*() {
  const { directory, path, write } = yield* workspace()
  execFileSync("git", ["init", "-q"], { cwd: directory })
  const files: { readonly [name: string]: string | Uint8Array } = {
    ".gitignore": "dist/\n*.log\n!keep.log\n",
    ".ignore": "a.ts\n",
    ".rgignore": "a.ts\n",
    "sub/.gitignore": "local\n",
    "sub/local": "needle\n",
    "dist/a": "needle\n",
    "keep.log": "needle\n",
    "a.ts": "needle\n",
    "a/b.ts": "needle\n",
    "a-b.ts": "needle\n",
    "B.ts": "Needle\n",
    "é.ts": "needle é\n",
    "node_modules/m/i.js": "needle\n",
    "bom.txt": "\ufeffneedle bom\n",
    "utf16.txt": Buffer.from("\ufeffneedle sixteen\n", "utf16le"),
    "latin1.txt": Buffer.from("caf\xe9 needle\n", "latin1"),
    "crlf.txt": "needle\r\nsecond\r\n",
    "cr.txt": "needle\rneedle2\r",
    "noeol.txt": "x\nneedle",
    "empty.txt": "",
    "nul-late.txt": Buffer.concat([
      Buffer.from("needle early\n"),
      Buffer.alloc(70_000, 0x61),
      Buffer.from("\n\0\nneedle\n")
    ]),
    "nul-early.bin": "needle\n\0\n",
    "big.txt": Buffer.concat([Buffer.from("needle big\n"), Buffer.alloc(17 * 1024 * 1024, 0x61)]),
    "long.txt": `${"z".repeat(100_000)} needle\n`,
    "words.txt": "größe naïve ٣ 日本\nfoo.bar\nfoo bar foo\n\ttab\n\u2028sep\nABC\n$price {x}\n[x]\n\u212aelvin\n",
    "many/f.txt": "hit\n".repeat(300)
  }
  for (const [name, content] of Object.entries(files)) yield* write(name, content)
  yield* Effect.promise(() => FileSystem.symlink("a.ts", path("link.ts")))
  yield* Effect.promise(() =>
    FileSystem.writeFile(
      Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xff]), Buffer.from(".txt")]),
      "needle\n"
    )
  )
  return directory
})

const ripgrep = findRipgrep(process.env.PATH)

/** Without ripgrep on this machine both ways are one, and only what they find is looked at. */
const ways = ripgrep === null ? [null] : [null, ripgrep]

/** The result of each way, or how it failed. */
const search = (
  directory: string,
  args: { readonly pattern: string; readonly path?: string; readonly glob?: string }
) =>
  Effect.forEach(ways, (program) =>
    Effect.map(
      Effect.result(
        Effect.suspend(() => {
          const { execute } = searchTool(directory, () => program)
          return execute(args, undefined as never) as Effect.Effect<
            { readonly content: unknown },
            { readonly message: string }
          >
        })
      ),
      (result) => JSON.stringify(Result.isSuccess(result) ? result.success.content : result.failure.message)
    ))

describe("search with ripgrep and without", () => {
  const patterns = [
    "needle",
    "needle$",
    "^needle",
    "\\bneedle\\b",
    "(?i)needle",
    "(?i)kelvin",
    "nee.le",
    "need|foo",
    "second\\r?$",
    "öß",
    "\\w+ße",
    "ï\\w",
    "\\d",
    "\\p{Han}",
    "日",
    "foo\\.bar",
    "(foo).*\\1",
    "foo(?= bar)",
    "(?<!x)foo",
    "(?<n>needle)",
    "\\s+tab",
    "^\\t",
    "\\$price",
    "$price",
    "{x}",
    "\\{x\\}",
    "[x]",
    "\\[x\\]",
    "a{2,}",
    "\\x41BC",
    "\\u{41}BC",
    "(?s)needle.second",
    "needle\\r",
    "^$",
    ".",
    "hit",
    "caf. needle",
    "\ufeffneedle",
    "naïve ٣",
    "(a+)+needle",
    "foo**",
    "(",
    "[",
    "\\",
    "a{1",
    "\\-"
  ]

  it.live("finds and says the same for each pattern", () =>
    Effect.gen(function*() {
      const directory = yield* place
      for (const pattern of patterns) {
        const [built, quick = built] = yield* search(directory, { pattern })
        expect([pattern, quick]).toEqual([pattern, built])
      }
      expect((yield* search(directory, { pattern: "sep|ABC" }))[0]).toContain("words.txt:6: ABC")
    }), 60_000)

  it.live("finds and says the same for each place and glob", () =>
    Effect.gen(function*() {
      const directory = yield* place
      for (
        const more of [
          { path: "sub" },
          { path: "sub/local" },
          { path: "dist" },
          { path: "a.ts" },
          { path: "link.ts" },
          { path: "big.txt" },
          { path: "nul-early.bin" },
          { path: "utf16.txt" },
          { path: "empty.txt" },
          { path: "none" },
          { glob: "*.ts" },
          { glob: "a/**" },
          { glob: "!*.ts" },
          { glob: "*.{bin,log}" }
        ]
      ) {
        const [built, quick = built] = yield* search(directory, { pattern: "needle", ...more })
        expect([more, quick]).toEqual([more, built])
      }
      expect((yield* search(directory, { pattern: "needle", glob: "a/**" }))[0]).toContain("a/b.ts:1: needle")
    }), 60_000)

  it.live("looks at everything where ripgrep fails, or is none", () =>
    Effect.gen(function*() {
      const { directory, path, write } = yield* workspace()
      yield* write("a.txt", "needle\n")
      yield* write("rg", "#!/bin/sh\necho /nothing\nexit 2\n")
      yield* Effect.promise(() => FileSystem.chmod(path("rg"), 0o755))
      for (const program of [path("rg"), path("a.txt"), path("missing")]) {
        const asked = ripgrepCandidates(program, { texts: ["needle"], ignoreCase: false })
        expect([...yield* asked([path("a.txt")])]).toEqual([path("a.txt")])
      }
      expect(directory).not.toBe("")
    }))
})
