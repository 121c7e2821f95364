import { imageSize } from "@bezel/core/model"
import { describe, expect, it } from "vitest"

const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(33)
  bytes.write("89504e470d0a1a0a0000000d49484452", 0, "hex")
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}

const jpeg = (width: number, height: number, before = 0): Buffer => {
  const segment = Buffer.alloc(before === 0 ? 0 : before + 2)
  if (before > 0) {
    segment.writeUInt16BE(0xffe1, 0)
    segment.writeUInt16BE(before, 2)
  }
  const frame = Buffer.from("ffc2001108000000000301220002110103110100", "hex")
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  return Buffer.concat([Buffer.from("ffd8", "hex"), segment, Buffer.from("ff", "hex"), frame])
}

const gif = (width: number, height: number): Buffer => {
  const bytes = Buffer.from("GIF89a\0\0\0\0\0\0\0", "latin1")
  bytes.writeUInt16LE(width, 6)
  bytes.writeUInt16LE(height, 8)
  return bytes
}

const webp = (kind: "VP8 " | "VP8L" | "VP8X", width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(34)
  bytes.write(`RIFF\0\0\0\0WEBP${kind}`, 0, "latin1")
  if (kind === "VP8 ") {
    bytes.writeUInt16LE(width | 0x4000, 26)
    bytes.writeUInt16LE(height, 28)
  } else if (kind === "VP8L") {
    bytes.writeUInt32LE((width - 1) + (height - 1) * 0x4000, 21)
  } else {
    bytes.writeUIntLE(width - 1, 24, 3)
    bytes.writeUIntLE(height - 1, 27, 3)
  }
  return bytes
}

describe("the size of an image", () => {
  it.each([
    ["PNG", png(640, 480)],
    ["PNG of a hundred thousand pixels each way", png(100_000, 100_000)],
    ["JPEG", jpeg(640, 480)],
    ["JPEG behind a preview", jpeg(640, 480, 60_000)],
    ["GIF", gif(640, 480)],
    ["lossy WebP", webp("VP8 ", 640, 480)],
    ["lossless WebP", webp("VP8L", 640, 480)],
    ["extended WebP", webp("VP8X", 640, 480)]
  ])("of a %s is what its first bytes say", (name, bytes) => {
    expect(imageSize(bytes)).toEqual(
      name.includes("thousand") ? { width: 100_000, height: 100_000 } : { width: 640, height: 480 }
    )
  })

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["a signature alone", png(1, 1).subarray(0, 8)],
    ["no header after the signature", Buffer.concat([png(1, 1).subarray(0, 12), Buffer.alloc(30)])],
    ["no width", png(0, 5)],
    ["text", Buffer.from("a text that is longer than a header of any image is")],
    ["a JPEG that ends early", Buffer.from("ffd8ffe1ffff00", "hex")],
    ["a JPEG whose segments have no length", Buffer.from(`ffd8ffe0${"00".repeat(40)}`, "hex")],
    ["a JPEG of fill bytes", Buffer.from(`ffd8${"ff".repeat(4_000)}`, "hex")],
    ["a WebP of another kind", Buffer.from(`RIFF\0\0\0\0WEBPVP9X${"\0".repeat(20)}`, "latin1")]
  ])("is not known of %s", (_, bytes) => {
    expect(imageSize(bytes)).toBeNull()
  })
})
