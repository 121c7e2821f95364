import { plainOutput, sanitize, sanitizeLine } from "@bezel/tui"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

describe("sanitize", () => {
  it("gives back plain text as it is, in every script", () => {
    for (
      const text of [
        "",
        "plain",
        "two\nlines",
        "日本語",
        "עברית וערבית عربي",
        "é e\u0301",
        "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪",
        "नमस्ते",
        "a\u200db\u200c",
        "\u200f\u200e"
      ]
    ) {
      expect(sanitize(text)).toBe(text)
    }
  })

  it("shows control characters as control pictures", () => {
    expect(sanitize("\x1b[31mred\x1b[0m")).toBe("␛[31mred␛[0m")
    expect(sanitize("\x1b]52;c;aGk=\x07")).toBe("␛]52;c;aGk=␇")
    expect(sanitize("\x1bPq#0\x1b\\")).toBe("␛Pq#0␛\\")
    expect(sanitize("a\0b\bc\x7f")).toBe("a␀b␈c␡")
    expect(sanitize("over\rwritten")).toBe("over␍written")
  })

  it("shows C1 controls, bidirectional overrides and invisible characters by their code point", () => {
    expect(sanitize("\u009b31m")).toBe("<U+009B>31m")
    expect(sanitize("evil\u202egnp.exe")).toBe("evil<U+202E>gnp.exe")
    expect(sanitize("\u2066x\u2069")).toBe("<U+2066>x<U+2069>")
    expect(sanitize("a\u200bb\ufeffc\u00add")).toBe("a<U+200B>b<U+FEFF>c<U+00AD>d")
    expect(sanitize("a\u2028b")).toBe("a<U+2028>b")
  })

  it("shows text hidden in tag characters, and leaves the flags of regions alone", () => {
    expect(sanitize("hi\u{e0041}\u{e0042}")).toBe("hi<U+E0041><U+E0042>")
    const scotland = "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}"
    expect(sanitize(`${scotland}!\x1b`)).toBe(`${scotland}!␛`)
    expect(sanitize("🏴\u{e0041}")).toBe("🏴<U+E0041>")
  })

  it("replaces lone surrogates, expands tabs and takes CRLF for a line feed", () => {
    expect(sanitize("a\ud800b\udc00")).toBe("a\ufffdb\ufffd")
    expect(sanitize("\ta\r\nb")).toBe("    a\nb")
    expect(sanitizeLine("a\r\nb\nc")).toBe("a␊b␊c")
  })

  it("lets no control character but the line feed through, whatever comes", () => {
    expect(() =>
      fc.assert(
        fc.property(
          fc.string({
            unit: fc.oneof(
              fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
              fc.constantFrom("\x1b", "\x9b", "\r", "\u202e", "🏴", "\u{e0041}", "\u{e007f}")
            )
          }),
          (text) => {
            // eslint-disable-next-line no-control-regex
            return !/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(sanitize(text))
          }
        )
      )
    ).not.toThrow()
  })
})

describe("plainOutput", () => {
  it("drops colours and keeps what a progress bar showed last", () => {
    expect(plainOutput("\x1b[32mok\x1b[0m")).toBe("ok")
    expect(plainOutput("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n")
  })

  it("leaves every other sequence for the sanitizer to show", () => {
    expect(sanitize(plainOutput("\x1b]0;t\x07\x1b[2J"))).toBe("␛]0;t␇␛[2J")
  })
})
