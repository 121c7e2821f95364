import { Plugin } from "@bezel/core/host"
import { SessionRuntime, type SessionStore } from "@bezel/core/session"
import type { SettingsKey } from "@bezel/core/settings"
import type { SessionStorage } from "@bezel/core/storage"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testSessionHost,
  testSessions
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import type { LimitsOptions } from "@bezel/plugins/limits"
import { session } from "@bezel/plugins/limits/session"
import { type LimitSettings, LimitsSetting } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Schema, type Scope } from "effect"

const echo = Plugin.define({
  id: "test.echo",
  session: (ctx) =>
    Effect.asVoid(
      ctx.tool.transform((draft) =>
        draft.set(
          "echo",
          tool({
            description: "Echoes",
            input: Schema.Struct({ text: Schema.String }),
            execute: ({ text }) => Effect.succeed(text)
          })
        )
      )
    )
})

/** Has another session answer, as a sub-agent does; `heard` is what came of it. */
const delegate = (heard: Array<string>) =>
  Plugin.define({
    id: "test.delegate",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) =>
        draft.set(
          "delegate",
          tool({
            description: "Has a sub-agent answer",
            input: Schema.Struct({}),
            execute: (_, call) =>
              Effect.gen(function*() {
                const child = yield* ctx.session.create({ parentID: call.sessionID })
                const { inputID } = yield* ctx.session.prompt({ sessionID: child.id, prompt: { text: "do it" } })
                const outcome = yield* ctx.session.wait(child.id, inputID)
                heard.push(outcome.status === "done" ? outcome.text : outcome.error?.message ?? outcome.reason)
                return "heard"
              }).pipe(Effect.orDie)
          })
        )
      ))
  })

const step: ScriptedTurn = [call("echo", { text: "x" })]

const world = (
  script: ReadonlyArray<ScriptedTurn>,
  options: LimitsOptions | undefined,
  settings: LimitSettings = {},
  price = 0,
  kept?: { readonly directory: string; readonly sessions: Context.Context<SessionStore | SessionStorage> }
) =>
  Effect.gen(function*() {
    const scripted = scriptedModel(script)
    const heard: Array<string> = []
    const cost = { input: price, output: price, cacheRead: 0, cacheWrite: 0 }
    const model = { info: { ...scripted.info, cost }, stream: scripted.stream }
    const host = yield* testSessionHost([echo, delegate(heard), Plugin.define({ id: "bezel.limits", session })], {
      model,
      ...kept,
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => key.name === LimitsSetting.name ? settings as A : key.default
      },
      ...(options === undefined ? {} : { entries: { "bezel.limits": { required: true, options: { ...options } } } })
    })
    const { id } = yield* Effect.orDie(host.session.create({ title: "t" }))
    return { host, id, heard, requests: () => scripted.requests.length, ask: (text: string) => host.ask(id, text) }
  }) satisfies Effect.Effect<unknown, unknown, Scope.Scope>

