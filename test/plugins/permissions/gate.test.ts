import type { BeforeToolApi, BeforeToolDecision, HookOptions, HookToolCall, ToolHooks } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import type { InteractionOutcome } from "@bezel/core/service"
import { UnknownSession } from "@bezel/core/session"
import type { SettingsKey } from "@bezel/core/settings"
import { emptySettings } from "@bezel/core/testing"
import type { ApprovalResponse, PermissionRules } from "@bezel/plugins/permissions"
import { session } from "@bezel/plugins/permissions/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"

type Context = Parameters<typeof session>[0]
type Outcome = InteractionOutcome<ApprovalResponse>

/** The facet over a context that keeps memos and grants in maps, so that a rerun after a crash can be played. */
const gate = (rules: PermissionRules, outcomes: Array<Outcome>) =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const memos = new Map<string, JsonValue>()
    let state: Record<string, JsonValue> = { grants: [] }
    let handlers: ToolHooks = {}
    const current = { rules }
    const context: Context = {
      options: undefined,
      location: { directory: "/work/project", workspaceID: null },
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => key.name === "permissions" ? current.rules as A : key.default
      },
      namespace: (id) =>
        Effect.succeed({
          id,
          unregister: Effect.void,
          get: () => Effect.sync(() => state),
          update: (_, change) =>
            Effect.sync(() => {
              state = { ...state }
              change(state)
              log.push("granted")
            })
        }),
      hooks: (_: unknown, kind: unknown, given: object, options?: HookOptions) =>
        Effect.sync(() => {
          log.push(`${kind} ${options?.gate === true ? "gate" : "hook"}`)
          if (kind === "tool") handlers = given as ToolHooks
          return { unregister: Effect.void }
        }),
      interactions: {
        request: (() =>
          Effect.sync(() => {
            log.push("asked")
            return outcomes.shift() ?? { type: "expired" }
          })) as Context["interactions"]["request"]
      },
      provide: () => Effect.void,
      onActivate: () => Effect.void,
      session: {
        folder: () => Effect.succeed("/work/files"),
        get: (sessionID) => Effect.fail(new UnknownSession({ sessionID, message: "There is no record." }))
      },
      tool: { transform: () => Effect.die("not used"), reload: Effect.void, list: Effect.succeed([]) }
    }
    const boot = session(context) as Effect.Effect<void, never, Scope.Scope>
    yield* boot
    const memo = (name: string, candidate?: JsonValue) =>
      Effect.sync(() => {
        if (candidate !== undefined && !memos.has(name)) memos.set(name, candidate)
        return memos.get(name)
      })
    const api: BeforeToolApi = {
      sessionID: "s",
      conversationID: "c",
      taskID: "t",
      waiting: Effect.sync(() => void log.push("waiting")),
      memo: memo as BeforeToolApi["memo"],
      emit: () => Effect.void
    }
    const run = (command: string): Effect.Effect<BeforeToolDecision | void, { readonly message: string }> => {
      const call: HookToolCall = {
        callID: "x",
        name: "bash",
        args: { command },
        permission: { access: "bash", subjects: [command] }
      }
      return Effect.scoped(handlers.beforeTool?.(call, api) ?? Effect.die("no gate"))
    }
    return {
      run,
      log,
      memos,
      reboot: (next: PermissionRules) => Effect.andThen(Effect.sync(() => void (current.rules = next)), boot)
    }
  })

const yes: Outcome = { type: "answered", response: { decision: "once" }, client: "c" }
const forSession: Outcome = { type: "answered", response: { decision: "session" }, client: "c" }
const no: Outcome = { type: "answered", response: { decision: "deny", message: "not now" }, client: "c" }

describe("the gate", () => {
  it.effect("is registered as a gate, and shows that it waits before it asks", () =>
    Effect.gen(function*() {
      const { log, run } = yield* gate({}, [yes])
      expect(yield* run("make")).toBeUndefined()
      expect(log).toEqual(["tool gate", "waiting", "asked"])
    }))

  it.effect("an answer is remembered for a rerun of the same call: nobody is asked twice", () =>
    Effect.gen(function*() {
      const { log, run } = yield* gate({}, [yes])
      yield* run("make")
      expect(yield* run("make")).toBeUndefined()
      expect(log.filter((each) => each === "asked")).toHaveLength(1)
    }))

  it.effect("a remembered no is told in the same words", () =>
    Effect.gen(function*() {
      const { log, run } = yield* gate({}, [no])
      const first = yield* run("make")
      expect(first).toMatchObject({ code: "declined", block: expect.stringContaining("not now") })
      expect(yield* run("make")).toEqual(first)
      expect(log.filter((each) => each === "asked")).toHaveLength(1)
    }))

  it.effect("a remembered yes is for those arguments only", () =>
    Effect.gen(function*() {
      const { run } = yield* gate({}, [yes, no])
      yield* run("make")
      expect(yield* run("make install")).toMatchObject({ code: "declined" })
    }))

  it.effect("a remembered yes and a grant do not beat a deny that is there by now", () =>
    Effect.gen(function*() {
      const { reboot, run } = yield* gate({}, [yes, forSession])
      yield* run("make")
      yield* run("make all")
      yield* reboot({ bash: { "make*": "deny" } })
      expect(yield* run("make")).toMatchObject({ code: "denied_by_rule" })
      expect(yield* run("make all")).toMatchObject({ code: "denied_by_rule" })
    }))

  it.effect("a grant is kept before the answer, so that a crash in between asks nobody again", () =>
    Effect.gen(function*() {
      const { log, memos, run } = yield* gate({}, [forSession])
      yield* run("make")
      memos.clear()
      expect(yield* run("make")).toBeUndefined()
      expect(log.filter((each) => each === "asked")).toHaveLength(1)
    }))

  it.effect("only an answer is remembered; the other three outcomes are asked again and read differently", () =>
    Effect.gen(function*() {
      const outcomes: Array<Outcome> = [
        { type: "declined", client: "c" },
        { type: "expired" },
        { type: "unattended" },
        yes
      ]
      const { memos, run } = yield* gate({}, outcomes)
      const told = [yield* run("make"), yield* run("make"), yield* run("make")]
      expect(told.map((each) => each?.code)).toEqual(["declined", "expired", "unattended"])
      expect(new Set(told.map((each) => each?.block)).size).toBe(3)
      expect(memos.size).toBe(0)
      expect(yield* run("make")).toBeUndefined()
    }))

  it.effect("a grant for the session is no more than once where no rule can say it", () =>
    Effect.gen(function*() {
      const { log, run } = yield* gate({}, [forSession, forSession])
      expect(yield* run("make $X")).toBeUndefined()
      expect(log).not.toContain("granted")
    }))

  it.effect("a stored state of another shape grants nothing and hurts nobody", () =>
    Effect.gen(function*() {
      const { memos, run } = yield* gate({}, [no])
      memos.set("decision", { allowed: true })
      expect(yield* run("make")).toMatchObject({ code: "declined" })
    }))
})
