/** Notices when a turn ends or waits, as a terminal in memory gets them from a real session. */
import { Conversation, makePresentation, Plugin } from "@bezel/core/host"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testSessionHost
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { type Notify, NotifySetting } from "@bezel/plugins/notices"
import { session as notices } from "@bezel/plugins/notices/session"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { text } from "@bezel/tui"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { Notices } from "../../../packages/plugins/src/notices/contract.ts"
import { tui } from "../../../packages/plugins/src/notices/tui.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"

const withNotify = (how: Notify): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => (key.name === NotifySetting.name ? how : key.default) as A
})

const open = (how: Notify, script: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const stateDirectory = yield* temporaryDirectory
    const host = yield* testSessionHost(
      [
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.notices", session: notices }),
        Plugin.define({
          id: "test.tools",
          session: (ctx) =>
            Effect.asVoid(ctx.tool.transform((draft) =>
              draft.set(
                "act",
                tool({
                  description: "act",
                  input: Schema.Struct({}),
                  execute: () => Effect.succeed("acted")
                })
              )
            ))
        })
      ],
      {
        model: scriptedModel(script),
        settings: withNotify(how),
        entries: { "bezel.permissions": { options: { stateDirectory } } }
      }
    )
    const { id } = yield* Effect.orDie(host.session.create({ title: "t" }))
    const screen = yield* testTerminal({
      presentation: yield* makePresentation({ connection: yield* host.connect(id), location: host.location }),
      plugins: Plugin.sources("tui", [
        Plugin.define({ id: "bezel.notices", tui }),
        Plugin.define({
          id: "test.screen",
          tui: (ctx) =>
            Effect.gen(function*() {
              // Behind it, so that what it has been told and shown has been told and shown to the notices before.
              let asked = false
              let shown = false
              yield* ctx.screens.register("chat", {
                title: "T",
                open: Effect.succeed({ body: () => [text(asked && shown ? "the body" : "not yet")] })
              })
              const service = yield* ctx.use(Notices)
              yield* ctx.observe(Conversation, (instance) =>
                instance.view.forEach(() =>
                  Effect.sync(() => {
                    shown = true
                    ctx.ui.redraw()
                  })
                ))
              yield* ctx.onActivate(
                Stream.filter(ctx.connection.changes, ({ status }) => status === "connected").pipe(
                  Stream.runHead,
                  Effect.andThen(service.how()),
                  Effect.map(() => {
                    asked = true
                    ctx.ui.redraw()
                  }),
                  Effect.ignore,
                  Effect.forkScoped,
                  Effect.asVoid
                )
              )
            })
        })
      ])
    })
    yield* screen.until("the body")
    const written = () => screen.terminal.written
    /** Lets everything be written that belongs to what is over. */
    const wrote = (pattern: RegExp) =>
      Effect.promise(async () => {
        while (!pattern.test(written())) await new Promise((resolve) => setTimeout(resolve, 5))
      })
    return { host, id, screen, written, wrote }
  })

// eslint-disable-next-line no-control-regex
const bells = (output: string) => output.replaceAll(/\x1b\][^\x07]*\x07/g, "").split("\x07").length - 1

describe("a notice", () => {
  it.live("is the bell at the end of a turn, if the settings say so", () =>
    Effect.gen(function*() {
      const { host, id, written } = yield* open("bell", ["one", "two"])
      const rung = (count: number) =>
        Effect.promise(async () => {
          while (bells(written()) < count) await new Promise((resolve) => setTimeout(resolve, 5))
        })
      expect(bells(written())).toBe(0)
      expect(yield* host.ask(id, "go")).toBe("one")
      yield* rung(1)
      expect(yield* host.ask(id, "go on")).toBe("two")
      yield* rung(2)
      expect(bells(written())).toBe(2)
    }).pipe(Effect.scoped))

  it.live("is a message with the first line of the answer, without anything that a terminal would obey", () =>
    Effect.gen(function*() {
      const { host, id, written, wrote } = yield* open("osc9", [
        `all \x1b]0;evil\x07done\u202e${"x".repeat(500)}\nmore`
      ])
      yield* host.ask(id, "go")
      yield* wrote(/\x1b\]9;[^\x07]*\x07/)
      const [, message = ""] = /\x1b\]9;([^\x07]*)\x07/.exec(written()) ?? []
      expect(message).toMatch(/^Bezel: all ␛\]0;evil␇done<U\+202E>x+$/)
      expect(message.length).toBeLessThanOrEqual(200)
      expect(written()).not.toContain("\x1b]0;evil")
    }).pipe(Effect.scoped))

  it.live("also comes when a call waits for the person", () =>
    Effect.gen(function*() {
      const { host, id, written, wrote } = yield* open("osc9", [[call("act", {})], "never"])
      const asked = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* wrote(/\x1b\]9;Bezel: waits for you\x07/)
      yield* Effect.orDie(host.session.interrupt(id))
      yield* Fiber.join(asked)
      yield* wrote(/\x1b\]9;Bezel: the turn ended without an answer\x07/)
      expect(written().split("\x1b]9;")).toHaveLength(3)
    }).pipe(Effect.scoped))

  it.live("is off otherwise", () =>
    Effect.gen(function*() {
      const { host, id, screen, written } = yield* open("off", ["one", "two"])
      yield* host.ask(id, "go")
      yield* host.ask(id, "go on")
      yield* screen.text
      expect([bells(written()), written().includes("\x1b]9;")]).toEqual([0, false])
    }).pipe(Effect.scoped))
})
