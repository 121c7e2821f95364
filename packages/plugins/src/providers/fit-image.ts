/**
 * Images that are over a provider's limits, as smaller copies that are not. The originals stay what the conversation holds;
 * copies are made when a request needs them, each once for as long as it is remembered.
 */
import { imageHeadBytes, imageSize } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import { inThread, type ThreadLimits } from "../threads/index.ts"
import type { ShrinkRequest, Shrunk } from "./image-worker.ts"

export interface ImageLimit {
  /** Pixels of a side. */
  readonly side: number
  /** Bytes as Base64. */
  readonly encoded: number
}

export interface FittedImage {
  readonly mediaType: string
  /** Base64. */
  readonly data: string
}

/** Pixels of a side of a copy: providers make larger ones smaller themselves, and many images may not be larger. */
const copySide = 2_000

/** An image of more pixels is not decoded: four bytes for each are needed. */
const mostPixels = 120_000_000

/** A copy that takes longer, or more memory, is not made. */
const patience: ThreadLimits = { time: "20 seconds", memory: 2 * 1024 ** 3 }

const sizeOf = (base64: string) => imageSize(Buffer.from(base64.slice(0, Math.ceil(imageHeadBytes / 3) * 4), "base64"))

/** Why an image is over a limit, or `null`. `data` is Base64. */
export const overLimit = (data: string, limit: ImageLimit): string | null => {
  if (data.length > limit.encoded) return `it has more than ${(limit.encoded / 1024 / 1024).toFixed(0)} MiB as Base64`
  const size = sizeOf(data)
  return size !== null && Math.max(size.width, size.height) > limit.side
    ? `it has ${size.width}×${size.height} pixels, and ${limit.side.toLocaleString("en-US")} a side are the most`
    : null
}

/** A copy within the limit, or `null` where none can be made. `data` is Base64. */
export const fitImage = (data: string, { encoded, side }: ImageLimit): Effect.Effect<FittedImage | null> => {
  const size = sizeOf(data)
  if (size === null || size.width * size.height > mostPixels) return Effect.succeed(null)
  const request: ShrinkRequest = { data: Buffer.from(data, "base64"), side: Math.min(side, copySide), encoded }
  return Effect.map(
    inThread<Shrunk | null>("providers/image-worker", request, patience),
    (end) =>
      end.type !== "answered" || end.answer === null
        ? null
        : { mediaType: end.answer.mediaType, data: Buffer.from(end.answer.data).toString("base64") }
  )
}
