/** The terminal facet of the web: a fetch shows its address and what came. */
import { outputTail, span, type ToolRenderer, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { WebFetchDetails } from "./contract.ts"

/** How a call shows. */
export const webRenderer: ToolRenderer = {
  title: ({ args, argsText, details }) => {
    const url: unknown = typeof args === "object" && args !== null ? Reflect.get(args, "url") : undefined
    const found = Schema.decodeUnknownOption(WebFetchDetails)(details)
    const what = Option.isSome(found)
      ? `  ${found.value.status} ${found.value.contentType}, ${found.value.bytes} bytes`
      : ""
    return [span(typeof url === "string" ? url : argsText, { color: "link" }), span(what, { color: "muted" })]
  },
  body: (call, options) => {
    const isOver = call.isError || call.status === "aborted"
    return isOver
      ? outputTail(call.output, options, { color: "error" })
      : options.expanded
      ? outputTail(call.output, options)
      : []
  }
}

/** The terminal facet. */
export const tui = Effect.fn("web/tui")(function*(ctx: TuiContext) {
  yield* ctx.toolRenderers.register("web_fetch", webRenderer)
})
