import { describe, expect, it } from "vitest"
import { canPlaceText, localeWarning } from "../../../packages/cli/src/host/locale.ts"

describe("the locale", () => {
  it("is told of where it names another character set than the one that is written", () => {
    expect(localeWarning({ LANG: "de_DE.ISO-8859-1@euro" })).toMatch(/^The locale says ISO-8859-1, .*LANG=C\.UTF-8\.$/)
    expect(localeWarning({ LANG: "C.UTF-8", LC_ALL: "ja_JP.eucJP" })).toContain("eucJP")
  })

  it("says nothing where it names UTF-8 or none, whichever variable does", () => {
    for (const said of [{}, { LANG: "" }, { LANG: "C" }, { LC_ALL: "POSIX" }, { LANG: "en_GB.utf8" }]) {
      expect(localeWarning(said)).toBeNull()
    }
    expect(localeWarning({ LANG: "de_DE.ISO-8859-1", LC_CTYPE: "de_DE.UTF-8" })).toBeNull()
  })
})

describe("a terminal", () => {
  it("that calls itself dumb cannot place text", () => {
    expect([canPlaceText({ TERM: "dumb" }), canPlaceText({ TERM: "xterm" }), canPlaceText({})]).toEqual([
      false,
      true,
      true
    ])
  })
})
