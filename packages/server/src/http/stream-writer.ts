/**
 * Writing to a client that may read slowly, or not at all: what waits for it is bounded, and who writes waits with it.
 *
 * A client that takes nothing for a while is given up. The time counts in several looks, so that a server which is held up
 * itself does not take that for its clients' fault: between two looks whatever has arrived meanwhile is noticed.
 */
import * as Effect from "effect/Effect"
import type { ServerResponse } from "node:http"
import type { Write } from "./handler.ts"

export interface WriterOptions {
  /** Bytes that may wait before the next piece waits too. */
  readonly waitingBytes: number
  /** How long nothing of what waits has to be taken before the client is given up. */
  readonly stalledMillis: number
  readonly dropped: () => void
}

/** Characters, and bytes, that are handed on at once: room is noticed for each. */
const pieceLength = 65_536

const looks = 4

export const streamWriter = (response: ServerResponse, options: WriterOptions): Write => {
  /** Never completes for a client that is gone: whoever writes to it is interrupted. */
  const room = Effect.callback<void>((resume) => {
    if (response.destroyed) return
    let silent = 0
    const looking = setInterval(() => {
      if (++silent < looks) return
      leave()
      options.dropped()
      response.destroy()
    }, options.stalledMillis / looks)
    const leave = () => {
      clearInterval(looking)
      response.off("drain", drained)
      response.off("close", leave)
    }
    const drained = () => {
      leave()
      resume(Effect.void)
    }
    response.once("drain", drained)
    response.once("close", leave)
    return Effect.sync(leave)
  })

  const one = (piece: string | Uint8Array): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (response.destroyed) return Effect.never
      const isTaken = response.write(piece)
      return isTaken || response.writableLength < options.waitingBytes ? Effect.void : room
    })

  return (text) => {
    if (text.length <= pieceLength) return one(text)
    const bytes = Buffer.from(text)
    const pieces = Array.from(
      { length: Math.ceil(bytes.length / pieceLength) },
      (_, index) => bytes.subarray(index * pieceLength, (index + 1) * pieceLength)
    )
    return Effect.forEach(pieces, one, { discard: true })
  }
}
