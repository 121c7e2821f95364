import { describe, expect, it } from "@effect/vitest"
import { Redacted } from "effect"
import { codeMillis, makeBrowserCodes } from "../../packages/server/src/serve/browser-codes.ts"

describe("a one-time code", () => {
  it("gives one token of its scope, once", () => {
    const codes = makeBrowserCodes()
    const code = Redacted.value(codes.offer("read"))
    const found = codes.redeem(code)
    expect(found?.scope).toBe("read")
    expect(codes.find(found?.token ?? "")).toEqual({ name: "browser", scope: "read" })
    expect([codes.redeem(code), codes.find(code), codes.find("guess")]).toEqual([null, null, null])
  })

  it("is void after its time, and each is its own", () => {
    let now = 0
    const codes = makeBrowserCodes(() => now)
    const [first, second] = [codes.offer("read"), codes.offer("admin")].map(Redacted.value)
    now = codeMillis - 1
    expect(codes.redeem(second ?? "")?.scope).toBe("admin")
    now = codeMillis
    expect(codes.redeem(first ?? "")).toBe(null)
  })
})
