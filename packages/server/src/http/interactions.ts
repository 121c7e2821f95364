/**
 * What sessions ask people, as clients over HTTP see it: what is open, and how what was settled ended.
 *
 * The session's host decides everything: which answer is valid, which was the first. Here is only kept what it offered, and
 * for a while how it ended, so that a late answer is told. Neither request nor answer is logged.
 */
import type { RequestPort } from "@bezel/core/rpc"
import type { CloseReason, Offer } from "@bezel/core/service"

/** How an interaction ended. */
export type Outcome = CloseReason

/** Settled interactions whose end is remembered, of all sessions together. */
const remembered = 1_000

export interface Settled {
  readonly outcomeOf: (id: string) => Outcome | null
  readonly settle: (id: string, outcome: Outcome) => void
}

/** One for the server, because it outlives what it remembers. */
export const makeSettled = (): Settled => {
  const outcomes = new Map<string, Outcome>()
  return {
    outcomeOf: (id) => outcomes.get(id) ?? null,
    settle: (id, outcome) => {
      if (outcomes.has(id)) return
      outcomes.set(id, outcome)
      for (const [oldest] of outcomes) {
        if (outcomes.size <= remembered) break
        outcomes.delete(oldest)
      }
    }
  }
}

export type InteractionChange =
  | { readonly type: "interaction.opened"; readonly offer: Offer }
  | { readonly type: "interaction.closed"; readonly id: string; readonly outcome: Outcome }

export interface OpenRequests {
  readonly port: RequestPort
  readonly list: () => ReadonlyArray<Offer>
  readonly has: (id: string) => boolean
}

/** Those of one session. `changed` is told of each, once. */
export const makeOpenRequests = (settled: Settled, changed: (change: InteractionChange) => void): OpenRequests => {
  const open = new Map<string, Offer>()
  return {
    port: {
      offered: (offer) => {
        if (open.has(offer.id) || settled.outcomeOf(offer.id) !== null) return
        open.set(offer.id, offer)
        changed({ type: "interaction.opened", offer })
      },
      closed: (id, outcome) => {
        settled.settle(id, outcome)
        if (open.delete(id)) changed({ type: "interaction.closed", id, outcome })
      },
      // What the host still has open is offered again; what it settled meanwhile is not known here.
      lost: () => {
        for (const id of open.keys()) changed({ type: "interaction.closed", id, outcome: "withdrawn" })
        open.clear()
      }
    },
    list: () => [...open.values()],
    has: (id) => open.has(id)
  }
}
