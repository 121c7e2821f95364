/**
 * The terminal facet of chat: the chat screen over the root conversation of the session that the terminal is attached to.
 */
import type { ConversationConfig } from "@bezel/core/harness"
import { Conversation, Registries } from "@bezel/core/host/contract"
import type { Facade } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { homedir } from "node:os"
import { MentionService } from "../mentions/contract.ts"
import { pastedImage } from "./pasted-image.ts"
import { type ChatConversation, chatScreen } from "./screen.ts"

/** What stays on the screen while a conversation's host is away, until another one has the conversation. */
const lastKnown = (instance: ChatConversation): ChatConversation => ({
  view: { value: instance.view.value, status: "stale" },
  send: instance.send,
  abort: instance.abort,
  inputContent: instance.inputContent,
  inputAbort: instance.inputAbort,
  configSet: instance.configSet,
  entries: instance.entries
})

export const tui = Effect.fn("chat/tui")(function*(ctx: TuiContext) {
  let attached: { readonly sessionID: string; readonly location: string } | null = null
  let current: ChatConversation | null = null
  let model: string | null = null
  let window: number | null = null
  let asked = ""

  /** What the view does not say is asked again when it may have become something else. */
  const askForModel = (instance: Facade<Conversation>, config: ConversationConfig) => {
    const now = JSON.stringify([config.agent, config.model])
    if (asked === now) return Effect.void
    asked = now
    return Effect.asVoid(Effect.forkScoped(
      instance.nextModel().pipe(
        Effect.tap((next) =>
          Effect.sync(() => {
            model = `${next.provider}/${next.model}`
            window = null
            changed()
          })
        ),
        Effect.tap((next) =>
          Effect.map(Effect.flatMap(registries, (known) => known.models()), (models) => {
            const found = models.find(({ info }) => info.provider === next.provider && info.model === next.model)
            window = found?.info.contextWindow ?? null
            changed()
          })
        ),
        Effect.ignore
      )
    ))
  }

  const registries = yield* Effect.cached(ctx.use(Registries))
  const mentions = yield* Effect.cached(ctx.use(MentionService))

  const changed = yield* chatScreen(ctx, {
    pastedImage,
    complete: (word) => Effect.flatMap(mentions, (service) => service.complete({ word })),
    conversation: () =>
      current !== null && (attached === null || current.view.value?.conversation.sessionID === attached.sessionID)
        ? current
        : null,
    location: () => attached?.location ?? null,
    model: () => model,
    window: () => window,
    home: homedir()
  })

  yield* ctx.observe(Conversation, (instance) =>
    Effect.gen(function*() {
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (current !== instance) return
          current = lastKnown(instance)
          changed()
        })
      )
      yield* Effect.forkScoped(Stream.runForEach(instance.view.statuses, () => Effect.sync(changed)))
      yield* instance.view.forEach(({ config, conversation }) =>
        Effect.suspend(() => {
          // Forks and sub-agents are conversations of the session too.
          if (conversation.parent === null && conversation.owner === null) current = instance
          changed()
          return current === instance ? askForModel(instance, config) : Effect.void
        })
      )
    }))

  yield* ctx.onActivate(
    Effect.asVoid(Effect.forkScoped(Stream.runForEach(ctx.session.changes, (identity) =>
      Effect.sync(() => {
        attached = identity === null ? null : { sessionID: identity.sessionID, location: identity.location.directory }
        changed()
      }))))
  )
})
