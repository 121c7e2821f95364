import { imageSize } from "@bezel/core/model"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { fitImage, overLimit } from "../../../packages/plugins/src/providers/fit-image.ts"
import { noisyPng } from "./noisy-png.ts"

const limit = { side: 8_000, encoded: 5 * 1024 * 1024 }

const fitted = (bytes: Buffer, to = limit) => Effect.runPromise(fitImage(bytes.toString("base64"), to))

const sizeOf = (data: string | undefined) => imageSize(Buffer.from(data ?? "", "base64"))

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
