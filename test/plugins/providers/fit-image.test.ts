import { imageSize } from "@bezel/core/model"
import { PhotonImage } from "@silvia-odwyer/photon-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { fitImage, overLimit } from "../../../packages/plugins/src/providers/fit-image.ts"
import { noisyPng } from "./noisy-png.ts"

const limit = { side: 8_000, encoded: 5 * 1024 * 1024 }

const fitted = (bytes: Buffer, to = limit) => Effect.runPromise(fitImage(bytes.toString("base64"), to))

const sizeOf = (data: string | undefined) => imageSize(Buffer.from(data ?? "", "base64"))

const colours = { r: [255, 0, 0], g: [0, 255, 0], b: [0, 0, 255], w: [255, 255, 255] }

/** The corner's name, by which channels are bright. */
const nameOf = (pixel: Uint8Array): string =>
  Object.entries(colours).find(([, colour]) =>
    colour.every((value, index) => (pixel[index] ?? 0) > 127 === value > 127)
  )
    ?.[0] ?? "?"

/** A JPEG of 120×60 pixels: red and green above, blue and white below. */
const plain = (): Buffer => {
  const raw = new Uint8Array(120 * 60 * 4)
  for (let at = 0; at < 120 * 60; at++) {
    const corner = at < 120 * 30 ? (at % 120 < 60 ? "r" : "g") : at % 120 < 60 ? "b" : "w"
    raw.set([...colours[corner], 255], at * 4)
  }
  return Buffer.from(new PhotonImage(raw, 120, 60).get_bytes_jpeg(95))
}

/** The same as a camera writes it, with a note of how it was held. */
const photograph = (orientation: number, little: boolean): Buffer => {
  const two = (value: number) => little ? [value, 0] : [0, value]
  const four = (value: number) => little ? [value, 0, 0, 0] : [0, 0, 0, value]
  const tiff = [
    ...Buffer.from(little ? "II" : "MM"),
    ...two(42),
    ...four(8),
    ...two(1),
    ...(little ? [0x12, 0x01] : [0x01, 0x12]),
    ...two(3),
    ...four(1),
    ...two(orientation),
    ...two(0),
    ...four(0)
  ]
  const note = [...Buffer.from("Exif"), 0, 0, ...tiff]
  const picture = plain()
  return Buffer.concat([
    picture.subarray(0, 2),
    Buffer.from([0xff, 0xe1, 0, note.length + 2, ...note]),
    picture.subarray(2)
  ])
}

describe("a smaller copy of an image", { timeout: 60_000 }, () => {
  it("of too many bytes is within them, as it was in its form", async () => {
    const image = noisyPng(1_600, 1_200)
    expect(overLimit(image.toString("base64"), limit)).toMatch(/more than 5 MiB/)
    const copy = await fitted(image)
    expect(overLimit(copy?.data ?? "", limit)).toBeNull()
    expect(copy?.mediaType).toBe("image/jpeg")
    expect(sizeOf(copy?.data)).toEqual({ width: 1_600, height: 1_200 })
  })

  it("of too many pixels keeps its proportions, and stays a PNG where that is small", async () => {
    const image = noisyPng(8_200, 20)
    expect(overLimit(image.toString("base64"), limit)).toMatch(/8200×20 pixels/)
    const copy = await fitted(image)
    expect(copy?.mediaType).toBe("image/png")
    expect(sizeOf(copy?.data)).toEqual({ width: 2_000, height: 5 })
  })

  it("gets smaller until it is small enough", async () => {
    const copy = await fitted(noisyPng(600, 600), { side: 8_000, encoded: 60_000 })
    expect(copy?.data.length).toBeLessThanOrEqual(60_000)
    expect(sizeOf(copy?.data)?.width).toBeLessThan(600)
  })

  // Which corner of the stored picture stands top left, top right, bottom left, bottom right (Exif 2.32, 4.6.4).
  it.each([
    [1, "rgbw"],
    [2, "grwb"],
    [3, "wbgr"],
    [4, "bwrg"],
    [5, "rbgw"],
    [6, "brwg"],
    [7, "wgbr"],
    [8, "gwrb"]
  ])("stands as the camera was held: orientation %i", async (orientation, corners) => {
    for (const little of [true, false]) {
      const copy = await fitted(photograph(orientation, little), { side: 60, encoded: 100_000 })
      const image = PhotonImage.new_from_byteslice(Buffer.from(copy?.data ?? "", "base64"))
      const [width, height] = [image.get_width(), image.get_height()]
      expect([width, height]).toEqual(orientation >= 5 ? [30, 60] : [60, 30])
      const raw = image.get_raw_pixels()
      const at = (x: number, y: number) => nameOf(raw.subarray((y * width + x) * 4))
      const seen = [at(5, 5), at(width - 6, 5), at(5, height - 6), at(width - 6, height - 6)]
      expect(seen.join("")).toBe(corners)
    }
  })

  it("stands as it is where the note of the camera is cut, odd or none", async () => {
    const whole = photograph(6, true)
    const wrong = [photograph(9, true), photograph(0, false), plain()]
    // The note's own length stays right: what it holds leads out of it.
    for (const at of [16, 22, 30]) wrong.push(Buffer.from(whole).fill(0xff, at, at + 2))
    for (const picture of wrong) {
      expect(sizeOf((await fitted(picture, { side: 60, encoded: 100_000 }))?.data)).toEqual({ width: 60, height: 30 })
    }
  })

  it("is not made of what is damaged, is no image, or claims to be too large to be looked at", async () => {
    const image = noisyPng(1_600, 1_200)
    expect(await fitted(image.subarray(0, 5_000_000))).toBeNull()
    expect(await fitted(Buffer.alloc(6_000_000, "text"))).toBeNull()
    const vast = noisyPng(10, 10)
    vast.writeUInt32BE(60_000, 16)
    vast.writeUInt32BE(60_000, 20)
    expect(await fitted(vast)).toBeNull()
    const lying = noisyPng(10, 10)
    lying.writeUInt32BE(9_000, 16)
    expect(await fitted(lying)).toBeNull()
  })
})
