import { describe, expect, it } from "@effect/vitest"
import { Redacted } from "effect"
import { codeMillis, makeBrowserCodes } from "../../packages/server/src/serve/browser-codes.ts"

describe("a one-time code", () => {
  it("is worth its scope, once", () => {
    const codes = makeBrowserCodes()
    const code = Redacted.value(codes.offer("read"))
    expect(codes.redeem("guess")).toBe(null)
    expect(codes.redeem(code)).toBe("read")
    expect(codes.redeem(code)).toBe(null)
  })

  it("is void after its time, and each is its own", () => {
    let now = 0
    const codes = makeBrowserCodes(() => now)
    const [first, second] = [codes.offer("read"), codes.offer("admin")].map(Redacted.value)
    now = codeMillis - 1
    expect(codes.redeem(second ?? "")).toBe("admin")
    now = codeMillis
    expect(codes.redeem(first ?? "")).toBe(null)
  })
})
