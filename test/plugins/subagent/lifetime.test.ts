import { Plugin, PluginKernel } from "@bezel/core/host"
import { call, run, say, testSessionHost, testSessions } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Scope } from "effect"
import { drained } from "../../eventually.ts"
import { children, finished, resultsIn, started, task, world } from "./world.ts"

describe("an interrupt of the parent", () => {
  it.live("ends the sub-agent and its own, and nothing of them starts afterwards", () =>
    Effect.gen(function*() {
      const deep = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("1")]],
        1: [[task("2")]],
        2: [[started(deep), run(Effect.never)]]
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(deep)
      yield* host.session.interrupt(id)
      expect(yield* finished(host, id)).toMatchObject([{ code: "aborted" }])
      expect(yield* host.session.active).toEqual([])
      const [child] = yield* children(host, id)
      expect(yield* finished(host, child?.id ?? "")).toMatchObject([{ code: "aborted" }])
      yield* Effect.forEach([id, child?.id ?? ""], (each) => host.session.resume(each))
      yield* drained
      expect(model.requests).toHaveLength(3)
    }).pipe(Effect.scoped))

  it.live("between the prompt and the work on it takes the prompt back", () =>
    Effect.gen(function*() {
      const prompted = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({ go: [[task("1")]], 1: ["never said"] }, {
        resume: Effect.andThen(Deferred.succeed(prompted, undefined), Effect.never)
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(prompted)
      yield* host.session.interrupt(id)
      const [child] = yield* children(host, id)
      yield* host.session.resume(child?.id ?? "")
      yield* host.session.wait(child?.id ?? "")
      expect(yield* host.session.finalText(child?.id ?? "")).toBe("")
      expect(model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("leaves nothing at work, whenever it comes", () =>
    Effect.gen(function*() {
      for (const delay of [0, 1, 2, 3, 5, 8, 13]) {
        const { host, id } = yield* world({ go: [[task("1")]], 1: [[run(Effect.sleep(5)), run(Effect.never)]] })
        yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
        yield* Effect.sleep(delay)
        yield* host.session.interrupt(id)
        for (const child of yield* children(host, id)) {
          yield* host.session.resume(child.id)
          yield* host.session.wait(child.id)
        }
        expect(yield* host.session.active).toEqual([])
      }
    }).pipe(Effect.scoped), 20_000)
})

describe("a reload of the plugin", () => {
  it.live("leaves the sub-agent at work, and the call finds it again", () =>
    Effect.gen(function*() {
      const working = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("long")], "top"],
        long: [[started(working), run(Deferred.await(finish)), say("the answer")]]
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(working)
      yield* Context.get(host.services, PluginKernel).reload({ plugins: ["bezel.subagent"] })
      yield* Deferred.succeed(finish, undefined)
      yield* host.session.wait(id)
      expect(yield* host.session.finalText(id)).toBe("top")
      expect(resultsIn(model.requests.at(-1))).toMatchObject([{ isFailure: false, result: "the answer" }])
      expect(yield* children(host, id)).toHaveLength(1)
      expect(model.requests).toHaveLength(3)
    }).pipe(Effect.scoped))
})

describe("after a crash", () => {
  const directory = Effect.map(testSessionHost([]), ({ location }) => location.directory)

  const crashing = <A, E>(use: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const value = yield* Scope.provide(use, scope)
      yield* Scope.close(scope, Exit.void)
      return value
    })

  it.live("the same call finds the same sub-agent, which goes on and was asked once", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = yield* directory
      const id = yield* crashing(Effect.gen(function*() {
        const working = yield* Deferred.make<void>()
        const first = yield* world(
          {
            go: [[task("long")]],
            long: [[call("subagent", { description: "d", prompt: "deep" })]],
            deep: [[started(working), run(Effect.never)]]
          },
          { sessions, directory: place }
        )
        yield* first.host.session.prompt({ sessionID: first.id, prompt: { text: "go" } })
        yield* Deferred.await(working)
        return first.id
      }))
      const second = yield* world(
        { go: ["top"], long: ["after all"], deep: ["deep too"] },
        { sessions, directory: place, sessionID: id }
      )
      const before = yield* children(second.host, id)
      expect(before).toHaveLength(1)
      yield* second.host.session.resume(id)
      yield* second.host.session.wait(id)
      expect(yield* second.host.session.finalText(id)).toBe("top")
      expect((yield* children(second.host, id)).map((child) => child.id)).toEqual(before.map((child) => child.id))
      const messages = yield* second.host.session.messages(before[0]?.id ?? "")
      expect(messages.messages.filter((message) => message.kind === "bezel.user")).toHaveLength(1)
      expect(resultsIn(second.model.requests.find((request) => JSON.stringify(request.messages).includes("after all"))))
        .toMatchObject([{ result: "after all" }])
    }).pipe(Effect.scoped))

  it.live("a sub-agent that had answered is not asked again", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = yield* directory
      const stuck = yield* Deferred.make<void>()
      const slow = (hold: boolean) =>
        Plugin.define({
          id: "test.slow",
          session: (ctx) =>
            Effect.gen(function*() {
              const namespace = yield* ctx.namespace("slow", {})
              yield* ctx.hooks(namespace, "tool", {
                afterTool: () => hold ? Effect.andThen(Deferred.succeed(stuck, undefined), Effect.never) : Effect.void
              })
            })
        })
      const id = yield* crashing(Effect.gen(function*() {
        const first = yield* world(
          { go: [[task("quick")]], quick: ["the answer"] },
          { sessions, directory: place, extra: [slow(true)] }
        )
        yield* first.host.session.prompt({ sessionID: first.id, prompt: { text: "go" } })
        yield* Deferred.await(stuck)
        return first.id
      }))
      const second = yield* world({ go: ["top"] }, { sessions, directory: place, sessionID: id, extra: [slow(false)] })
      yield* second.host.session.resume(id)
      yield* second.host.session.wait(id)
      expect(resultsIn(second.model.requests.at(-1))).toMatchObject([{ isFailure: false, result: "the answer" }])
      expect(second.model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))
})
