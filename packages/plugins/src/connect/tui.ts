/**
 * The terminal facet of connecting: a line above the editor as long as nobody has chosen a model, and `ctrl+p`, which goes
 * from what was found to a model that answers.
 *
 * Where a key is set or a server runs on this machine these are three keys: ctrl+p, enter for the place, enter for the model.
 */
import type { Facade } from "@bezel/core/service"
import { type Block, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { chatSlots } from "../chat/contract.ts"
import { currentConversation } from "../chat/current.ts"
import { type Candidate, Connect, type Guidance, ProviderKeyRequest } from "./contract.ts"

/** Columns below which the line says only which key to press. */
const narrow = 60
const key = "ctrl+p"

/** What stands above the editor; the key comes first, so that it is there in narrow terminals too. */
export const guidanceBlocks = (guidance: Guidance, columns: number): ReadonlyArray<Block> => {
  const [source] = guidance.keys
  const short = source === undefined ? "connects a model" : `uses ${source}`
  const long = source === undefined
    ? "connects a real model; bezel/offline only follows simple commands"
    : `connects a real model (${source} is set); bezel/offline only follows simple commands`
  return [
    text([span(key, { color: "accent" }), span(` ${columns < narrow ? short : long}`, { color: "muted" })], {
      wrap: "clip"
    })
  ]
}

const title = "Connect a model"

/** The terminal facet. */
export const tui = Effect.fn("connect/tui")(function*(ctx: TuiContext) {
  const current = yield* currentConversation(ctx)
  const opened = yield* Effect.cached(ctx.use(Connect))
  let guidance: Guidance | null = null
  let isOffline = false

  // ------------------------------------------------------------------------------------------------------- the line

  /** Which model answers when the conversation names none. */
  const look = Effect.suspend(() => {
    const conversation = current()
    return conversation === null ? Effect.void : Effect.map(conversation.nextModel(), ({ model, provider }) => {
      isOffline = provider === "bezel" && model === "offline"
      ctx.ui.redraw()
    })
  }).pipe(Effect.ignore)

  const isNeeded = (): boolean => {
    const config = current()?.view.value?.config
    return guidance?.needed === true && isOffline && config !== undefined && config.model === null
  }
  yield* ctx.slots.add(chatSlots.aboveEditor, {
    order: 60,
    render: () => guidance !== null && isNeeded() ? guidanceBlocks(guidance, ctx.ui.size().columns) : []
  })
  yield* ctx.observe(Connect, (instance) =>
    instance.guidance.forEach((now) =>
      Effect.suspend(() => {
        guidance = now
        return look
      })
    ))
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(Stream.runForEach(ctx.session.changes, () => look))))

  // ------------------------------------------------------------------------------------------------------- the way

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
        secret: true
      }),
      (pasted) => pasted === null || pasted.trim() === "" ? "declined" as const : { key: Redacted.make(pasted) }
    ))

  const chooseModel = (connect: Facade<Connect>, { name, provider }: Candidate) =>
    Effect.gen(function*() {
      const models = yield* connect.models({ provider })
      const [only] = models
      if (models.length < 2) return only?.model ?? null
      return yield* ctx.ui.select({
        title: `Model of ${name}`,
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
      const conversation = current()
      if (session === null || conversation === null) {
        return yield* ctx.ui.notify("There is no conversation yet.", "warning")
      }
      if (!candidate.ready && !(yield* connect.askForKey({ provider, sessionID: session.sessionID }))) {
        return
      }
      const model = yield* chooseModel(connect, candidate)
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
