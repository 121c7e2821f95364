/** Calls of servers' tools across the death of a host: what waited goes on, what ran is not repeated. */
import { Plugin } from "@bezel/core/host"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testPresentation,
  testSessionHost,
  testSessions
} from "@bezel/core/testing"
import { McpSetting } from "@bezel/plugins/mcp"
import { session as mcp } from "@bezel/plugins/mcp/session"
import { Approval, PermissionsKey } from "@bezel/plugins/permissions"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, marks, program } from "./world.ts"

const settings = (folder: string): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A =>
    (key.name === McpSetting.name
      ? { test: { command: program("plain", folder) } }
      : key.name === PermissionsKey.name
      ? { test_wait: "allow" }
      : key.default) as A
})

const host = (
  script: ReadonlyArray<ScriptedTurn>,
  options: {
    readonly folder: string
    readonly directory: string
    readonly sessions: Effect.Success<typeof testSessions>
  }
) =>
  Effect.gen(function*() {
    const stateDirectory = yield* temporaryDirectory
    const model = scriptedModel(script)
    const made = yield* testSessionHost(
      [
        Plugin.define({ id: "bezel.mcp", version: "1", session: mcp }),
        Plugin.define({ id: "bezel.permissions", version: "1", session: permissions })
      ],
      {
        model,
        directory: options.directory,
        sessions: options.sessions,
        settings: settings(options.folder),
        entries: { "bezel.permissions": { options: { stateDirectory } } }
      }
    )
    const results = () => {
      const message = model.requests.at(-1)?.messages.findLast((each) => each.role === "tool")
      return message?.role === "tool" ? message.content : []
    }
    return { host: made, model, results }
  })

const places = Effect.gen(function*() {
  return {
    folder: yield* temporaryDirectory,
    directory: yield* temporaryDirectory,
    sessions: yield* testSessions
  }
})

describe("after the death of a host", () => {
  it.live("a call that waited for a person is made, with the tool that the server has again", () =>
    Effect.gen(function*() {
      const there = yield* places
      const id = yield* Effect.scoped(Effect.gen(function*() {
        const { host: first } = yield* host([[call("test_echo", { text: "later" })]], there)
        const { id } = yield* Effect.orDie(first.session.create({ title: "t" }))
        const asked = yield* Effect.promise(async () => {
          let tell: () => void = () => {}
          const said = new Promise<void>((resolve) => {
            tell = resolve
          })
          return { said, tell }
        })
        yield* testPresentation(first, {
          "test.person": (ctx) =>
            ctx.interactions.handle(Approval, () => {
              asked.tell()
              return Effect.never
            })
        }, id)
        yield* Effect.orDie(first.session.prompt({ sessionID: id, prompt: { text: "go" } }))
        yield* Effect.promise(() => asked.said)
        return id
      }))
      const { host: second, results } = yield* host(["done"], there)
      yield* testPresentation(second, {
        "test.person": (ctx) => ctx.interactions.handle(Approval, () => Effect.succeed({ decision: "once" }))
      }, id)
      yield* Effect.orDie(second.session.resume(id))
      yield* Effect.orDie(second.session.wait(id))
      expect(results()[0]).toMatchObject({ isFailure: false, result: '{"text":"later"}' })
    }).pipe(Effect.scoped))

  it.live("a call that ran is not repeated, and the model is told that nobody knows what it did", () =>
    Effect.gen(function*() {
      const there = yield* places
      const id = yield* Effect.scoped(Effect.gen(function*() {
        const { host: first } = yield* host([[call("test_wait", {})]], there)
        const { id } = yield* Effect.orDie(first.session.create({ title: "t" }))
        yield* Effect.orDie(first.session.prompt({ sessionID: id, prompt: { text: "go" } }))
        yield* eventually(() => marks(there.folder).includes("waiting"))
        return id
      }))
      const { host: second, model, results } = yield* host(["done"], there)
      yield* Effect.orDie(second.session.resume(id))
      yield* eventually(() => model.requests.length === 1)
      expect(results()[0]).toMatchObject({ isFailure: true, result: expect.stringContaining("It is unknown whether") })
      expect(marks(there.folder).filter((mark) => mark === "waiting")).toHaveLength(1)
    }).pipe(Effect.scoped))
})
