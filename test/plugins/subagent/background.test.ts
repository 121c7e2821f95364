/** Sub-agents that work in the background: what begins them goes on, and is told of their answer once. */
import { call, run, say, testSessionHost, testSessions } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { eventually } from "../../eventually.ts"
import { children, resultsIn, started, task, viewOf, world } from "./world.ts"

const texts = (request: { readonly messages: ReadonlyArray<unknown> } | undefined) => JSON.stringify(request?.messages)

describe("a sub-agent in the background", () => {
  it.live("lets its parent go on, shows while it works, and wakes it with its answer", () =>
    Effect.gen(function*() {
      const finish = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("long", { background: true })], "meanwhile", "now I know"],
        long: [[run(Deferred.await(finish)), say("it is blue")]]
      })
      expect(yield* host.ask(id, "go")).toBe("meanwhile")
      const [child] = yield* children(host, id)
      expect(resultsIn(model.requests.findLast((one) => texts(one).includes("works in the background")))).toMatchObject(
        [
          { isFailure: false, result: expect.stringContaining(child?.id ?? "no child") }
        ]
      )
      const view = yield* viewOf(host, id)
      expect(Object.values(view.value?.tasks ?? {})).toMatchObject([
        { kind: "subagent.background", status: { sessionID: child?.id, description: "do long", agent: "build" } }
      ])
      yield* Deferred.succeed(finish, undefined)
      yield* eventually(() => Object.keys(view.value?.tasks ?? {}).length === 0)
      yield* host.session.wait(id)
      expect(yield* host.session.finalText(id)).toBe("now I know")
      expect(model.requests.at(-1)?.messages.at(-1)).toMatchObject({
        role: "user",
        content: [{ text: 'The sub-agent in the background for "do long" has answered:\n\nit is blue' }]
      })
      // A notice, not something that a person has said.
      yield* eventually(() => view.value?.turn === null)
      expect(view.value?.entries.map(({ kind }) => kind).slice(-2)).toEqual(["bezel.notice", "bezel.assistant"])
    }).pipe(Effect.scoped))

  it.live("waits with its answer for the end of the step where its parent is busy, and begins no turn of its own", () =>
    Effect.gen(function*() {
      const finish = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [
          [task("long", { background: true })],
          [run(Deferred.await(finish)), call("touch", { name: "a" })],
          "all of it"
        ],
        long: ["it is blue"]
      }, { unattended: "deny" })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      const view = yield* viewOf(host, id)
      yield* eventually(() => model.requests.length === 3 && Object.keys(view.value?.tasks ?? {}).length === 0)
      yield* Deferred.succeed(finish, undefined)
      yield* host.session.wait(id)
      expect(yield* host.session.finalText(id)).toBe("all of it")
      expect(texts(model.requests.at(-1)).split("it is blue")).toHaveLength(2)
      expect(model.requests).toHaveLength(4)
    }).pipe(Effect.scoped))

  it.live("keeps its parent's session open where nobody holds it", () =>
    Effect.gen(function*() {
      const finish = yield* Deferred.make<void>()
      const told = yield* Deferred.make<void>()
      const { host, id } = yield* world({
        go: [[task("long", { background: true })], "meanwhile", [started(told), say("now I know")]],
        long: [[run(Deferred.await(finish)), say("it is blue")]]
      })
      yield* host.ask(id, "go")
      // Longer than a session stays open for nothing.
      yield* Effect.sleep("800 millis")
      yield* Deferred.succeed(finish, undefined)
      yield* Deferred.await(told)
      yield* eventually(() => Effect.runSync(host.session.active).length === 0)
      expect((yield* host.session.get(id)).status).toBe("idle")
    }).pipe(Effect.scoped))

  it.live("goes on when the turn that began it is interrupted", () =>
    Effect.gen(function*() {
      const finish = yield* Deferred.make<void>()
      const working = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("long", { background: true })], [started(working), run(Effect.never)], "end"],
        long: [[run(Deferred.await(finish)), say("it is blue")]]
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(working)
      yield* host.session.interrupt(id, "enough")
      yield* Deferred.succeed(finish, undefined)
      const view = yield* viewOf(host, id)
      yield* eventually(() => view.value !== undefined && Object.keys(view.value.tasks).length === 0)
      // Who has interrupted has the next word: it is told, and nothing begins by itself.
      expect(view.value?.entries.at(-1)).toMatchObject({ kind: "bezel.notice" })
      expect(view.value?.turn).toBeNull()
      const asked = model.requests.length
      yield* host.ask(id, "and?")
      expect(model.requests).toHaveLength(asked + 1)
      expect(texts(model.requests.at(-1))).toContain("has answered")
    }).pipe(Effect.scoped))

  it.live("is ended by its parent alone, which is told so", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world({
        go: [
          [task("long", { background: true })],
          (request) => [
            call("subagent_stop", { session: /in session (\w+)/.exec(texts(request))?.[1] ?? "" }),
            call("subagent_stop", { session: "ses_other" })
          ],
          "stopped",
          "told"
        ],
        long: [[run(Effect.never)]]
      })
      expect(yield* host.ask(id, "go")).toBe("stopped")
      expect(resultsIn(model.requests.findLast((one) => texts(one).includes("subagent_stop")))).toMatchObject([
        { isFailure: false, result: "It is being ended." },
        { isFailure: true, result: expect.stringContaining("ses_other is no sub-agent of this session") }
      ])
      const view = yield* viewOf(host, id)
      yield* eventually(() => view.value !== undefined && Object.keys(view.value.tasks).length === 0)
      yield* host.session.wait(id)
      expect(texts(model.requests.at(-1))).toContain("gave no answer")
    }).pipe(Effect.scoped))

  it.live("keeps its parent's session open also after a crash, where that is only resumed", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = (yield* testSessionHost([])).location.directory
      const id = yield* Effect.scoped(Effect.gen(function*() {
        const working = yield* Deferred.make<void>()
        const first = yield* world({
          go: [[task("long", { background: true })], "meanwhile"],
          long: [[started(working), run(Effect.never)]]
        }, { sessions, directory: place })
        yield* first.host.ask(first.id, "go")
        yield* Deferred.await(working)
        return first.id
      }))
      const finish = yield* Deferred.make<void>()
      const told = yield* Deferred.make<void>()
      const second = yield* world({
        go: [[started(told), say("now I know")]],
        long: [[run(Deferred.await(finish)), say("it is blue")]]
      }, { sessions, directory: place, sessionID: id })
      yield* second.host.session.resume(id)
      // Longer than a session stays open for nothing.
      yield* Effect.sleep("800 millis")
      yield* Deferred.succeed(finish, undefined)
      yield* Deferred.await(told)
      yield* second.host.session.wait(id)
      expect(yield* second.host.session.finalText(id)).toBe("now I know")
    }).pipe(Effect.scoped))

  it.live("is found again after a crash, goes on, and tells its answer once", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = (yield* testSessionHost([])).location.directory
      const scope = yield* Scope.make()
      const id = yield* Scope.provide(
        Effect.gen(function*() {
          const working = yield* Deferred.make<void>()
          const first = yield* world({
            go: [[task("long", { background: true })], "meanwhile"],
            long: [[started(working), run(Effect.never)]]
          }, { sessions, directory: place })
          yield* first.host.ask(first.id, "go")
          yield* Deferred.await(working)
          return first.id
        }),
        scope
      )
      yield* Scope.close(scope, Exit.void)
      const second = yield* world({ go: ["now I know"], long: ["it is blue"] }, {
        sessions,
        directory: place,
        sessionID: id
      })
      yield* second.host.session.resume(id)
      const view = yield* viewOf(second.host, id)
      yield* eventually(() => view.value !== undefined && Object.keys(view.value.tasks).length === 0)
      yield* second.host.session.wait(id)
      expect(yield* second.host.session.finalText(id)).toBe("now I know")
      expect(texts(second.model.requests.at(-1)).split("has answered")).toHaveLength(2)
      expect(yield* children(second.host, id)).toHaveLength(1)
    }).pipe(Effect.scoped))
})
