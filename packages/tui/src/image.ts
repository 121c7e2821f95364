/**
 * Images: what is said of one where it is not drawn, and whether it may be.
 *
 * An image is the one thing whose bytes go to the terminal as they came, inside the terminal's own protocol. So nothing else
 * than Base64 text of an image that says how large it is gets there, and none that would fill the terminal's memory. This
 * file needs no terminal library.
 */
import { imageHeadBytes, imageSize } from "@bezel/core/model"
import type { ImageBlock } from "./block.ts"

/** Characters of Base64 that are worth sending through a slow line, maybe more than once. */
const maxDrawn = 1_500_000
/** Pixels that a terminal decodes for one image: a hundred megabytes of its memory. */
const maxDrawnPixels = 25_000_000

/** What terminals draw images with; kitty's protocol takes PNG only. */
export type ImageProtocol = "kitty" | "iterm2"

type Image = Pick<ImageBlock, "data" | "mediaType">

const sizeOf = ({ data }: Image) => imageSize(Buffer.from(data.slice(0, Math.ceil(imageHeadBytes / 3) * 4), "base64"))

const byteSize = (bytes: number): string =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1024 * 1024
    ? `${Math.round(bytes / 1024)} KB`
    : `${(bytes / 1024 / 1024).toFixed(1)} MB`

/** What an image is, in words: `640×480 png, 12 KB`. Of another file, its media type and size. */
export const describeImage = (image: Image): string => {
  const size = sizeOf(image)
  const kind = image.mediaType.replace(/^image\//, "")
  const padding = /=*$/.exec(image.data.slice(-2))?.[0].length ?? 0
  const bytes = Math.floor((image.data.length - padding) * 3 / 4)
  return `${size === null ? "" : `${size.width}×${size.height} `}${kind}, ${byteSize(bytes)}`
}

/** The size in pixels of an image that a terminal may be given, or `null`. */
export const drawableSize = (
  image: Image,
  protocol: ImageProtocol
): { readonly widthPx: number; readonly heightPx: number } | null => {
  const { data, mediaType } = image
  if (data.length > maxDrawn || !mediaType.startsWith("image/")) return null
  if (protocol === "kitty" && !(mediaType === "image/png" && data.startsWith("iVBORw0KGgo"))) return null
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return null
  const size = sizeOf(image)
  return size === null || size.width * size.height > maxDrawnPixels
    ? null
    : { widthPx: size.width, heightPx: size.height }
}
