import { Plugin } from "@bezel/core/host"
import { SessionRuntime } from "@bezel/core/session"
import type { SettingsKey } from "@bezel/core/settings"
import {
  emptySettings,
  fail,
  finish,
  say,
  scriptedModel,
  type ScriptedTurn,
  testSessionHost
} from "@bezel/core/testing"
import { session } from "@bezel/plugins/compaction/session"
import { CompactionSetting, type CompactionSettings } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect } from "effect"

const world = (
  script: ReadonlyArray<ScriptedTurn>,
  settings: CompactionSettings,
  contextWindow: number | null = null
) =>
  Effect.gen(function*() {
    const model = scriptedModel(script, { contextWindow })
    const host = yield* testSessionHost([Plugin.define({ id: "bezel.compaction", session })], {
      model,
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => key.name === CompactionSetting.name ? settings as A : key.default
      }
    })
    const { id } = yield* Effect.orDie(host.session.create({ title: "t" }))
    return { host, id, model, ask: (text: string) => host.ask(id, text) }
  })

describe("compaction settings", () => {
  it.live("the threshold decides when a conversation is summarized before a request", () =>
    Effect.gen(function*() {
      const script = () => [[say("one"), finish("stop", { input: 50, output: 5 })], "two", "three"]
      const eager = yield* world(script(), { threshold: 0.5, keepRecent: 0 }, 100)
      yield* eager.ask("first")
      yield* eager.ask("second")
      expect(eager.model.requests.length).toBe(3)
      const patient = yield* world(script(), { threshold: 0.9, keepRecent: 0 }, 100)
      yield* patient.ask("first")
      yield* patient.ask("second")
      expect(patient.model.requests.length).toBe(2)
    }).pipe(Effect.scoped))

  it.live("switched off, an overflow ends the turn and nothing is summarized", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world(["one", [fail("overflow")], "never"], { auto: false })
      yield* host.ask(id, "first")
      const { main } = yield* Context.get(host.services, SessionRuntime).open(id)
      const input = yield* main.send({ content: [{ type: "text", text: "second" }] })
      expect(yield* input.wait).toMatchObject({ status: "unanswered", error: { kind: "overflow" } })
      expect(model.remaining).toBe(1)
    }).pipe(Effect.scoped))

  it.live("switched off, a summary that somebody asks for is made all the same, and keeps what the settings say", () =>
    Effect.gen(function*() {
      const long = "x".repeat(400)
      const { ask, host, id, model } = yield* world([`one ${long}`, `two ${long}`, "three", "the summary"], {
        auto: false,
        keepRecent: 50
      })
      yield* ask("first")
      yield* ask("second")
      yield* ask("third")
      const { main } = yield* Context.get(host.services, SessionRuntime).open(id)
      const ended = yield* Effect.flatMap(main.collapse(), main.waitForTask)
      expect(ended).toMatchObject({ status: "completed" })
      const context = JSON.stringify(yield* main.context)
      expect(context).toContain("the summary")
      expect(context).not.toContain("one xxx")
      expect(context).toContain("third")
      expect(model.requests).toHaveLength(4)
    }).pipe(Effect.scoped))
})
