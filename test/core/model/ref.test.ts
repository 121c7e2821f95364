import { closeMatches, formatModelRef, malformedCall, malformedMetadata, parseModelRef } from "@bezel/core/model"
import { describe, expect, it } from "@effect/vitest"

describe("the name of a model", () => {
  it("is split at its first slash, so a model's id may contain some", () => {
    expect(parseModelRef("bezel/offline")).toEqual({ provider: "bezel", model: "offline" })
    expect(parseModelRef(" router/meta/llama-3:free ")).toEqual({ provider: "router", model: "meta/llama-3:free" })
    expect(formatModelRef({ provider: "router", model: "meta/llama-3" })).toBe("router/meta/llama-3")
  })

  it.each(["", "offline", "/offline", "bezel/", "/", "  "])("is refused, with what is right, as %j", (text) => {
    expect(parseModelRef(text)).toEqual({ error: expect.stringContaining("provider/model") })
  })
})

describe("close matches", () => {
  const known = ["anthropic", "openai", "local", "bezel"]

  it("are what somebody who mistyped meant, nearest first", () => {
    expect(closeMatches("antropic", known)).toEqual(["anthropic"])
    expect(closeMatches("OpenAI", known)).toEqual(["openai"])
    expect(closeMatches("lcoal", known)).toEqual(["local"])
    expect(closeMatches("claude", ["claude-a", "claude-b"])).toEqual(["claude-a", "claude-b"])
  })

  it("are none for what is like nothing, and three at most", () => {
    expect(closeMatches("zzzzzzzz", known)).toEqual([])
    expect(closeMatches("m", ["m1", "m2", "m3", "m4"])).toHaveLength(3)
  })

  it("of an absurdly long name are found at once", () => {
    const before = performance.now()
    closeMatches("x".repeat(1_000_000), known)
    expect(performance.now() - before).toBeLessThan(500)
  })
})

describe("a malformed call", () => {
  it("says so in its metadata, beside what the provider has there", () => {
    const malformed = { error: "The arguments are not valid JSON.", text: '{"a"' }
    expect(malformedCall({ metadata: { google: { signature: "x" }, ...malformedMetadata(malformed) } })).toEqual(
      malformed
    )
  })

  it.each([undefined, {}, { bezel: null }, { bezel: {} }, { bezel: { malformed: true } }, {
    bezel: { malformed: { error: 1, text: "" } }
  }])(
    "is not one with metadata %j",
    (metadata) => {
      expect(malformedCall({ metadata })).toBeNull()
    }
  )
})
