/**
 * Open calls of the tools that clients here offer, by the ids under which they are answered: whoever knows one is who it was
 * told to.
 */
import type { ServiceError } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import type { OfferAnswer } from "./parts.ts"

export interface OpenCall {
  /** The session that the tool is offered to. */
  readonly sessionID: string
  readonly answer: (answer: OfferAnswer) => Effect.Effect<boolean, ServiceError>
}

export interface ToolCalls {
  readonly open: (id: string, call: OpenCall) => void
  /** Nobody waits for it any more. */
  readonly close: (id: string) => void
  /** `"closed"` for a while after its end, then it is as if it had never been. */
  readonly find: (id: string) => OpenCall | "closed" | null
}

/** Closed calls that are remembered, of all sessions together. */
const remembered = 1_000

export const makeToolCalls = (): ToolCalls => {
  const calls = new Map<string, OpenCall>()
  const closed = new Set<string>()
  return {
    open: (id, call) => {
      calls.set(id, call)
    },
    close: (id) => {
      if (!calls.delete(id)) return
      closed.add(id)
      for (const oldest of closed) {
        if (closed.size <= remembered) break
        closed.delete(oldest)
      }
    },
    find: (id) => calls.get(id) ?? (closed.has(id) ? "closed" : null)
  }
}
