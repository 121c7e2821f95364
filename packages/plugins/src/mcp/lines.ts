/**
 * Splits the output of a server into lines, in linear time and bounded memory. A line that is too long is thrown away as it
 * comes; its beginning and its end are kept, since one of them says which request it answers.
 */

export interface LongLine {
  readonly head: string
  readonly tail: string
  readonly bytes: number
}

const KEPT = 512
const NEWLINE = 10

export interface LineSplitter {
  readonly push: (chunk: Buffer) => void
}

/** Plain synchronous code: it runs over every byte that a server prints. */
export const lineSplitter = (options: {
  readonly maxBytes: number
  readonly onLine: (line: string) => void
  readonly onLong: (line: LongLine) => void
}): LineSplitter => {
  let parts: Array<Buffer> = []
  let bytes = 0
  let head = Buffer.alloc(0)
  let tail = Buffer.alloc(0)

  const take = (part: Buffer) => {
    if (part.length === 0) return
    bytes += part.length
    if (bytes <= options.maxBytes) {
      parts.push(part)
      return
    }
    if (parts.length > 0) {
      const kept = Buffer.concat(parts)
      head = Buffer.from(kept.subarray(0, KEPT))
      tail = Buffer.from(kept.subarray(-KEPT))
      parts = []
    }
    if (head.length < KEPT) head = Buffer.concat([head, part.subarray(0, KEPT - head.length)])
    tail = Buffer.from(Buffer.concat([tail, part.subarray(-KEPT)]).subarray(-KEPT))
  }

  const end = () => {
    if (bytes > options.maxBytes) {
      options.onLong({ head: head.toString("utf8"), tail: tail.toString("utf8"), bytes })
    } else if (bytes > 0) {
      options.onLine((parts.length === 1 ? parts[0] ?? head : Buffer.concat(parts)).toString("utf8"))
    }
    parts = []
    bytes = 0
    head = Buffer.alloc(0)
    tail = Buffer.alloc(0)
  }

  return {
    push: (chunk) => {
      let from = 0
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        take(chunk.subarray(from, at))
        end()
        from = at + 1
      }
      take(chunk.subarray(from))
    }
  }
}

/**
 * The id of the request that a too long answer is for, where it can be told for sure: as the first or the last member of the
 * message, which is where every implementation puts it.
 */
export const answeredRequest = ({ head, tail }: Pick<LongLine, "head" | "tail">): number | null => {
  const found = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/.exec(head) ??
    /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail)
  return found?.[1] === undefined ? null : Number(found[1])
}
