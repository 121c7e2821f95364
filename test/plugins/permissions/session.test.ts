import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { InteractionBroker } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import { call, emptySettings } from "@bezel/core/testing"
import type { ApprovalResponse, PermissionOptions } from "@bezel/plugins/permissions"
import { LimitsSetting } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Option, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { bash, codes, person, world } from "./world.ts"

describe("rules", () => {
  it.live("what they allow runs, what they deny does not, and the model is told which rule", () =>
    Effect.gen(function*() {
      const { host, ran, results, sessionID } = yield* world(
        [
          [bash("git log"), bash("git log; rm x"), call("read", { path: "a" }), call("read", { path: "/etc/passwd" })],
          "done"
        ],
        { rules: { bash: { "git log*": "allow", "rm *": "deny" } } }
      )
      expect(yield* host.ask(sessionID, "go")).toBe("done")
      expect(ran.sort()).toEqual(["bash git log", "read a"])
      expect(results()).toMatchObject([
        { isFailure: false },
        {
          isFailure: true,
          result: expect.stringContaining('The rule "bash(rm *)" (settings) denies the command "rm x"')
        },
        { isFailure: false },
        { isFailure: true, result: expect.stringContaining("needs a user's approval and nobody is here") }
      ])
      expect(yield* codes(host, sessionID)).toEqual([null, "denied_by_rule", null, "unattended"])
    }).pipe(Effect.scoped))

  it.live("a tool denied outright is not offered, in settings and on the command line", () =>
    Effect.gen(function*() {
      const { host, model, sessionID } = yield* world(["hi"], { rules: { web: "deny" }, options: { deny: ["write"] } })
      yield* host.ask(sessionID, "go")
      expect(model.requests[0]?.tools.map((each) => each.name)).toEqual(["bash", "read"])
    }).pipe(Effect.scoped))

  it.live("--allow and --deny hold beside the settings", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world(
        [
          [bash("npm test"), bash("npm publish"), call("write", { path: "src/a" }), call("write", { path: "b" })],
          "done"
        ],
        { options: { allow: ["bash(npm *)", "write(src/**)"], deny: ["bash(npm publish*)"] } }
      )
      yield* host.ask(sessionID, "go")
      expect(ran.sort()).toEqual(["bash npm test", "write src/a"])
    }).pipe(Effect.scoped))

  it.live("--yes runs what would be asked, inside the location, and not what is denied", () =>
    Effect.gen(function*() {
      const { host, ran, results, sessionID } = yield* world(
        [
          [
            bash("make"),
            call("write", { path: "a" }),
            call("write", { path: "/etc/x" }),
            bash("rm x"),
            call("web", {})
          ],
          "done"
        ],
        { rules: { bash: { "rm *": "deny" } }, options: { yes: true } }
      )
      yield* host.ask(sessionID, "go")
      expect(ran.sort()).toEqual(["bash make", "web", "write a"])
      expect(results()[2]).toMatchObject({ result: expect.stringContaining("outside the location it takes a rule") })
    }).pipe(Effect.scoped))

  it.live("a link inside the location does not stand for what it leads to outside", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world(
        [[
          call("read", { path: "link" }),
          call("write", { path: "link" }),
          call("write", { path: "new" }),
          call("write", { path: "folder/a/b" })
        ], "done"],
        { options: { yes: true } }
      )
      for (
        const [name, target] of [["link", "/etc/hostname"], ["new", "/tmp/bezel-not-there/x"], [
          "folder",
          "/tmp"
        ]] as const
      ) {
        fs.symlinkSync(target, path.join(host.location.directory, name))
      }
      yield* host.ask(sessionID, "go")
      expect(ran).toEqual([])
    }).pipe(Effect.scoped))

  it.live("a rule that cannot be read and an unknown option stop the host by name", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(world([], { options: { allow: ["git status"] } }))
      expect(String(error)).toContain('"git status" is not a permission rule')
      const other = yield* Effect.flip(world([], { options: { always: true } as PermissionOptions }))
      expect(String(other)).toContain("The options of the permissions plugin are not valid")
    }).pipe(Effect.scoped))

  it.live("the gate sees the call as the other hooks left it", () =>
    Effect.gen(function*() {
      const rewriting = Plugin.define({
        id: "test.rewriting",
        session: (ctx) =>
          Effect.gen(function*() {
            const namespace = yield* ctx.namespace("rewriting", {})
            yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.succeed({ args: { command: "rm x" } }) })
          })
      })
      const { host, ran, sessionID } = yield* world([[bash("git log")], "done"], {
        rules: { bash: { "git *": "allow", "rm *": "deny" } },
        extra: [rewriting]
      })
      yield* host.ask(sessionID, "go")
      expect(ran).toEqual([])
      expect(yield* codes(host, sessionID)).toEqual(["denied_by_rule"])
    }).pipe(Effect.scoped))
})

