/** The terminal facet of providers: `/model` chooses the model of the conversation that the terminal shows, and how much it thinks. */
import { type Conversation, Registries } from "@bezel/core/host/contract"
import { formatModelRef, type ListedModel, parseModelRef, type ThinkingLevel } from "@bezel/core/model"
import type { Facade } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { currentConversation } from "../chat/current.ts"
import { Models } from "./contract.ts"

const levels: ReadonlyArray<ThinkingLevel> = ["off", "low", "medium", "high"]

const tokens = (count: number): string => count < 1_000_000 ? `${Math.round(count / 1000)}k` : `${count / 1_000_000}M`

const describe = ({ availability, info }: ListedModel): string =>
  availability.ready
    ? [
      info.name,
      ...(info.contextWindow === null ? [] : [`${tokens(info.contextWindow)} tokens`]),
      ...(info.reasoning ? ["thinks"] : []),
      ...(info.images ? ["sees images"] : [])
    ].join(" · ")
    : availability.reason

/** The terminal facet. */
export const tui = Effect.fn("providers/tui")(function*(ctx: TuiContext) {
  const current = yield* currentConversation(ctx)
  const opened = yield* Effect.cached(ctx.use(Models))
  const registries = yield* Effect.cached(ctx.use(Registries))
  const withConversation = <E>(
    use: (conversation: Facade<Conversation>) => Effect.Effect<void, E>
  ): Effect.Effect<void, E> =>
    Effect.suspend(() => {
      const conversation = current()
      return conversation === null ? ctx.ui.notify("There is no conversation yet.", "warning") : use(conversation)
    })

  yield* ctx.commands.register("models.choose", {
    slash: "model",
    argument: "[PROVIDER/MODEL]",
    description: "Use another model from the next request on",
    run: (wish) =>
      withConversation((conversation) =>
        Effect.gen(function*() {
          const all = wish.trim() === "" ? yield* Effect.flatMap(registries, (known) => known.models()) : []
          const name = wish.trim() !== "" ? wish.trim() : yield* ctx.ui.select({
            title: "Model",
            search: true,
            options: all.map((model) => ({
              value: formatModelRef(model.info),
              label: formatModelRef(model.info),
              description: describe(model)
            }))
          })
          if (name === null) return
          const ref = parseModelRef(name)
          if ("error" in ref) return yield* ctx.ui.notify(ref.error, "error")
          const missing = yield* Effect.flatMap(registries, (known) => known.missingModel(ref))
          if (missing !== null) return yield* ctx.ui.notify(missing.endsWith("?") ? missing : `${missing}.`, "error")
          yield* conversation.configSet({ model: ref })
        })
      )
  })
  yield* ctx.commands.register("models.refresh", {
    slash: "models",
    description: "Ask the providers which models they have",
    run: () =>
      Effect.gen(function*() {
        const { found, warnings } = yield* Effect.flatMap(opened, (models) => models.refresh())
        yield* ctx.ui.notify(
          [`The providers have ${found} ${found === 1 ? "model" : "models"}.`, ...warnings].join(" "),
          warnings.length === 0 ? "info" : "warning"
        )
      })
  })

  const think = (level: ThinkingLevel) =>
    withConversation((conversation) =>
      Effect.andThen(conversation.configSet({ thinking: level }), ctx.ui.notify(`Thinking: ${level}`))
    )
  yield* ctx.commands.register("thinking.set", {
    slash: "thinking",
    argument: "[off|low|medium|high]",
    description: "How much the model thinks before it answers",
    run: (wish) =>
      Effect.gen(function*() {
        const named = levels.find((level) => level === wish.trim())
        if (wish.trim() !== "" && named === undefined) {
          return yield* ctx.ui.notify(`There is no level ${wish.trim()}; there are ${levels.join(", ")}.`, "error")
        }
        const level = named ?? (yield* ctx.ui.select({
          title: "Thinking",
          options: levels.map((value) => ({ value, label: value }))
        }))
        if (level !== null) yield* think(level)
      })
  })
  yield* ctx.commands.register("thinking.cycle", {
    description: "The next level of thinking",
    run: () =>
      withConversation((conversation) => {
        const now = levels.indexOf(conversation.view.value?.config.thinking ?? "off")
        return think(levels[(now + 1) % levels.length] ?? "off")
      })
  })
  yield* ctx.keybindings.bind("ctrl+t", { command: "thinking.cycle" })
})
