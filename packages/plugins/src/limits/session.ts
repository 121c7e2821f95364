/**
 * Ends a turn that takes too many requests, or a session that costs too much.
 *
 * Limits come from the manifest's options (`--max-steps`, `--max-cost`) and from `limits` in the settings; the lower one holds.
 * They are looked at before each request, so the answer that crosses a limit is still whole, and no call is left without a
 * result. What a session has cost is kept in its own document, so that it survives a restart; models without a price cost nothing.
 *
 * Sub-agents are paid from the same purse: a session, its sub-agents and theirs are one sum, and each of them ends when that
 * is spent. Answers that are under way at the same time can each go over it once.
 */
import type { SessionContext } from "@bezel/core/host"
import type { SessionPage, SessionRecord } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { LimitsSetting } from "../settings/contract.ts"
import { LimitsOptions } from "./contract.ts"

type Context = Pick<SessionContext, "options" | "settings" | "namespace" | "hooks"> & {
  readonly session: Pick<SessionContext["session"], "get" | "list">
}

const lower = (left: number | undefined, right: number | undefined): number =>
  Math.min(left ?? Infinity, right ?? Infinity)

const numberOf = (value: unknown): number => typeof value === "number" && Number.isFinite(value) ? value : 0

/** Enough digits for the price of one answer, without a tail of zeros. */
const dollars = (amount: number): string => `$${Number(amount.toPrecision(3))}`

/** A chain of sub-agents longer than this is one that does not end. */
const maxAncestors = 64

/** The session that all this is done for, as far as it is known. */
const rootOf = Effect.fnUntraced(function*({ session }: Context, sessionID: string) {
  let record = yield* session.get(sessionID)
  for (let depth = 0; depth < maxAncestors && record.parentID !== null; depth++) {
    const parent = yield* Effect.option(session.get(record.parentID))
    if (Option.isNone(parent)) break
    record = parent.value
  }
  return record
})

/** Sub-agents of a session, theirs included. */
const descendantsOf = Effect.fnUntraced(function*({ session }: Context, root: string) {
  const found = new Map<string, SessionRecord>()
  const pending = [root]
  for (let parentID = pending.pop(); parentID !== undefined; parentID = pending.pop()) {
    let cursor: string | null = null
    do {
      const page: SessionPage = yield* session.list({ parentID, limit: 1_000, ...(cursor === null ? {} : { cursor }) })
      for (const record of page.sessions) {
        if (found.has(record.id) || record.id === root) continue
        found.set(record.id, record)
        pending.push(record.id)
      }
      cursor = page.cursor
    } while (cursor !== null)
  }
  return [...found.values()]
})

/** The facet for session hosts. */
export const session = Effect.fn("limits/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(LimitsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const settings = ctx.settings.get(LimitsSetting)
  const maxSteps = lower(options.maxSteps, settings.maxSteps)
  const maxCostUSD = lower(options.maxCostUSD, settings.maxCostUSD)
  const namespace = yield* ctx.namespace("limits", { session: { costUSD: 0 } })
  // A record learns what its session has cost when the work rests; a sub-agent that is at work is counted from here.
  const working = new Map<string, number>()

  const spentOn = Effect.fnUntraced(function*(sessionID: string, own: number) {
    const root = yield* rootOf(ctx, sessionID)
    const records = [root, ...yield* descendantsOf(ctx, root.id)]
    const known = ({ cost, id }: SessionRecord) => Math.max(cost, working.get(id) ?? 0, id === sessionID ? own : 0)
    return { spent: records.reduce((sum, record) => sum + known(record), 0), isShared: records.length > 1 }
  })

  yield* ctx.hooks(namespace, "generation", {
    beforeRequest: Effect.fnUntraced(function*(_request, api) {
      if (api.step > maxSteps) {
        return {
          end: `The turn ended because it may take ${maxSteps} ${
            maxSteps === 1 ? "request to the model and has taken it" : "requests to the model and has taken them"
          }. Send a message to go on, or raise the limit of steps.`
        }
      }
      if (maxCostUSD === Infinity) return undefined
      const own = numberOf((yield* namespace.get(api.conversationID)).costUSD)
      // Where the records cannot be read, the session's own sum still holds.
      const { isShared, spent } = yield* Effect.orElseSucceed(
        spentOn(api.sessionID, own),
        () => ({ spent: own, isShared: false })
      )
      if (spent < maxCostUSD) return undefined
      return {
        end: `The turn ended because this session has cost ${dollars(spent)}${
          isShared ? ", all its sub-agents counted," : ""
        } and may cost ${dollars(maxCostUSD)}. Raise the limit of cost to go on.`
      }
    }),
    afterResponse: Effect.fnUntraced(function*(_message, api) {
      if (numberOf(api.cost) <= 0) return
      yield* namespace.update(api.conversationID, (draft) => {
        draft.costUSD = numberOf(draft.costUSD) + api.cost
        working.set(api.sessionID, draft.costUSD)
      })
    })
  })
})
