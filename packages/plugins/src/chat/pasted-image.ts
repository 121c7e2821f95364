/**
 * Images that are pasted: the path of a file that was dropped on the terminal, quoted or escaped as for a shell, or a
 * `data:` address.
 *
 * The file is read where the person sits, who has chosen it, as `bezel run --file` does. What cannot be an image that a model
 * takes is refused with the reason: too large a file, too many pixels, another content than its name says.
 */
import { type FilePart, imageHeadBytes, imageSize } from "@bezel/core/model"
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, isAbsolute, join } from "node:path"
import { fileURLToPath } from "node:url"
import { imageType } from "../tools/image.ts"

const maxBytes = 5 * 1024 * 1024
/** Pixels of a side, and of the whole; more is no picture for a model, and would fill the memory of whoever decodes it. */
const maxSide = 16_384
const maxPixels = 100_000_000

export type PastedImage = { readonly image: FilePart } | { readonly refused: string }

/** The absolute path that a pasted text is, or `null`. */
export const pastedPath = (pasted: string): string | null => {
  const text = pasted.trim()
  if (text === "" || text.length > 4_000 || /[\n\r\0]/.test(text)) return null
  if (text.startsWith("file://")) {
    try {
      return fileURLToPath(text)
    } catch {
      return null
    }
  }
  const quoted = /^(['"])(.*)\1$/.exec(text)
  const plain = quoted?.[2] ?? text.replace(/\\(.)/g, "$1")
  const path = plain.startsWith("~/") ? join(homedir(), plain.slice(2)) : plain
  return isAbsolute(path) && /\.(png|jpe?g|gif|webp)$/i.test(path) ? path : null
}

const mebibytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(bytes < 10 * 1024 * 1024 ? 1 : 0)} MiB`

const tooLarge = (name: string, bytes: number): PastedImage => ({
  refused: `${name} is not attached: it has ${mebibytes(bytes)}, and an image may have ${mebibytes(maxBytes)} at most.`
})

/** The image that bytes are, by their own words and not by a name. */
const imageOf = (name: string, bytes: Buffer): PastedImage => {
  if (bytes.length === 0) return { refused: `${name} is not attached: it is empty.` }
  const mediaType = imageType(bytes)
  if (mediaType === null) return { refused: `${name} is not attached: it is no PNG, JPEG, GIF or WebP image.` }
  const size = imageSize(bytes.subarray(0, imageHeadBytes))
  if (size === null) return { refused: `${name} is not attached: it is damaged, and does not say how large it is.` }
  const { height, width } = size
  if (width > maxSide || height > maxSide || width * height > maxPixels) {
    return { refused: `${name} is not attached: it has ${width}×${height} pixels; make it smaller first.` }
  }
  return { image: { type: "file", mediaType, fileName: name, data: bytes.toString("base64") } }
}

const dataAddress = /^data:image\/(png|jpeg|gif|webp);base64,([A-Za-z0-9+/\s]*={0,2})$/

/** What a pasted text is the path of, or holds itself; `null` where it is text and nothing else. */
export const pastedImage = (pasted: string): PastedImage | null => {
  if (pasted.startsWith("data:image/")) {
    const [, kind = "image", encoded] = dataAddress.exec(pasted.trim()) ?? []
    if (encoded === undefined) return null
    const bytes = encoded.length * 3 / 4
    return bytes > maxBytes
      ? tooLarge(`pasted.${kind}`, bytes)
      : imageOf(`pasted.${kind}`, Buffer.from(encoded, "base64"))
  }
  const path = pastedPath(pasted)
  if (path === null) return null
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = fstatSync(descriptor)
      if (!stats.isFile()) return null
      return stats.size > maxBytes
        ? tooLarge(basename(path), stats.size)
        : imageOf(basename(path), readFileSync(descriptor))
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return null
  }
}
