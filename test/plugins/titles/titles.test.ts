import { Plugin } from "@bezel/core/host"
import type { SettingsKey } from "@bezel/core/settings"
import { emptySettings, fail, scriptedModel, type ScriptedTurn, testSessionHost } from "@bezel/core/testing"
import { TitleSetting, type TitleSettings } from "@bezel/plugins/titles"
import { cleanTitle, session } from "@bezel/plugins/titles/session"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"

const world = (script: ReadonlyArray<ScriptedTurn>, settings: TitleSettings, title?: string) =>
  Effect.gen(function*() {
    const model = scriptedModel(script)
    const host = yield* testSessionHost([Plugin.define({ id: "bezel.titles", session })], {
      model,
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => key.name === TitleSetting.name ? settings as A : key.default
      }
    })
    const { id } = yield* host.session.create(title === undefined ? {} : { title })
    const titleNow = Effect.map(host.session.get(id), (record) => record.title)
    const becomes = (title: string) =>
      Effect.promise(() =>
        vi.waitFor(async () => expect(await Effect.runPromise(Effect.orDie(titleNow))).toBe(title), { interval: 10 })
      )
    return { host, id, model, titleNow, becomes, ask: (text: string) => host.ask(id, text) }
  })

const prompt = "please look at why the build of the shop fails since yesterday, and fix it"

describe("the title of a session", () => {
  it.live("is the beginning of its first prompt, without any further request", () =>
    Effect.gen(function*() {
      const { ask, model, titleNow } = yield* world(["done", "never"], {})
      yield* ask(`${prompt}\nand more`)
      expect(yield* titleNow).toBe(`${prompt} and …`)
      expect(model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("is given by a model after the first answer where a setting names one, once", () =>
    Effect.gen(function*() {
      const { ask, becomes, model } = yield* world(["done", '"Fix the shop build"\nThat is it.', "again"], {
        model: "session"
      })
      yield* ask(prompt)
      yield* becomes("Fix the shop build")
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("the build of the shop")
      expect(model.requests[1]?.tools).toEqual([])
      yield* ask("on")
      expect(model.requests).toHaveLength(3)
    }).pipe(Effect.scoped))

  it.live("stays what a person has called it, and what it was where the model fails", () =>
    Effect.gen(function*() {
      const named = yield* world(["done", "never"], { model: "session" }, "Mine")
      yield* named.ask(prompt)
      yield* named.ask("on")
      expect(yield* named.titleNow).toBe("Mine")
      expect(named.model.requests).toHaveLength(2)
      const failing = yield* world(["done", [fail("refused")], "on"], { model: "session" })
      yield* failing.ask(prompt)
      yield* failing.ask("on")
      expect(yield* failing.titleNow).toBe(prompt)
    }).pipe(Effect.scoped))

  it("is one line without what models put around it", () => {
    expect(cleanTitle("## **Fix the build.**\nmore")).toBe("Fix the build")
    expect(cleanTitle("Title: “Fix it”")).toBe("Fix it")
    expect(cleanTitle("\n\n")).toBe("")
    expect([...cleanTitle("x".repeat(500))]).toHaveLength(80)
  })
})
