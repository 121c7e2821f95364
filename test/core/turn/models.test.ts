/** What one model may see of what another one said. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call, say, scriptedModel, think } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

/** The scripted model under the name that is asked for. */
const named = (...script: Parameters<typeof scriptedModel>[0]) => {
  const model = scriptedModel(script, { reasoning: true })
  return {
    model,
    models: {
      ...model.source,
      resolve: (ref: { readonly provider: string; readonly model: string } | null) =>
        Effect.succeed({ ...model, info: { ...model.info, ...(ref ?? { provider: "one", model: "first" }) } })
    }
  }
}

it.effect("a model gets its own reasoning back as it was, and another one gets the words and calls without it", () =>
  Effect.gen(function*() {
    const signed = { acme: { signature: "s==" } }
    const { model, models } = named(
      [think("hm", signed), call("echo", { text: "a" }, "c1")],
      [think("so"), say("done")],
      "from the other",
      "from the first"
    )
    const { harness } = yield* open(memory().storage(), [], { models })
    yield* harness.resume
    const ask = (text: string) => Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)
    yield* ask("go")
    const own = model.requests[1]?.messages ?? []
    expect(own[1]).toMatchObject({
      content: [{ type: "reasoning", text: "hm", options: signed }, { type: "tool-call", id: "c1" }]
    })

    yield* harness.main.configure({ model: { provider: "two", model: "other" } })
    yield* ask("and you?")
    const other = model.requests[2]?.messages ?? []
    expect(JSON.stringify(other)).not.toContain("hm")
    expect(JSON.stringify(other)).not.toContain("s==")
    expect(other.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant", "user"])
    expect(other[1]?.content).toEqual([{ type: "tool-call", id: "c1", name: "echo", params: { text: "a" } }])

    // Nothing of it is lost: the first one finds it again.
    yield* harness.main.configure({ model: null })
    yield* ask("back again")
    const again = model.requests[3]?.messages ?? []
    expect(again.slice(0, 3)).toEqual(own)
    expect(again[5]).toMatchObject({ role: "assistant", content: [{ type: "text", text: "from the other" }] })
  }))
