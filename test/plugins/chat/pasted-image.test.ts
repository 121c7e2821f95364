import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { pastedImage, pastedPath } from "../../../packages/plugins/src/chat/pasted-image.ts"

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
    writeFileSync(join(folder, "a.png"), Buffer.from("89504e470d0a1a0a", "hex"))
    writeFileSync(join(folder, "b.png"), "text")
    expect(pastedImage(join(folder, "a.png"))).toMatchObject({ mediaType: "image/png", fileName: "a.png" })
    expect(pastedImage(join(folder, "b.png"))).toBeNull()
    expect(pastedImage(join(folder, "c.png"))).toBeNull()
    expect(pastedImage(`${folder}.png`)).toBeNull()
  })
})
