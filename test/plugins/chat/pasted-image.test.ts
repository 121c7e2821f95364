import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { pastedImage, pastedPath } from "../../../packages/plugins/src/chat/pasted-image.ts"

const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(33)
  bytes.write("89504e470d0a1a0a0000000d49484452", 0, "hex")
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}

describe("a pasted text", () => {
  it.each([
    ["/a/b.png", "/a/b.png"],
    [" '/a/my shot.PNG' ", "/a/my shot.PNG"],
    ["/a/my\\ shot.jpeg", "/a/my shot.jpeg"],
    ["file:///a/my%20shot.webp", "/a/my shot.webp"],
    ["b.png", null],
    ["/a/b.txt", null],
    ["/a/b.png\n/a/c.png", null],
    ["file://%", null],
    ["", null]
  ])("%j is the path %j", (pasted, path) => {
    expect(pastedPath(pasted)).toBe(path)
  })

  it("is an image only if such a file is there and is one", () => {
    const folder = mkdtempSync(join(tmpdir(), "bezel-paste-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, "a.png"), png(640, 480))
    expect(pastedImage(join(folder, "a.png"))).toEqual({
      image: { type: "file", mediaType: "image/png", fileName: "a.png", data: png(640, 480).toString("base64") }
    })
    expect(pastedImage(join(folder, "c.png"))).toBeNull()
    expect(pastedImage(`${folder}.png`)).toBeNull()
    mkdirSync(join(folder, "d.png"))
    expect(pastedImage(join(folder, "d.png"))).toBeNull()
    execFileSync("mkfifo", [join(folder, "e.png")])
    expect(pastedImage(join(folder, "e.png"))).toBeNull()
  })

  it("is an image where it is a data address of one", () => {
    const data = png(2, 3).toString("base64")
    expect(pastedImage(`data:image/png;base64,${data}\n`)).toMatchObject({ image: { mediaType: "image/png", data } })
    expect(pastedImage("data:image/png;base64,!!!")).toBeNull()
    expect(pastedImage("data:text/html;base64,AAAA")).toBeNull()
    expect(pastedImage(`data:image/png;base64,${"A".repeat(8_000_000)}`)).toMatchObject({
      refused: expect.stringContaining("at most")
    })
  })

  it.each([
    ["nothing", Buffer.alloc(0), "it is empty"],
    ["text", Buffer.from("a text that calls itself an image"), "it is no PNG, JPEG, GIF or WebP image"],
    ["a signature alone", png(1, 1).subarray(0, 8), "it is damaged, and does not say how large it is"],
    ["pixels without end", png(100_000, 100_000), "it has 100000×100000 pixels; make it smaller first"],
    ["a million rows of one pixel", png(1, 1_000_000), "it has 1×1000000 pixels; make it smaller first"]
  ])("is refused with the reason where the file holds %s", (_, bytes, why) => {
    const folder = mkdtempSync(join(tmpdir(), "bezel-paste-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, "a.png"), bytes)
    expect(pastedImage(join(folder, "a.png"))).toEqual({ refused: `a.png is not attached: ${why}.` })
  })

  it("is refused by its size without being read", () => {
    const folder = mkdtempSync(join(tmpdir(), "bezel-paste-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, "a.png")
    writeFileSync(file, png(10, 10))
    truncateSync(file, 100 * 1024 * 1024)
    const before = process.memoryUsage().arrayBuffers
    expect(pastedImage(file)).toEqual({
      refused: "a.png is not attached: it has 100 MiB, and an image may have 5.0 MiB at most."
    })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10 * 1024 * 1024)
  })
})
