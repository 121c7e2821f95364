/** A picture of noise, which no format makes small: PNG, 8 bits each of red, green and blue. */
import { crc32, deflateSync } from "node:zlib"

const chunk = (type: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

export const noisyPng = (width: number, height: number): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const rows = Buffer.alloc((width * 3 + 1) * height)
  // A generator of its own, so that each run sees the same picture.
  let state = 1
  for (let at = 0; at < rows.length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    rows[at] = at % (width * 3 + 1) === 0 ? 0 : state >>> 24
  }
  return Buffer.concat([
    Buffer.from("\u0089PNG\r\n\u001a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows, { level: 1 })),
    chunk("IEND", Buffer.alloc(0))
  ])
}
