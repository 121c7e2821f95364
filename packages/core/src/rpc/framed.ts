/**
 * A transport over a medium of the operating system or the runtime: what a unix socket, a WebSocket and a worker's port
 * share, and memory too. Frames that leave are bounded in bytes, frames that arrive in size; a peer that breaks a bound is told and given
 * up, and nobody else notices.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { ServiceError } from "../service/index.ts"
import { tooLong } from "./framing.ts"
import { Inbox } from "./inbox.ts"
import type { Flow } from "./inbox.ts"
import { Outgoing } from "./outgoing.ts"
import type { Medium } from "./outgoing.ts"
import { partsLimit } from "./parts.ts"
import type { Transport } from "./transport.ts"

export interface FrameOptions {
  /** Longest frame in bytes, in both directions; 16 MiB if left out. */
  readonly frameLimit?: number
  /**
   * Characters that may wait for a peer that does not read, before it is given up; 32 Mi if left out. A message in parts may
   * wait beside.
   */
  readonly backlogLimit?: number
}

export const defaultFrameLimit = 16 * 1_048_576
const defaultBacklogLimit = 32 * 1_048_576

/** The medium's side: it says what happens. */
export interface Framed {
  readonly transport: Transport
  readonly received: (frames: ReadonlyArray<string>) => void
  /** The peer sent a frame that is longer than the limit. */
  readonly oversized: () => void
  /** The peer sent what is no text. */
  readonly binary: () => void
  readonly drained: () => void
  /** Nothing more comes and nothing more goes. */
  readonly gone: () => void
}

export const makeFramed = (medium: Medium, flow: Flow | null, options: FrameOptions): Framed => {
  const frameLimit = options.frameLimit ?? defaultFrameLimit
  const closed = Deferred.makeUnsafe<void>()
  const inbox = new Inbox(flow)
  const outgoing = new Outgoing(medium, options.backlogLimit ?? defaultBacklogLimit, partsLimit(frameLimit))
  let fault: string | null = null
  let running = false

  const over = () => {
    Deferred.doneUnsafe(closed, Effect.void)
  }
  const dismiss = (reason: ServiceError) => {
    inbox.stop()
    // Held up, the medium would not notice that the peer has closed.
    flow?.resume()
    outgoing.leave(reason)
    over()
  }
  const post = (frame: string): boolean => {
    const result = outgoing.push(frame)
    if (result !== "full") return result === "taken"
    fault = "A peer does not read what it is sent; the connection is closed."
    dismiss(
      new ServiceError({ code: "overloaded", message: "This peer does not read what it is sent; it is given up." })
    )
    return false
  }
  return {
    received: (frames) => {
      inbox.push(frames)
      // What these were answered with at once does not wait for the end of the turn.
      if (medium.answersAtOnce !== true) outgoing.flushNow()
    },
    oversized: () => {
      fault = `A peer sent a frame of more than ${frameLimit} bytes; the connection is closed.`
      dismiss(new ServiceError({ code: "overloaded", message: `A frame may have ${frameLimit} bytes at most.` }))
    },
    binary: () => {
      fault = "A peer sent a binary frame; the connection is closed."
      dismiss(new ServiceError({ code: "invalid_arguments", message: "Frames are text; a binary one was sent." }))
    },
    drained: () => outgoing.drained(),
    gone: () => {
      outgoing.closed()
      inbox.end()
      // What arrived before the end is still handled; it may say why this is the end.
      if (!running) over()
    },
    transport: {
      frameLimit,
      post,
      send: (frame) => Effect.sync(() => post(frame)),
      run: (onFrame) =>
        Effect.suspend(() => {
          running = true
          return inbox.run(onFrame)
        }).pipe(
          Effect.andThen(Effect.suspend(() => fault === null ? Effect.void : Effect.logWarning(fault))),
          Effect.ensuring(Effect.sync(over))
        ),
      close: Effect.sync(() => {
        inbox.stop()
        flow?.resume()
        outgoing.leave(null)
        over()
      }),
      dismiss: (reason) => Effect.sync(() => dismiss(reason)),
      closed: Deferred.await(closed)
    }
  }
}

/** Two connected ends in this process. What goes through is text, as on a socket, so the boundary is the same. */
export const makeMemoryPair = (options: FrameOptions = {}): readonly [client: Transport, server: Transport] => {
  const limit = options.frameLimit ?? defaultFrameLimit
  const ends: Array<Framed> = []
  const held = [false, false]
  const shut = () => {
    for (const end of ends) end.gone()
  }
  const makeEnd = (own: 0 | 1, other: 0 | 1): Framed =>
    makeFramed(
      {
        write: (frames) => {
          if (frames.some((frame) => tooLong(frame, limit))) ends[other]?.oversized()
          else ends[other]?.received(frames)
          return !held[other]
        },
        end: shut,
        destroy: shut,
        answersAtOnce: true
      },
      {
        pause: () => {
          held[own] = true
        },
        resume: () => {
          held[own] = false
          ends[other]?.drained()
        }
      },
      options
    )
  const [client, server] = [makeEnd(0, 1), makeEnd(1, 0)]
  ends.push(client, server)
  return [client.transport, server.transport]
}