describe("limits", () => {
  it.live("without any, a turn takes as many requests as it needs", () =>
    Effect.gen(function*() {
      const { ask, requests } = yield* world([step, step, step, "done"], undefined)
      expect(yield* ask("go")).toBe("done")
      expect(requests()).toBe(4)
    }).pipe(Effect.scoped))

  it.live("a turn that has taken its steps ends and says so; the next one begins anew", () =>
    Effect.gen(function*() {
      const { ask, requests } = yield* world([step, step, step, "done"], { maxSteps: 2 })
      expect(yield* ask("go")).toContain("it may take 2 requests to the model and has taken them")
      expect(requests()).toBe(2)
      expect(yield* ask("on")).toBe("done")
      expect(requests()).toBe(4)
    }).pipe(Effect.scoped))

  it.live("a turn that needs exactly its steps is answered", () =>
    Effect.gen(function*() {
      const { ask } = yield* world([step, "done"], { maxSteps: 2 })
      expect(yield* ask("go")).toBe("done")
      const one = yield* world(["done"], { maxSteps: 1 })
      expect(yield* one.ask("go")).toBe("done")
    }).pipe(Effect.scoped))

  it.live("the lower of option and setting holds", () =>
    Effect.gen(function*() {
      expect(yield* (yield* world([step, step, "done"], { maxSteps: 5 }, { maxSteps: 1 })).ask("go")).toContain(
        "it may take 1 request to"
      )
      expect(yield* (yield* world([step, step, "done"], { maxSteps: 1 }, { maxSteps: 5 })).ask("go")).toContain(
        "it may take 1 request to"
      )
      expect(yield* (yield* world([step, step, "done"], undefined, { maxSteps: 1 })).ask("go")).toContain(
        "it may take 1 request to"
      )
    }).pipe(Effect.scoped))

  it.live("a session that has cost its maximum asks the model no more, in this turn and in later ones", () =>
    Effect.gen(function*() {
      const { ask, requests } = yield* world([step, step, "done"], { maxCostUSD: 0.000001 }, {}, 1_000_000)
      expect(yield* ask("go")).toContain("this session has cost $")
      expect(requests()).toBe(1)
      expect(yield* ask("on")).toContain("may cost $0.000001")
      expect(requests()).toBe(1)
    }).pipe(Effect.scoped))

  it.live("sub-agents are paid from the same purse: they end when it is empty, and so does who called them", () =>
    Effect.gen(function*() {
      // What one answer costs.
      const one = yield* world(["done"], undefined, {}, 1_000_000)
      yield* one.ask("go")
      yield* Context.get(one.host.services, SessionRuntime).settled
      const price = (yield* Effect.orDie(one.host.session.get(one.id))).cost
      expect(price).toBeGreaterThan(0)

      const delegation: ScriptedTurn = [call("delegate", {})]
      // Two answers are paid for: the caller's and the sub-agent's first.
      const two = yield* world([delegation, step, "never", "never"], { maxCostUSD: price * 1.5 }, {}, 1_000_000)
      expect(yield* two.ask("go")).toContain("all its sub-agents counted,")
      expect(two.requests()).toBe(2)
      expect(two.heard).toEqual([expect.stringContaining("all its sub-agents counted,")])

      // With enough for all of it, nothing ends.
      const enough = yield* world([delegation, step, "child", "done"], { maxCostUSD: price * 100 }, {}, 1_000_000)
      expect(yield* enough.ask("go")).toBe("done")
      expect(enough.heard).toEqual(["child"])
    }).pipe(Effect.scoped))

  it.live("what sub-agents of earlier turns have cost counts when the session goes on, also in another process", () =>
    Effect.gen(function*() {
      const kept = { sessions: yield* testSessions, directory: yield* temporaryDirectory }
      const delegation: ScriptedTurn = [call("delegate", {})]
      const before = yield* Effect.scoped(Effect.gen(function*() {
        const { ask, host, id } = yield* world([delegation, step, "child", "done"], undefined, {}, 1_000_000, kept)
        yield* ask("go")
        yield* Context.get(host.services, SessionRuntime).settled
        return yield* Effect.orDie(host.session.get(id))
      }))
      const after = yield* world(["never"], { maxCostUSD: before.cost * 1.5 }, {}, 1_000_000, kept)
      expect(yield* after.host.ask(before.id, "on")).toContain("all its sub-agents counted,")
      expect(after.requests()).toBe(0)
    }).pipe(Effect.scoped))

  it.live("a model without a price never reaches a limit of cost", () =>
    Effect.gen(function*() {
      const { ask } = yield* world([step, step, "done"], { maxCostUSD: 0.01 })
      expect(yield* ask("go")).toBe("done")
    }).pipe(Effect.scoped))

  it.live("options that are no limits stop the host by name", () =>
    Effect.gen(function*() {
      for (
        const options of [{ maxSteps: 0 }, { maxSteps: 1.5 }, { maxCostUSD: -1 }, { steps: 3 }] as ReadonlyArray<
          LimitsOptions
        >
      ) {
        expect(String(yield* Effect.flip(world([], options)))).toMatch(/above 0|integer|steps/)
      }
    }).pipe(Effect.scoped))
})
