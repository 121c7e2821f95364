/** Durable state of a session: how many calls of tools it has made, in the view of every client. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"

const session = Effect.fn("counter/session")(function*(ctx: SessionContext) {
  const counter = yield* ctx.namespace("counter", { session: { calls: 0 } }, { view: ({ calls }) => calls ?? 0 })
  yield* ctx.hooks(counter, "tool", {
    afterTool: (_call, _result, api) =>
      counter.update(api.conversationID, (draft) => {
        draft.calls = Number(draft.calls) + 1
      })
  })
})

export default Plugin.define({ id: "example.counter", version: "1.0.0", session })
