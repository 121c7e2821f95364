/**
 * Ends a turn that takes too many requests, or a session that costs too much.
 *
 * Limits come from the manifest's options (`--max-steps`, `--max-cost`) and from `limits` in the settings; the lower one holds.
 * They are looked at before each request, so the answer that crosses a limit is still whole, and no call is left without a
 * result. What a session has cost is kept in its own document, so that it survives a restart; models without a price cost nothing.
 */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { LimitsSetting } from "../settings/contract.ts"
import { LimitsOptions } from "./contract.ts"

type Context = Pick<SessionContext, "options" | "settings" | "namespace" | "hooks">

const lower = (left: number | undefined, right: number | undefined): number =>
  Math.min(left ?? Infinity, right ?? Infinity)

const numberOf = (value: unknown): number => typeof value === "number" && Number.isFinite(value) ? value : 0

/** Enough digits for the price of one answer, without a tail of zeros. */
const dollars = (amount: number): string => `$${Number(amount.toPrecision(3))}`

/** The facet for session hosts. */
export const session = Effect.fn("limits/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(LimitsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const settings = ctx.settings.get(LimitsSetting)
  const maxSteps = lower(options.maxSteps, settings.maxSteps)
  const maxCostUSD = lower(options.maxCostUSD, settings.maxCostUSD)
  const namespace = yield* ctx.namespace("limits", { session: { costUSD: 0 } })
  yield* ctx.hooks(namespace, "generation", {
    beforeRequest: Effect.fnUntraced(function*(_request, api) {
      if (api.step > maxSteps) {
        return {
          end: `The turn ended because it may take ${maxSteps} ${
            maxSteps === 1 ? "request" : "requests"
          } to the model and has taken them. Send a message to go on, or raise the limit of steps.`
        }
      }
      if (maxCostUSD === Infinity) return undefined
      const spent = numberOf((yield* namespace.get(api.conversationID)).costUSD)
      if (spent < maxCostUSD) return undefined
      return {
        end: `The turn ended because this session has cost ${dollars(spent)} and may cost ${
          dollars(maxCostUSD)
        }. Raise the limit of cost to go on.`
      }
    }),
    afterResponse: Effect.fnUntraced(function*(_message, api) {
      if (numberOf(api.cost) <= 0) return
      yield* namespace.update(api.conversationID, (draft) => {
        draft.costUSD = numberOf(draft.costUSD) + api.cost
      })
    })
  })
})
