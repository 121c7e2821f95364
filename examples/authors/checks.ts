/** What an author's tests look like: a host in memory with a scripted model, and everything between them real. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { call, scriptedModel, testPresentation, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import counter from "./counter.ts"
import guard, { ConfirmDeploy } from "./guard.ts"

/** A tool that counts how often it has run. */
export const deployment = () => {
  const targets: Array<string> = []
  const deploy = tool({
    description: "Deploys.",
    input: Schema.Struct({ target: Schema.String }),
    execute: ({ target }) => Effect.sync(() => void targets.push(target))
  })
  const plugin = Plugin.define({
    id: "test.deploy",
    session: (ctx) => Effect.asVoid(ctx.tool.transform((draft) => draft.set("deploy", deploy)))
  })
  return { plugin, targets }
}

/** Runs one deployment with a person who answers like this; gives where it went and what the model was told. */
export const deployWith = (yes: boolean) =>
  Effect.gen(function*() {
    const { plugin, targets } = deployment()
    const model = scriptedModel([[call("deploy", { target: "production" })], "Done."])
    const host = yield* testSessionHost([plugin, guard, counter], { model })
    const { id } = yield* host.session.create()
    yield* testPresentation(host, {
      "test.person": (ctx) => ctx.interactions.handle(ConfirmDeploy, () => Effect.succeed(yes))
    }, id)
    const answer = yield* host.ask(id, "deploy it")
    return { answer, targets, told: JSON.stringify(model.requests[1]?.messages.at(-1)) }
  })

/** What a client of the session sees of the counter, once a call has been made. */
export const countOf = Effect.gen(function*() {
  const { plugin } = deployment()
  const host = yield* testSessionHost([plugin, counter], {
    model: scriptedModel([[call("deploy", { target: "staging" })], "Done."])
  })
  const { id } = yield* host.session.create()
  yield* host.ask(id, "deploy it")
  const connection = yield* host.connect(id)
  const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
  yield* conversation.ready
  return yield* conversation.view.changes.pipe(
    Stream.map(({ plugins }) => plugins.counter),
    Stream.filter((count) => count !== undefined),
    Stream.runHead
  )
})
