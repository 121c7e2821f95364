/**
 * How large an image is, as its first bytes say: PNG, JPEG, GIF and WebP.
 *
 * Nothing is decoded, so an image that claims a million rows costs no more than another one. What is said may be a lie, and
 * the rest of the file may be damaged; a reader that has to trust it decodes it.
 */

/** In pixels; never zero. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Bytes of a file's beginning that hold its size, also behind a camera's preview picture in a JPEG file. */
export const imageHeadBytes = 256 * 1024

const latin1 = (bytes: Uint8Array, from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to))

const bigEndian = (bytes: Uint8Array, at: number, count: number): number => {
  let value = 0
  for (let index = 0; index < count; index++) value = value * 256 + (bytes[at + index] ?? 0)
  return value
}

const littleEndian = (bytes: Uint8Array, at: number, count: number): number => {
  let value = 0
  for (let index = count - 1; index >= 0; index--) value = value * 256 + (bytes[at + index] ?? 0)
  return value
}

/** ITU T.81, B.2.2: the frame header, which is one of the markers C0 to CF but for three that are something else. */
const jpegSize = (bytes: Uint8Array): ImageSize | null => {
  for (let at = 2; at + 8 < bytes.length;) {
    if (bytes[at] !== 0xff) return null
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) {
      at++
      continue
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { height: bigEndian(bytes, at + 5, 2), width: bigEndian(bytes, at + 7, 2) }
    }
    const hasNoLength = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)
    const length = hasNoLength ? 0 : bigEndian(bytes, at + 2, 2)
    if (!hasNoLength && length < 2) return null
    at += 2 + length
  }
  return null
}

/** RFC 9649, sections 2.5 to 2.7: lossy, lossless and extended files. */
const webpSize = (bytes: Uint8Array): ImageSize | null => {
  switch (latin1(bytes, 12, 16)) {
    case "VP8 ":
      return { width: littleEndian(bytes, 26, 2) & 0x3fff, height: littleEndian(bytes, 28, 2) & 0x3fff }
    case "VP8L": {
      const bits = littleEndian(bytes, 21, 4)
      return { width: bits % 0x4000 + 1, height: Math.floor(bits / 0x4000) % 0x4000 + 1 }
    }
    case "VP8X":
      return { width: littleEndian(bytes, 24, 3) + 1, height: littleEndian(bytes, 27, 3) + 1 }
    default:
      return null
  }
}

const sizeIn = (bytes: Uint8Array): ImageSize | null => {
  if (bytes.length < 10) return null
  if (latin1(bytes, 0, 8) === "\u0089PNG\r\n\u001a\n") {
    return bytes.length < 24 || latin1(bytes, 12, 16) !== "IHDR"
      ? null
      : { width: bigEndian(bytes, 16, 4), height: bigEndian(bytes, 20, 4) }
  }
  if (latin1(bytes, 0, 3) === "\u00ff\u00d8\u00ff") return jpegSize(bytes)
  if (/^GIF8[79]a$/.test(latin1(bytes, 0, 6))) {
    return { width: littleEndian(bytes, 6, 2), height: littleEndian(bytes, 8, 2) }
  }
  if (latin1(bytes, 0, 4) === "RIFF" && latin1(bytes, 8, 12) === "WEBP") {
    return bytes.length < 30
      ? null
      : webpSize(bytes)
  }
  return null
}

/** The size of an image that begins with these bytes; `null` where they begin none, or do not say. */
export const imageSize = (bytes: Uint8Array): ImageSize | null => {
  const size = sizeIn(bytes)
  return size === null || size.width === 0 || size.height === 0 ? null : size
}
