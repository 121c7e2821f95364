/** A gate: nothing is deployed before a person has said yes, and nobody is asked twice for one call. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { Interaction } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A question to a person. What is not a valid yes is a no, also when nobody is there. */
export const ConfirmDeploy = Interaction.make("example.confirm-deploy")({
  request: Schema.Struct({ target: Schema.String }),
  response: Schema.Boolean,
  unattended: "deny",
  confirm: true
})

const target = (args: unknown): string => {
  const found = Schema.decodeUnknownOption(Schema.Struct({ target: Schema.String }))(args)
  return found._tag === "Some" ? found.value.target : "somewhere"
}

const session = Effect.fn("guard/session")(function*(ctx: SessionContext) {
  const guard = yield* ctx.namespace("guard", {})
  yield* ctx.hooks(guard, "tool", {
    beforeTool: Effect.fn("guard/beforeTool")(function*(call, api) {
      if (call.name !== "deploy" || (yield* api.memo("answer")) === true) return {}
      yield* api.waiting
      const outcome = yield* ctx.interactions.request(
        ConfirmDeploy,
        { target: target(call.args) },
        { sessionID: api.sessionID }
      )
      if (!Interaction.isConfirmed(ConfirmDeploy, outcome)) {
        const code = outcome.type === "answered" ? "declined" : outcome.type
        return { block: "The user has not agreed to this deployment.", code }
      }
      yield* api.memo("answer", true)
      return {}
    })
  }, { gate: true })
})

const tui = Effect.fn("guard/tui")(function*(ctx: TuiContext) {
  yield* ctx.interactions.handle(ConfirmDeploy, ({ target }) => ctx.ui.confirm({ title: `Deploy to ${target}?` }))
})

export default Plugin.define({ id: "example.guard", version: "1.0.0", session, tui })
