/**
 * Makes images smaller, in a thread of its own: decoding a large one takes seconds and hundreds of megabytes, which end with
 * the thread. Answers one request, `{ data, side, encoded }`, with `{ mediaType, data }`, or with `null` for what cannot be read
 * or does not get small enough.
 */
import { PhotonImage, resize, SamplingFilter } from "@silvia-odwyer/photon-node"
import { parentPort } from "node:worker_threads"
import { type Orientation, orientationOf, turned } from "./orientation.ts"

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

/** A copy holds no note of how the camera was held. */
const stood = (image: PhotonImage, orientation: Orientation): PhotonImage => {
  if (orientation === 1) return image
  const raw = image.get_raw_pixels()
  const pixels = { width: image.get_width(), height: image.get_height(), values: new Uint32Array(raw.buffer) }
  const { height, values, width } = turned(pixels, orientation)
  return new PhotonImage(new Uint8Array(values.buffer), width, height)
}

const shrink = (request: ShrinkRequest): Shrunk | null => {
  const whole = PhotonImage.new_from_byteslice(request.data)
  const orientation = orientationOf(request.data)
  const longest = Math.max(whole.get_width(), whole.get_height())
  for (let side = Math.min(request.side, longest); side >= 1; side = Math.floor(side * 0.7)) {
    const scale = side / longest
    const image = stood(
      resize(
        whole,
        Math.max(1, Math.round(whole.get_width() * scale)),
        Math.max(1, Math.round(whole.get_height() * scale)),
        SamplingFilter.Lanczos3
      ),
      orientation
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
