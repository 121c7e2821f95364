/**
 * The terminal facet of connecting: a line above the editor as long as nobody has chosen a model, and `ctrl+p`, which goes
 * from what was found to a model that answers.
 *
 * Where a key is set or a server runs on this machine these are three keys: ctrl+p, enter for the place, enter for the model.
 */
import { Conversation } from "@bezel/core/host/contract"
import type { Facade } from "@bezel/core/service"
import { type Block, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { chatSlots } from "../chat/contract.ts"
import { type Candidate, Connect, type Guidance, ProviderKeyRequest } from "./contract.ts"

/** Columns below which the line says only which key to press, and below which it says what for in a word. */
const [narrow, narrowest] = [74, 36]
const key = "ctrl+p"

/** What stands above the editor; the key comes first, so that it is there in narrow terminals too. */
export const guidanceBlocks = (guidance: Guidance, columns: number): ReadonlyArray<Block> => {
  const [source] = guidance.keys
  const words = columns < narrowest
    ? "for a model"
    : source !== undefined
    ? `connects a real model: ${source} is set`
    : columns < narrow
    ? "connects a real model"
    : "connects a real model; bezel/offline only follows simple commands"
  return [
    text([span(key, { color: "accent" }), span(` ${words}`, { color: "muted" })], {
      wrap: "clip"
    })
  ]
}

const title = "Connect a model"
/** Models that are found by looking. */
const shortList = 9

/** The terminal facet. */
export const tui = Effect.fn("connect/tui")(function*(ctx: TuiContext) {
  const opened = yield* Effect.cached(ctx.use(Connect))
  let current: Facade<Conversation> | null = null
  let guidance: Guidance | null = null

  // ------------------------------------------------------------------------------------------------------- the line

  /** Whether the model that needs nothing answers because nothing names one; asked again where that may have changed. */
  let isOffline = false
  let asked = ""
  const look = (instance: Facade<Conversation>) =>
    Effect.ignore(Effect.map(instance.nextModel(), ({ model, provider }) => {
      isOffline = provider === "bezel" && model === "offline"
      ctx.ui.redraw()
    }))

  yield* ctx.observe(Conversation, (instance) =>
    Effect.gen(function*() {
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (current === instance) current = null
        })
      )
      yield* instance.view.forEach(({ config, conversation }) =>
        Effect.suspend(() => {
          // Forks and sub-agents are conversations of the session too.
          if (conversation.parent !== null || conversation.owner !== null) return Effect.void
          current = instance
          const now = JSON.stringify([conversation.sessionID, config.agent, config.model])
          if (asked === now) return Effect.void
          asked = now
          return look(instance)
        })
      )
    }))
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
    Effect.ignore(Effect.flatMap(opened, (connect) =>
      connect.guidance.forEach((now) =>
        Effect.suspend(() => {
          guidance = now
          ctx.ui.redraw()
          return current === null ? Effect.void : look(current)
        })
      )))
  )))

  const isNeeded = (): boolean => isOffline && current?.view.value?.config.model === null
  yield* ctx.slots.add(chatSlots.aboveEditor, {
    order: 60,
    render: () => guidance?.needed === true && isNeeded() ? guidanceBlocks(guidance, ctx.ui.size().columns) : []
  })

  // ------------------------------------------------------------------------------------------------------- the way

  /** This terminal's person waits for the question after a key. */
  let isAsking = false
  yield* ctx.interactions.handle(ProviderKeyRequest, ({ name, problem }) =>
    Effect.map(
      ctx.ui.input({
        title: `Key of ${name}`,
        body: [
          ...(problem === null ? [] : [text(span(problem, { color: "error" }))]),
          text(span("Paste it here. It is checked, and kept for you alone among the keys of bezel auth.", {
            color: "muted"
          }))
        ],
        secret: true,
        expected: isAsking
      }),
      (pasted) => pasted === null || pasted.trim() === "" ? "declined" as const : { key: Redacted.make(pasted) }
    ))

  /** Asks for a key only where the provider does. */
  const modelsOf = (connect: Facade<Connect>, { provider, ready }: Candidate, sessionID: string) => {
    const asked = Effect.acquireUseRelease(
      Effect.sync(() => {
        isAsking = true
      }),
      () => connect.askForKey({ provider, sessionID }),
      () =>
        Effect.sync(() => {
          isAsking = false
        })
    )
    const ask = Effect.flatMap(asked, (given) => given ? connect.models({ provider }) : Effect.succeed([]))
    return ready
      ? Effect.catchTag(
        connect.models({ provider }),
        "ConnectError",
        (error) => error.needsKey === true ? ask : Effect.fail(error)
      )
      : ask
  }

  const chooseModel = (connect: Facade<Connect>, candidate: Candidate, sessionID: string) =>
    Effect.gen(function*() {
      const { name } = candidate
      const models = yield* modelsOf(connect, candidate, sessionID)
      const [only] = models
      if (models.length < 2) return only?.model ?? null
      return yield* ctx.ui.select({
        title: `Model of ${name}`,
        search: models.length > shortList,
        options: models.map((model) => ({
          value: model.model,
          label: model.model,
          ...(model.name === model.model ? {} : { description: model.name })
        }))
      })
    })

  const connectTo = (connect: Facade<Connect>, candidate: Candidate) =>
    Effect.gen(function*() {
      const { provider } = candidate
      const session = yield* ctx.session.current
      const conversation = current
      if (session === null || conversation === null) {
        return yield* ctx.ui.notify("There is no conversation yet.", "warning")
      }
      const model = yield* chooseModel(connect, candidate, session.sessionID)
      if (model === null) return
      const kept = yield* Effect.result(connect.keep({ provider, model }))
      yield* conversation.configSet({ model: { provider, model } })
      if (Result.isFailure(kept)) return yield* ctx.ui.notify(kept.failure.message, "warning")
      yield* ctx.ui.notify(
        `${provider}/${model} answers from now on${kept.success === null ? "." : `; kept in ${kept.success}.`}`
      )
    })

  yield* ctx.commands.register("models.connect", {
    slash: "connect",
    description: "Connect a model: by a key that is set, a server of this machine, or a key that you paste",
    run: () =>
      Effect.gen(function*() {
        const connect = yield* opened
        const candidates = yield* connect.find()
        const candidate = yield* ctx.ui.select({
          title,
          options: candidates.map((value) => ({ value, label: value.name, description: value.found }))
        })
        if (candidate !== null) yield* connectTo(connect, candidate)
      }).pipe(Effect.catch((error) => ctx.ui.notify(error.message, "error")))
  })
  yield* ctx.keybindings.bind(key, { command: "models.connect" })
})
