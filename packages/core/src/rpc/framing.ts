/**
 * Frames on a byte stream: one line of JSON each. JSON text holds no line break of its own, so the length of a frame is
 * where its line ends, and both directions are linear in the bytes, however a stream cuts them.
 *
 * A hot path, so plain TypeScript. Not promised: that a frame is JSON.
 */

/** Splits what a stream brings into frames. */
export class FrameSplitter {
  private readonly limit: number
  private parts: Array<Buffer> = []
  private size = 0

  /** `limit` is the longest frame in bytes. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** The frames that this piece completes, or null once one is longer than the limit. */
  push(piece: Buffer): ReadonlyArray<string> | null {
    // Mostly a piece is what the peer has written at once, so it ends where a frame does.
    const last = piece[piece.length - 1] === 10 ? piece.length - 1 : piece.lastIndexOf(10)
    if (last < 0) {
      this.parts.push(piece)
      this.size += piece.length
      return this.size > this.limit ? null : []
    }
    const text = this.size === 0
      ? piece.toString("utf8", 0, last)
      : Buffer.concat([...this.parts, piece.subarray(0, last)], this.size + last).toString("utf8")
    this.parts = last + 1 === piece.length ? [] : [piece.subarray(last + 1)]
    this.size = piece.length - last - 1
    if (!text.includes("\n")) return this.size > this.limit || tooLong(text, this.limit) ? null : [text]
    const frames = text.split("\n")
    for (const frame of frames) if (tooLong(frame, this.limit)) return null
    return this.size > this.limit ? null : frames
  }
}

/** Whether a frame takes more than `limit` bytes. Counts only where it could matter: a unit is three bytes at most. */
export const tooLong = (frame: string, limit: number): boolean =>
  frame.length > limit || (frame.length * 3 > limit && new TextEncoder().encode(frame).length > limit)
