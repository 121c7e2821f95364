/**
 * Reads git's index: which files a repository knows, with the content that each had and the times of it. Pure.
 *
 * Versions 2 to 4 with names of SHA-1, as git's documentation of the format has it. What cannot be read whole, an index that
 * is split among them, is `null`; nothing of it is guessed.
 */

/** One file as it was when git last looked at it. */
export interface IndexEntry {
  /** From the top of the work tree, with `/`. */
  readonly path: string
  readonly type: "file" | "link"
  readonly id: string
  /** Bytes on the disk, modulo 2³². */
  readonly size: number
  readonly ino: number
  /** Milliseconds since the epoch, in the same rounding as Node's. */
  readonly mtimeMs: number
  readonly ctimeMs: number
}

const idBytes = 20
const fixedBytes = 40 + idBytes + 2
const linkMode = 0o120000
const fileMode = 0o100000

/** Entries without conflict, in order of their paths; submodules and files that are not checked out are left out. */
export const parseIndex = (index: Buffer): ReadonlyArray<IndexEntry> | null => {
  try {
    return parse(index)
  } catch (error) {
    // Behind the end of what is there.
    if (error instanceof RangeError) return null
    throw error
  }
}

const parse = (index: Buffer): ReadonlyArray<IndexEntry> | null => {
  const version = index.readUInt32BE(4)
  if (index.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) return null
  const count = index.readUInt32BE(8)
  const entries: Array<IndexEntry> = []
  let at = 12
  let before = ""
  for (let number = 0; number < count; number++) {
    const start = at
    const flags = index.readUInt16BE(start + fixedBytes - 2)
    const isExtended = (flags & 0x4000) !== 0
    const further = isExtended ? index.readUInt16BE(start + fixedBytes) : 0
    at = start + fixedBytes + (isExtended ? 2 : 0)
    let path: string
    if (version < 4) {
      const end = index.indexOf(0, at)
      if (end < 0) return null
      path = index.toString("utf8", at, end)
      at = start + ((end - start + 8) & ~7)
    } else {
      // The path of the one before without its last bytes, and what comes in their place.
      let byte = index.readUInt8(at++)
      let strip = byte & 127
      while ((byte & 128) !== 0) {
        byte = index.readUInt8(at++)
        strip = (strip + 1) * 128 + (byte & 127)
      }
      const end = index.indexOf(0, at)
      if (end < 0) return null
      before = before.slice(0, before.length - strip) + index.toString("latin1", at, end)
      path = Buffer.from(before, "latin1").toString("utf8")
      at = end + 1
    }
    const kind = index.readUInt32BE(start + 24) & 0o170000
    const isMerged = (flags & 0x3000) === 0
    const isSkipped = (further & 0x4000) !== 0
    if (!isMerged || isSkipped || (kind !== fileMode && kind !== linkMode)) continue
    entries.push({
      path,
      type: kind === linkMode ? "link" : "file",
      id: index.toString("hex", start + 40, start + 40 + idBytes),
      size: index.readUInt32BE(start + 36),
      ino: index.readUInt32BE(start + 20),
      mtimeMs: index.readUInt32BE(start + 8) * 1_000 + index.readUInt32BE(start + 12) / 1e6,
      ctimeMs: index.readUInt32BE(start) * 1_000 + index.readUInt32BE(start + 4) / 1e6
    })
  }
  // Parts that must be understood have names in small letters: that of a split index, that of a sparse one.
  for (const end = index.length - idBytes; at + 8 <= end; at += 8 + index.readUInt32BE(at + 4)) {
    const first = index.readUInt8(at)
    if (first >= 97 && first <= 122) return null
  }
  return at <= index.length ? entries : null
}
