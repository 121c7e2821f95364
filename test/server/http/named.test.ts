/** Agents and models that requests name for sessions. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { startTestServer } from "./fixture.ts"

describe("an agent or a model that the location does not have", () => {
  it.live("is refused by name with those that there are, and nothing of the request is done", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer([])
      yield* Effect.promise(async () => {
        const model = { provider: "test", model: "scripted" }
        const refused = await call("POST", "/session", { body: { title: "no", agent: "nobody" } })
        expect(refused.json.error).toMatchObject({
          code: "invalid_arguments",
          message: 'There is no agent "nobody" here; there are build, plan.',
          data: { path: "agent" }
        })
        const misspelt = await call("POST", "/session", { body: { model: "test/scripted" } })
        expect(misspelt.json.error.message).toBe(
          "The body does not fit at model: expected an object with provider, model or null."
        )
        expect((await call("GET", "/session")).json.items).toEqual([])

        const { json: { id } } = await call("POST", "/session", { body: { title: "before", agent: "build", model } })
        const changed = await call("PATCH", `/session/${id}`, {
          body: { title: "after", agent: "plan", model: { provider: "tset", model: "scripted" } }
        })
        expect(changed.status).toBe(422)
        expect(changed.json.error).toMatchObject({
          message: expect.stringMatching(
            /^There is no provider "tset" for the model tset\/scripted; did you mean test\?$/
          ),
          data: { path: "model" }
        })
        expect((await call("GET", `/session/${id}`)).json).toMatchObject({ title: "before", agent: "build", model })
        // None at all is not one that is missing.
        const none = await call("PATCH", `/session/${id}`, { body: { agent: null, model: null } })
        expect(none.json).toMatchObject({ agent: null, model: null })
      })
    })))
})
