/** Odd inputs of the built-in tools: what each gets, in words that a model can act on. */
import type { JsonValue } from "@bezel/core/json"
import { afterEach, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { textOf, type Workspace, workspace } from "./workspace.ts"

const long = "x".repeat(5_000)

const patch = (...lines: ReadonlyArray<string>) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n")

/** A tool, its arguments, and the beginning of its result: `!` stands before an error, `?` before arguments that are refused. */
type Row = readonly [tool: string, args: JsonValue, result: string]

const rows: ReadonlyArray<Row> = [
  ["read", {}, "?path: is required."],
  ["read", { path: 5 }, "?path: expected string, got 5."],
  ["read", { path: "f.txt", extra: 1 }, "?extra: there is no such parameter."],
  ["read", { path: "f.txt", offset: 0 }, "?offset: expected a value greater than or equal to 1, got 0."],
  ["read", { path: "f.txt", offset: 1.5 }, "?offset: expected an integer, got 1.5."],
  ["read", { path: "f.txt", limit: 0 }, "?limit: expected a value greater than or equal to 1, got 0."],
  ["read", { path: "f.txt", limit: 1e308 }, "?limit: expected an integer"],
  ["read", { path: "" }, "!The path is empty."],
  ["read", { path: "f\0.txt" }, "!The path contains a NUL character"],
  ["read", { path: long }, `!Cannot read ${"x".repeat(300)}…: the name is too long.`],
  ["read", { path: "a/".repeat(3_000) }, `!Cannot read ${"a/".repeat(150)}…: the name is too long.`],
  ["read", { path: "dir" }, "!dir is a directory. Use list"],
  ["read", { path: "f\ud800.txt" }, "!Cannot read f\ud800.txt: there is no such file"],
  ["read", { path: "./dir/../f.txt" }, "1\tone"],
  ["read", { path: "sp ace é.txt" }, "1\ts"],
  ["read", { path: "~/home.txt" }, "1\tat home"],
  ["read", { path: "~other/home.txt" }, "!Cannot read ~other/home.txt: there is no such file"],
  ["write", { path: "a.txt" }, "?content: is required."],
  ["write", { path: "a.txt", content: 5 }, "?content: expected string, got 5."],
  ["write", { path: "", content: "" }, "!The path is empty."],
  ["write", { path: "n\0", content: "" }, "!The path contains a NUL character"],
  ["write", { path: "x".repeat(300), content: "" }, "!Cannot write xxx"],
  ["write", { path: "/", content: "" }, "!/ names a directory. Name a file."],
  ["write", { path: "empty.txt", content: "" }, "Created empty.txt (0 bytes)."],
  ["write", { path: "~/made.txt", content: "x" }, "Created made.txt (1 byte)."],
  ["write", { path: "half.txt", content: "\ud800x" }, "Created half.txt (4 bytes)."],
  ["edit", { path: "f.txt" }, "!Nothing to edit: give oldText and newText, or edits."],
  ["edit", { path: "f.txt", edits: [] }, "!Nothing to edit"],
  ["edit", { path: "f.txt", edits: [{ oldText: "one" }] }, "?edits.0.newText: is required."],
  ["edit", { path: "f.txt", oldText: "", newText: "x" }, "!oldText is empty."],
  ["edit", { path: "f.txt", oldText: "one", newText: "one" }, "!Nothing changed: oldText and newText are the same"],
  ["edit", { path: "f.txt", oldText: "zz", newText: "x" }, "!oldText is not in f.txt."],
  [
    "edit",
    { path: "f.txt", oldText: "1\tone", newText: "x" },
    "!oldText is not in f.txt. Read the file and copy the text"
  ],
  ["edit", { path: "f.txt", oldText: "\ud800", newText: "x" }, "!oldText is not in f.txt."],
  ["edit", { path: "f.txt", oldText: "e", newText: "E" }, "!oldText occurs 3 times in f.txt (lines 1, 3, 3)."],
  ["edit", { path: "none", oldText: "b", newText: "c" }, "!There is no file none. To create it use write."],
  ["edit", { path: "f.txt", oldText: "one" }, "!newText is missing; an edit needs both."],
  [
    "edit",
    { path: "f.txt", oldText: "one", newText: "x", edits: [{ oldText: "two", newText: "y" }] },
    "!Give either oldText and newText, or edits, not both."
  ],
  ["edit", { path: "", oldText: "b", newText: "c" }, "!The path is empty."],
  ["edit", { path: "f\0", oldText: "b", newText: "c" }, "!The path contains a NUL character"],
  ["edit", { path: long, oldText: "b", newText: "c" }, `!Cannot write ${"x".repeat(300)}…: the name is too long.`],
  ["apply_patch", {}, "?patch: is required."],
  ["apply_patch", { patch: 5 }, "?patch: expected string, got 5."],
  ["apply_patch", { patch: patch("*** Add File: n\0", "+x") }, "!The path contains a NUL character"],
  ["apply_patch", { patch: patch("*** Add File: /", "+x") }, "!/ is a directory and cannot be written as a file."],
  ["apply_patch", { patch: patch("*** Add File: dir", "+x") }, "!dir is a directory"],
  ["apply_patch", { patch: patch("*** Delete File: dir") }, "!dir is a directory"],
  [
    "apply_patch",
    { patch: patch(`*** Add File: ${long}`, "+x") },
    `!Cannot write ${"x".repeat(300)}…: the name is too long.`
  ],
  [
    "apply_patch",
    { patch: patch("*** Add File: n", "+x", "*** Add File: ./n", "+y") },
    "!n exists already, so it cannot be added"
  ],
  ["edit", { path: "dir", oldText: "b", newText: "c" }, "!dir is a directory"],
  ["bash", {}, "?command: is required."],
  ["bash", { command: "true", timeout: 0 }, "?timeout: expected a value greater than 0, got 0."],
  ["bash", { command: "true", timeout: 1e9 }, "?timeout: expected a value less than or equal to 3600"],
  ["bash", { command: "true", timeout: "5" }, "?timeout: expected number"],
  ["bash", { command: "a\0b" }, "!The command contains a NUL character"],
  ["bash", { command: "" }, "(no output)\n[exit code 0]"],
  ["bash", { command: "# only a comment" }, "(no output)\n[exit code 0]"],
  ["bash", { command: "(" }, "!bash: "],
  ["bash", { command: "exit 300" }, "!(no output)\n[exit code 44]"],
  ["bash", { command: "kill -9 $$" }, "!(no output)\n[ended by SIGKILL]"],
  ["bash", { command: `echo ${"x".repeat(200_000)}` }, "!The command is too long for one process."],
  ["bash", { command: "true", directory: "" }, "!The path is empty."],
  ["bash", { command: "true", directory: "none" }, "!The command could not be started in "],
  ["bash", { command: "true", directory: "f.txt" }, "!The command could not be started in "],
  ["bash", { command: "printf '\\xff\\xfe'" }, "[The output is binary data"],
  ["search", {}, "?pattern: is required."],
  ["search", { pattern: "" }, "!The pattern is empty."],
  ["search", { pattern: long }, "!The pattern is too long; the most is 4,096 characters."],
  ["search", { pattern: "(" }, "!The pattern is not a regular expression"],
  ["search", { pattern: "\0" }, 'No line matches "\\u0000" in the workspace.'],
  ["search", { pattern: "one", path: "" }, "!The path is empty."],
  ["search", { pattern: "one", path: "none" }, "!Cannot search none: there is no such file"],
  ["search", { pattern: "one", glob: "" }, "f.txt:1: one"],
  ["search", { pattern: "one", glob: "./f.txt" }, "f.txt:1: one"],
  ["search", { pattern: "one", glob: "/f.txt" }, "f.txt:1: one"],
  ["search", { pattern: "one", glob: "[" }, 'No line matches "one"'],
  ["search", { pattern: "one", glob: "{a,f" }, 'No line matches "one"'],
  ["list", { path: 5 }, "?path: expected string, got 5."],
  ["list", { depth: 0 }, "?depth: expected a value between 1 and 20, got 0."],
  ["list", { depth: 1.5 }, "?depth: expected an integer, got 1.5."],
  ["list", { path: "" }, "!The path is empty."],
  ["list", { path: "f\0" }, "!The path contains a NUL character"],
  ["list", { path: "f.txt" }, "f.txt is a file. Use read"],
  ["list", { path: "~", depth: 1 }, "dir/"],
  ["job_output", {}, "?job: is required."],
  ["job_output", { job: 5 }, "?job: expected string, got 5."],
  ["job_stop", {}, "?job: is required."]
]

const resultOf = (place: Workspace, tool: string, args: JsonValue) => {
  const asked = place.offer.accept(tool, args)
  return "refused" in asked
    ? Effect.succeed(`?${asked.refused.message.replace(/^The arguments of \w+ are not valid\. /, "")}`)
    : Effect.map(place.call(tool, args), (result) => (result.isError ? "!" : "") + textOf(result))
}

describe("an odd input", () => {
  const home = process.env.HOME
  afterEach(() => {
    if (home === undefined) delete process.env.HOME
    else process.env.HOME = home
  })

  it.live.each(rows.map((row) => [row[0], JSON.stringify(row[1]).slice(0, 60), row] as const))(
    "of %s: %s",
    ([, , [tool, args, begins]]) =>
      Effect.gen(function*() {
        const place = yield* workspace()
        process.env.HOME = place.directory
        yield* place.write("f.txt", "one\ntwo\nthree\n")
        yield* place.write("dir/in.txt", "x\n")
        yield* place.write("sp ace é.txt", "s\n")
        yield* place.write("home.txt", "at home\n")
        const result = yield* resultOf(place, tool, args)
        expect(result.slice(0, begins.length)).toBe(begins)
        // Whatever was asked with, what is said of it has bounds.
        expect(result.length).toBeLessThan(2_000)
      })
  )
})
