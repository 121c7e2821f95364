/**
 * The wire between a client and its host, for tests: every frame that crossed, and frames that are lost, cut, late or twice.
 *
 * Both wrap the way to a host (`ConnectionOptions.connect`) over whatever transport, and give another one.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Transport } from "../rpc/index.ts"
import type { ServiceError } from "../service/index.ts"

type Connect = Effect.Effect<Transport, ServiceError, Scope.Scope>

/** The text of every frame, in order, over all connections. */
export interface Frames {
  readonly sent: Array<string>
  readonly received: Array<string>
}

export const recordFrames = (connect: Connect): { readonly connect: Connect; readonly frames: Frames } => {
  const frames: Frames = { sent: [], received: [] }
  return {
    frames,
    connect: Effect.map(connect, (transport) => ({
      ...transport,
      post: (frame) => {
        frames.sent.push(frame)
        return transport.post(frame)
      },
      send: (frame) => {
        frames.sent.push(frame)
        return transport.send(frame)
      },
      run: (onFrame) =>
        transport.run((frame) => {
          frames.received.push(frame)
          return onFrame(frame)
        })
    }))
  }
}

export interface WireFault {
  /** `cut` closes the connection in place of the frame. */
  readonly kind: "drop" | "cut" | "delay" | "double"
  readonly direction: "to-host" | "to-client"
  /** Of the frames of the first connection in that direction, the first being 0. */
  readonly frame: number
  /** How long a late frame, and what is behind it, waits: 50 milliseconds if left out. */
  readonly delay?: Duration.Input
}

/** Connections after the first are clean. */
export const faultyWire = (connect: Connect, faults: ReadonlyArray<WireFault>): Connect => {
  let connections = 0
  return Effect.gen(function*() {
    const transport = yield* connect
    if (connections++ > 0) return transport
    const passing = (direction: WireFault["direction"], pass: (frame: string) => Effect.Effect<void>) => {
      let count = 0
      return (frame: string): Effect.Effect<void> => {
        const number = count++
        const fault = faults.find((one) => one.direction === direction && one.frame === number)
        switch (fault?.kind) {
          case undefined:
            return pass(frame)
          case "drop":
            return Effect.void
          case "cut":
            return transport.close
          case "delay":
            return Effect.andThen(Effect.sleep(fault.delay ?? Duration.millis(50)), pass(frame))
          case "double":
            return Effect.andThen(pass(frame), pass(frame))
        }
      }
    }
    // What is sent waits here, since a late frame holds up those behind it.
    const outgoing = yield* Queue.unbounded<string>()
    const toHost = passing("to-host", (frame) => Effect.asVoid(transport.send(frame)))
    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(outgoing), toHost)))
    const post = (frame: string) => Queue.offerUnsafe(outgoing, frame)
    return {
      ...transport,
      post,
      send: (frame) => Effect.sync(() => post(frame)),
      run: (onFrame) =>
        transport.run(passing("to-client", (frame) => Effect.suspend(() => onFrame(frame) ?? Effect.void)))
    }
  })
}
