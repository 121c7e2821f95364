/** The text of event streams: frames as the HTML standard says, and who reads how far. */
import * as Effect from "effect/Effect"
import type { Write } from "./handler.ts"

/** One event. What is sent is one line of JSON, so a frame has one `data` line. */
export const frame = (event: string, data: unknown, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${event.replaceAll(/[\r\n]/g, " ")}\ndata: ${
    JSON.stringify(data)
  }\n\n`

/** Says that the stream is alive, so that clients and what stands between notice when it is not. */
export const comment = ": \n\n"

export const heartbeat = "15 seconds"

/** Writes many frames in pieces of a bounded size. */
export const writeAll = (write: Write, frames: Iterable<string>, pieceLength = 65_536): Effect.Effect<void> =>
  Effect.gen(function*() {
    let piece = ""
    for (const text of frames) {
      piece += text
      if (piece.length < pieceLength) continue
      yield* write(piece)
      piece = ""
    }
    if (piece !== "") yield* write(piece)
  })

/** Where a client wants to go on: the header, or the parameter for those that cannot set it. */
export const placeOf = (
  header: (name: string) => string | undefined,
  after: string | undefined
): string | null => header("last-event-id") ?? after ?? null
