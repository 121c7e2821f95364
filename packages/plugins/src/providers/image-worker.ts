/**
 * Makes images smaller, in a thread of its own: decoding a large one takes seconds and hundreds of megabytes, which end with
 * the thread. Answers one request, `{ data, side, encoded }`, with `{ mediaType, data }`, or with `null` for what cannot be read
 * or does not get small enough.
 */
import { PhotonImage, resize, SamplingFilter } from "@silvia-odwyer/photon-node"
import { parentPort } from "node:worker_threads"

export interface ShrinkRequest {
  readonly data: Uint8Array
  /** Pixels of a side, at most. */
  readonly side: number
  /** Bytes as Base64, at most. */
  readonly encoded: number
}

export interface Shrunk {
  readonly mediaType: "image/png" | "image/jpeg"
  readonly data: Uint8Array
}

/** A picture of a screen stays readable as PNG; a photograph only gets small as JPEG. */
const jpegQuality = 85

const fits = (bytes: Uint8Array, { encoded }: ShrinkRequest): boolean => Math.ceil(bytes.length / 3) * 4 <= encoded

const shrink = (request: ShrinkRequest): Shrunk | null => {
  const whole = PhotonImage.new_from_byteslice(request.data)
  const longest = Math.max(whole.get_width(), whole.get_height())
  for (let side = Math.min(request.side, longest); side >= 1; side = Math.floor(side * 0.7)) {
    const scale = side / longest
    const image = resize(
      whole,
      Math.max(1, Math.round(whole.get_width() * scale)),
      Math.max(1, Math.round(whole.get_height() * scale)),
      SamplingFilter.Lanczos3
    )
    const png = image.get_bytes()
    if (fits(png, request)) return { mediaType: "image/png", data: png }
    const jpeg = image.get_bytes_jpeg(jpegQuality)
    if (fits(jpeg, request)) return { mediaType: "image/jpeg", data: jpeg }
    image.free()
  }
  return null
}

parentPort?.once("message", (request: ShrinkRequest) => {
  let answer: Shrunk | null = null
  try {
    answer = shrink(request)
  } catch {
    // It is damaged, or no image of a kind that is read here.
  }
  parentPort?.postMessage(answer, [])
})
