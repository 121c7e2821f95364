/**
 * The terminal facet of commands: each is a slash command beside the built-in ones, which keep their names.
 */
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { currentConversation } from "../chat/current.ts"
import { PromptCommandList } from "./contract.ts"

/** The terminal facet. */
export const tui = Effect.fn("commands/tui")(function*(ctx: TuiContext) {
  const current = yield* currentConversation(ctx)
  const opened = yield* Effect.cached(ctx.use(PromptCommandList))

  const run = (name: string) => (args: string) =>
    Effect.gen(function*() {
      const conversation = current()?.view.value?.conversation
      if (conversation === undefined) return yield* ctx.ui.notify("There is no conversation yet.", "warning")
      const service = yield* opened
      yield* service.run({
        sessionID: conversation.sessionID,
        name,
        arguments: args,
        whenBusy: "steer",
        requestID: globalThis.crypto.randomUUID()
      })
    })

  const register = Effect.gen(function*() {
    const { commands, problems } = yield* Effect.flatMap(opened, (service) => service.list())
    const taken = new Set((yield* ctx.commands.list).map(({ value }) => value.slash))
    for (const { argument, description, file, name } of commands) {
      if (taken.has(name)) {
        yield* ctx.ui.notify(`The command ${file} cannot be used: /${name} is built in.`, "warning")
        continue
      }
      yield* ctx.commands.register(`prompt.${name}`, {
        slash: name,
        ...(argument === null ? {} : { argument }),
        description,
        run: run(name)
      })
    }
    for (const problem of problems) yield* ctx.ui.notify(problem, "warning")
  })
  // They come from the session host, which may not be there yet.
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(Effect.ignore(register))))
})
