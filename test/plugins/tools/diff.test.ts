import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import { unifiedDiff } from "../../../packages/plugins/src/tools/diff.ts"

/** Applies a unified diff by its own line numbers. */
const apply = (before: string, diff: string): string => {
  const left = before.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const out: Array<string> = []
  let at = 0
  const lines = diff.split(/(?<=\n)/).slice(2)
  for (const [index, line] of lines.entries()) {
    const header = /^@@ -(\d+)(?:,(\d+))? \+/.exec(line)
    if (header !== null) {
      const start = Number(header[1]) - (header[2] === "0" ? 0 : 1)
      out.push(...left.slice(at, start))
      at = start
      continue
    }
    if (line.startsWith("\\")) continue
    const text = lines[index + 1]?.startsWith("\\") === true ? line.slice(1, -1) : line.slice(1)
    if (line.startsWith("+")) out.push(text)
    else {
      expect(left[at]).toBe(text)
      if (line.startsWith(" ")) out.push(text)
      at++
    }
  }
  return [...out, ...left.slice(at)].join("")
}

describe("a unified diff", () => {
  it("shows three lines around each change and joins what is near", () => {
    const before = Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join("")
    const after = before.replace("\n5\n", "\nfive\n").replace("\n8\n", "\n").replace("\n25\n", "\n25\nnew\n")
    expect(unifiedDiff("f", before, after)).toBe(
      "--- f\n+++ f\n@@ -2,10 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n-8\n 9\n 10\n 11\n@@ -23,6 +22,7 @@\n 23\n 24\n 25\n+new\n 26\n 27\n 28\n"
    )
  })

  it("is nothing for equal texts and tells a missing last line end", () => {
    expect(unifiedDiff("f", "a\n", "a\n")).toBeNull()
    expect(unifiedDiff("f", "a\n", "a")).toBe("--- f\n+++ f\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n")
  })

  it("turns the one text into the other, whatever they are", () => {
    const text = FastCheck.array(FastCheck.constantFrom("a\n", "b\n", "c\n", "\n", "d"), { maxLength: 30 }).map((
      parts
    ) => parts.join(""))
    FastCheck.assert(
      FastCheck.property(text, text, (before, after) => {
        const diff = unifiedDiff("f", before, after)
        expect(diff === null ? before : apply(before, diff)).toBe(after)
      }),
      { numRuns: 500 }
    )
  })

  it("costs little for two long texts without a common line", () => {
    const before = Array.from({ length: 3_000 }, (_, index) => `a${index}\n`).join("")
    const start = performance.now()
    expect(unifiedDiff("f", before, before.replaceAll("a", "b"))).toContain("@@ -1,3000 +1,3000 @@")
    expect(performance.now() - start).toBeLessThan(2_000)
  })
})
