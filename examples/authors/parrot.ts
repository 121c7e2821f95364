/** A model of one's own: it says what was said last. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import type { ModelInfo, ModelPart, ModelRequest } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

const info: ModelInfo = {
  provider: "parrot",
  model: "grey",
  name: "Grey parrot",
  contextWindow: null,
  maxOutput: null,
  reasoning: false,
  images: false,
  cost: null
}

const answer = ({ messages }: ModelRequest): ReadonlyArray<ModelPart> => {
  const content = messages.findLast((message) => message.role === "user")?.content ?? []
  const words = typeof content === "string"
    ? content
    : content.flatMap((part) => part.type === "text" ? [part.text] : []).join(" ")
  return [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: words },
    { type: "text-end", id: "1" },
    {
      type: "finish",
      reason: "stop",
      usage: {
        inputTokens: { total: 0, uncached: 0, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 0, text: 0, reasoning: 0 }
      }
    }
  ]
}

const session = Effect.fn("parrot/session")(function*(ctx: SessionContext) {
  yield* ctx.provider.transform((draft) => {
    draft.set("parrot", {
      id: "parrot",
      name: "Parrot",
      models: [info],
      openEnded: false,
      availability: { ready: true },
      open: () => Effect.succeed({ info, stream: (request) => Stream.fromIterable(answer(request)) })
    })
    draft.setDefault(info)
  })
})

export default Plugin.define({ id: "example.parrot", version: "1.0.0", session })
