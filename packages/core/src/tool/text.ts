/**
 * Text in bytes: cutting without tearing a character, counting lines, and telling text from binary. Plain synchronous
 * code, because it runs over every byte that a tool prints.
 */

const NEWLINE = 10

/** The longest prefix of at most `maxBytes` bytes and `maxLines` lines that ends between two characters. */
export const headOf = (bytes: Uint8Array, maxBytes: number, maxLines: number): Uint8Array => {
  let end = Math.min(bytes.length, Math.max(0, maxBytes))
  if (end < bytes.length) end = characterStart(bytes, end)
  if (maxLines <= 0) return bytes.subarray(0, 0)
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1 && at < end; at = bytes.indexOf(NEWLINE, at + 1)) {
    lines++
    if (lines === maxLines) return bytes.subarray(0, at + 1)
  }
  return bytes.subarray(0, end)
}

/** The longest suffix of at most `maxBytes` bytes and `maxLines` lines that starts between two characters. */
export const tailOf = (bytes: Uint8Array, maxBytes: number, maxLines: number): Uint8Array => {
  let start = Math.max(0, bytes.length - Math.max(0, maxBytes))
  while (start > 0 && start < bytes.length && isContinuation(bytes[start])) start++
  if (maxLines <= 0) return bytes.subarray(bytes.length)
  if (maxLines === Number.POSITIVE_INFINITY) return bytes.subarray(start)
  let lines = 0
  // A newline at the very end closes the last line, it does not start another.
  for (
    let at = bytes.lastIndexOf(NEWLINE, bytes.length - 2);
    at >= start && bytes.length > 1;
    at = bytes.lastIndexOf(NEWLINE, at - 1)
  ) {
    lines++
    if (lines === maxLines) return bytes.subarray(at + 1)
    if (at === 0) break
  }
  return bytes.subarray(start)
}

export const countNewlines = (bytes: Uint8Array): number => {
  let count = 0
  // Adding a number is several times faster here than incrementing under a condition.
  const { length } = bytes
  for (let index = 0; index < length; index++) count += bytes[index] === NEWLINE ? 1 : 0
  return count
}

/** How many lines are in bytes with so many newlines; an unfinished last line counts. */
export const lineCount = (newlines: number, last: number | undefined): number =>
  newlines + (last === undefined || last === NEWLINE ? 0 : 1)

/** How much of a beginning is looked at. */
export const SAMPLE_BYTES = 8_192

/**
 * Whether the beginning of some bytes shows that they are no text: a NUL, or more than one byte in ten that is neither
 * UTF-8 nor a usual control character. A Latin-1 text is text.
 */
export const looksBinary = (bytes: Uint8Array): boolean => {
  const sample = bytes.subarray(0, SAMPLE_BYTES)
  if (sample.includes(0)) return true
  let odd = 0
  // A character that is cut is not odd.
  const whole = sample.subarray(0, characterStart(sample, sample.length))
  for (const character of decoder.decode(whole)) {
    const code = character.codePointAt(0) ?? 0
    if (
      code === 0xfffd ||
      (code < 32 && code !== 9 && code !== 10 && code !== 13 && code !== 12 && code !== 8 && code !== 27)
    ) odd++
  }
  return odd > 0 && odd * 10 > sample.length
}

/** Text of bytes; what is not UTF-8 becomes U+FFFD. A byte order mark stays. */
export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes)

/** What kind of file some first bytes belong to, in words. */
export const describeBinary = (bytes: Uint8Array): string => {
  const found = signatures.find(([signature]) => signature.every((byte, index) => bytes[index] === byte))
  return found === undefined ? "binary data" : found[1]
}

/** "1,234 bytes", "1.2 MiB". */
export const sizeOf = (bytes: number): string => {
  if (bytes < 10 * 1024) return `${bytes.toLocaleString("en-US")} ${bytes === 1 ? "byte" : "bytes"}`
  const units = ["KiB", "MiB", "GiB", "TiB"]
  let value = bytes / 1024
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "")} ${units[unit]}`
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The start of the character that a cut at `end` would tear, or `end` itself if the cut is between two. */
const characterStart = (bytes: Uint8Array, end: number): number => {
  let start = end
  for (let back = 1; back <= 4 && end - back >= 0; back++) {
    const byte = bytes[end - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    if (length > back) start = end - back
    break
  }
  return start
}

const signatures: ReadonlyArray<readonly [ReadonlyArray<number>, string]> = [
  [[0x7f, 0x45, 0x4c, 0x46], "an ELF program or library"],
  [[0x89, 0x50, 0x4e, 0x47], "a PNG image"],
  [[0xff, 0xd8, 0xff], "a JPEG image"],
  [[0x47, 0x49, 0x46, 0x38], "a GIF image"],
  [[0x25, 0x50, 0x44, 0x46], "a PDF document"],
  [[0x50, 0x4b, 0x03, 0x04], "a ZIP archive (or a document made of one)"],
  [[0x1f, 0x8b], "gzip data"],
  [[0x42, 0x5a, 0x68], "bzip2 data"],
  [[0x28, 0xb5, 0x2f, 0xfd], "zstd data"],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], "xz data"],
  [[0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20], "an SQLite database"],
  [[0x00, 0x61, 0x73, 0x6d], "a WebAssembly module"],
  [[0xca, 0xfe, 0xba, 0xbe], "a Java class or a Mach-O program"],
  [[0xcf, 0xfa, 0xed, 0xfe], "a Mach-O program"],
  [[0x4d, 0x5a], "a Windows program"]
]
