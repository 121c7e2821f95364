/**
 * Worker threads: one posted message is one frame. Both ends are of one process and trust each other's memory, so what is
 * on its way is not bounded here; the limits of calls and subscriptions hold as everywhere.
 */
import { makeFramed } from "./framed.ts"
import type { FrameOptions } from "./framed.ts"
import type { Transport } from "./transport.ts"

/** A `Worker`, its `parentPort`, or one end of a `MessageChannel`, of Node. */
export interface Port {
  postMessage(message: string): void
  on(event: "message", listener: (message: unknown) => void): unknown
  on(event: "close" | "exit" | "messageerror", listener: () => void): unknown
  /** Ends of a channel have it; a `Worker` ends with its `terminate`. */
  close?(): void
}

/** Told by one end to the other, because a `Worker` has no end of its own to close. */
const over = "\n"

export const portTransport = (port: Port, options: FrameOptions = {}): Transport => {
  const framed = makeFramed(
    {
      write: (frames) => {
        port.postMessage(frames.join("\n"))
        return true
      },
      end: () => {
        port.postMessage(over)
        framed.gone()
      },
      destroy: () => framed.gone()
    },
    null,
    options
  )
  port.on("message", (message) => {
    if (message === over) framed.gone()
    else if (typeof message === "string") framed.received(message.split("\n"))
    else framed.oversized()
  })
  for (const event of ["close", "exit", "messageerror"] as const) port.on(event, () => framed.gone())
  return framed.transport
}
