/**
 * How a camera was held: a photograph holds its pixels as the sensor saw them, and says beside them how they are to be turned (Exif 2.32, 4.6.4,
 * tag 0x0112). A copy without that note has to have its pixels turned.
 */

/** 1 to 8, where 1 is upright. */
export type Orientation = number

const upright: Orientation = 1

/** From the head of a JPEG; what says nothing, or something odd, is upright. */
export const orientationOf = (bytes: Uint8Array): Orientation => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const has = (at: number, count: number): boolean => at >= 0 && at + count <= view.byteLength
  if (!has(0, 2) || view.getUint16(0) !== 0xffd8) return upright
  for (let at = 2; has(at, 10) && view.getUint8(at) === 0xff && view.getUint8(at + 1) !== 0xda;) {
    // "Exif", two zeros, then a TIFF file whose first directory holds the tag.
    if (view.getUint8(at + 1) === 0xe1 && view.getUint32(at + 4) === 0x45786966) {
      const tiff = at + 10
      if (!has(tiff, 8)) return upright
      const little = view.getUint16(tiff) === 0x4949
      const directory = tiff + view.getUint32(tiff + 4, little)
      if (!has(directory, 2)) return upright
      const entries = view.getUint16(directory, little)
      for (let entry = directory + 2; entry < directory + 2 + entries * 12 && has(entry, 12); entry += 12) {
        if (view.getUint16(entry, little) !== 0x0112) continue
        const value = view.getUint16(entry + 8, little)
        return value >= 1 && value <= 8 ? value : upright
      }
      return upright
    }
    at += 2 + view.getUint16(at + 2)
  }
  return upright
}

export interface Pixels {
  readonly width: number
  readonly height: number
  /** Row by row, one number for each pixel. */
  readonly values: Uint32Array
}

/** The same picture upright. */
export const turned = ({ height, values, width }: Pixels, orientation: Orientation): Pixels => {
  const right = width - 1
  const bottom = height - 1
  const source = (x: number, y: number): number => {
    switch (orientation) {
      case 2:
        return y * width + right - x
      case 3:
        return (bottom - y) * width + right - x
      case 4:
        return (bottom - y) * width + x
      case 5:
        return x * width + y
      case 6:
        return (bottom - x) * width + y
      case 7:
        return (bottom - x) * width + right - y
      case 8:
        return x * width + right - y
      default:
        return y * width + x
    }
  }
  const [columns, rows] = orientation >= 5 ? [height, width] : [width, height]
  const result = new Uint32Array(values.length)
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) result[y * columns + x] = values[source(x, y)] ?? 0
  }
  return { width: columns, height: rows, values: result }
}
