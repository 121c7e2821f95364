/** The terminal facet of hooks: a person is told of a command of theirs that failed. */
import { Conversation } from "@bezel/core/host/contract"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { HookWarning } from "./contract.ts"

const Happened = Schema.Struct({ type: Schema.Literal("plugin.hooks.warning"), data: HookWarning })

/** The terminal facet. */
export const tui = Effect.fn("hooks/tui")(
  function*(ctx: Pick<TuiContext, "observe"> & { readonly ui: Pick<TuiContext["ui"], "notify"> }) {
    yield* ctx.observe(Conversation, (instance) =>
      instance.happened.forEach((event) => {
        const warning = Schema.decodeUnknownOption(Happened)(event)
        return Option.isSome(warning) ? ctx.ui.notify(warning.value.data.message, "warning") : Effect.void
      }))
  }
)