describe("a person", () => {
  it.live("is shown what it is about, why it is asked and what a session's grant would be", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world([[bash("npm test")], "done"])
      const { asked } = yield* person(host, sessionID, () => Effect.succeed({ decision: "once" }))
      expect(yield* host.ask(sessionID, "go")).toBe("done")
      expect(asked).toMatchObject([{
        tool: "bash",
        args: { command: "npm test" },
        access: "bash",
        subjects: ["npm test"],
        reasons: ['no rule allows the command "npm test"'],
        grants: ["bash(npm test)"]
      }])
      expect(ran).toEqual(["bash npm test"])
    }).pipe(Effect.scoped))

  it.live("who allows once is asked again, who allows for the session is not", () =>
    Effect.gen(function*() {
      const { host, model, ran, sessionID } = yield* world([[bash("make")], "one", [bash("make")], "two", [
        bash("make")
      ], "three"])
      let decision: ApprovalResponse["decision"] = "once"
      const { asked } = yield* person(host, sessionID, () => Effect.succeed({ decision }))
      yield* host.ask(sessionID, "1")
      decision = "session"
      yield* host.ask(sessionID, "2")
      yield* host.ask(sessionID, "3")
      expect(asked).toHaveLength(2)
      expect(ran).toEqual(["bash make", "bash make", "bash make"])
      expect(model.remaining).toBe(0)
    }).pipe(Effect.scoped))

  it.live("a grant is of its session: another one asks, and no grant beats a deny", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world(
        [[call("write", { path: "a" })], "one", [call("write", { path: "b" })], "two", [
          call("write", { path: "c" }),
          call("write", { path: "secret" })
        ], "three"],
        { rules: { write: { secret: "deny" } }, unattended: "wait" }
      )
      const other = yield* host.session.create({ title: "other" })
      yield* Context.get(host.services, InteractionBroker).unattended(other.id, "deny")
      const { asked } = yield* person(host, sessionID, () => Effect.succeed({ decision: "session" }))
      yield* host.ask(sessionID, "1")
      yield* host.ask(other.id, "2")
      yield* host.ask(sessionID, "3")
      expect(asked).toHaveLength(1)
      expect(asked[0]?.grants).toEqual(["write(./**)"])
      expect(ran).toEqual(["write a", "write c"])
      expect(yield* codes(host, other.id)).toEqual(["unattended"])
      expect(yield* codes(host, sessionID)).toEqual([null, null, "denied_by_rule"])
    }).pipe(Effect.scoped))

  it.live("what nobody answers within the limit of the settings is not run, and is not told as a no", () =>
    Effect.gen(function*() {
      const settings: SettingsReader = {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => key.name === LimitsSetting.name ? { answerSeconds: 1 } as A : key.default
      }
      const { host, ran, results, sessionID } = yield* world([[bash("make")], "done"], { settings, unattended: "wait" })
      const { asked } = yield* person(host, sessionID, () => Effect.never)
      expect(yield* host.ask(sessionID, "go")).toBe("done")
      expect(asked).toHaveLength(1)
      expect(ran).toEqual([])
      expect(results()).toMatchObject([{
        isFailure: true,
        result: expect.stringMatching(/did not answer in time, so it was not run.*Nobody said no/)
      }])
      expect(yield* codes(host, sessionID)).toEqual(["expired"])
    }).pipe(Effect.scoped))

  it.live("calls of one answer are asked one after the other, and a grant settles those that wait", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world([[
        call("write", { path: "a" }),
        call("write", { path: "b" }),
        call("write", { path: "c" })
      ], "done"])
      let open = 0
      const { asked } = yield* person(host, sessionID, () =>
        Effect.gen(function*() {
          open++
          expect(open).toBe(1)
          yield* Effect.yieldNow
          open--
          return { decision: "session" } as const
        }))
      yield* host.ask(sessionID, "go")
      expect(asked).toHaveLength(1)
      expect(ran.sort()).toEqual(["write a", "write b", "write c"])
    }).pipe(Effect.scoped))

  it.live("a no, also one with words, and a dismissed dialog are told as a no, and not as a rule or an absence", () =>
    Effect.gen(function*() {
      const { host, ran, results, sessionID } = yield* world([
        [bash("make"), bash("make it"), bash("make all")],
        "done"
      ])
      const answers: Array<ApprovalResponse | "declined"> = [{ decision: "deny" }, {
        decision: "deny",
        message: "use npm"
      }, "declined"]
      yield* person(host, sessionID, () => Effect.succeed(answers.shift() ?? "declined"))
      yield* host.ask(sessionID, "go")
      expect(ran).toEqual([])
      expect(results().map((each) => String(each.result))).toEqual([
        expect.stringContaining("The user was asked and said no"),
        expect.stringContaining("The user says: use npm"),
        expect.stringContaining("The user was asked and said no")
      ])
      expect(yield* codes(host, sessionID)).toEqual(["declined", "declined", "declined"])
    }).pipe(Effect.scoped))

  it.live("nobody there is told as that, at once, with the rule that would allow it", () =>
    Effect.gen(function*() {
      const { host, results, sessionID } = yield* world([[bash("npm test")], "done"])
      expect(yield* host.ask(sessionID, "go")).toBe("done")
      expect(results()[0]?.result).toContain("--allow 'bash(npm test)'")
      expect(yield* codes(host, sessionID)).toEqual(["unattended"])
    }).pipe(Effect.scoped))

  it.live("who comes later is asked what is still open, and sees that the call waits", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world([[bash("make")], "done"], { unattended: "wait" })
      const watcher = yield* host.connect(sessionID)
      const conversation = yield* watcher.use(Conversation, { key: conversationKey(sessionID, "c1") })
      yield* conversation.ready
      const { inputID } = yield* host.session.prompt({ sessionID, prompt: { text: "go" } })
      const waiting = conversation.view.changes.pipe(
        Stream.filter((view) => view.turn?.tools[0]?.status === "waiting"),
        Stream.runHead
      )
      expect(Option.getOrThrow(yield* waiting).turn?.tools[0]?.waitingOn).toBe("permissions")
      yield* person(host, sessionID, () => Effect.succeed({ decision: "once" }))
      expect(yield* host.session.wait(sessionID, inputID)).toMatchObject({ status: "done" })
      expect(ran).toEqual(["bash make"])
    }).pipe(Effect.scoped))

  it.live("an interrupt while the dialog is open ends the call and remembers nothing", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* world([[bash("make")], [bash("make")], "done"], { unattended: "wait" })
      const opened = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<ApprovalResponse>()
      const { asked } = yield* person(host, sessionID, () =>
        Effect.andThen(Deferred.succeed(opened, undefined), Deferred.await(answer)))
      const { inputID } = yield* host.session.prompt({ sessionID, prompt: { text: "go" } })
      yield* Deferred.await(opened)
      yield* host.session.interrupt(sessionID)
      expect(yield* host.session.wait(sessionID, inputID)).toMatchObject({ status: "unanswered", reason: "aborted" })
      yield* Deferred.succeed(answer, { decision: "once" })
      expect(yield* host.ask(sessionID, "again")).toBe("done")
      expect(asked).toHaveLength(2)
      expect(ran).toEqual(["bash make"])
      expect(yield* codes(host, sessionID)).toEqual(["aborted", null])
    }).pipe(Effect.scoped))
})
