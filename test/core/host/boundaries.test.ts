/** What facets and clients can reach, exactly: a context offers what is written here, and a connection what tokens name. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { LocalService } from "@bezel/core/service"
import { run, say, scriptedModel, testCoordinator, testPresentation, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"

/** Names of members, of plain objects in it too. */
const members = (value: object, prefix = ""): ReadonlyArray<string> =>
  Object.entries(value).flatMap(([name, member]) =>
    typeof member === "object" && member !== null && Object.getPrototypeOf(member) === Object.prototype &&
      !Effect.isEffect(member)
      ? members(member, `${prefix}${name}.`)
      : [`${prefix}${name}`]
  ).sort()

const lifecycle = ["onActivate", "onDispose", "options", "own", "plugin", "plugins"]
const log = ["debug", "error", "info", "warning"].map((level) => `log.${level}`)
const services = ["events", "find", "observe", "provide", "provideMany", "state", "use"]
const clients = ["clients.changes", "clients.list"]

const contextOf = <Context extends object>() => {
  const seen = Deferred.makeUnsafe<ReadonlyArray<string>>()
  return {
    facet: (ctx: Context) => Effect.asVoid(Deferred.succeed(seen, members(ctx))),
    members: Deferred.await(seen)
  }
}

describe("a facet of", () => {
  it.live("a session host has sessions, registrations and its place; no harness, storage, registry or transport", () =>
    Effect.gen(function*() {
      const { facet, members } = contextOf()
      yield* testSessionHost([Plugin.define({ id: "test.looks", session: facet })])
      const all = yield* members
      const own = all.filter((name) => !/^(session|settings|job|location|upstream)\b/.test(name))
      expect(own).toEqual([
        ...lifecycle,
        ...log,
        ...services,
        ...clients,
        ...["agent", "command", "skill"].flatMap((kind) =>
          ["changes", "list", "reload", "transform"].map((member) => `${kind}.${member}`)
        ),
        "filesystem",
        "hooks",
        "intake",
        "interactions.relay",
        "interactions.request",
        "interactions.unattended",
        "models.resolve",
        "namespace",
        "onSession",
        "process.spawn",
        "providePerSession",
        "provider.list",
        "provider.reload",
        "provider.transform",
        "reverting",
        "section",
        "task",
        "tool.list",
        "tool.reload",
        "tool.transform",
        "turns.configure"
      ].sort())
      expect(all.filter((name) => name.startsWith("upstream"))).toEqual(["upstream.connection", "upstream.use"])
      // Closing, storage, reports of work and ids are the host's.
      expect(all.filter((name) => /close|storage|report|declare|suspend|exchang|mutat/i.test(name))).toEqual([])
    }).pipe(Effect.scoped))

  it.live("a coordinator has views of records and processes; no contents, no raw store, no killing", () =>
    Effect.gen(function*() {
      const { facet, members } = contextOf()
      yield* testCoordinator([Plugin.define({ id: "test.looks", coordinator: facet })])
      const fleet = {
        records: ["archive", "create", "get", "list", "remove", "rename", "switchAgent", "switchModel"],
        processes: ["attach", "changes", "start", "status", "stop"]
      }
      expect((yield* members).filter((name) => !name.startsWith("settings"))).toEqual([
        ...lifecycle,
        ...log,
        ...services,
        ...clients,
        ...Object.entries(fleet).flatMap(([part, names]) => names.map((name) => `fleet.${part}.${name}`))
      ].sort())
    }).pipe(Effect.scoped))

  it.live("a presentation has facades, interactions and what is shown; nothing of a session host", () =>
    Effect.gen(function*() {
      const { facet, members } = contextOf()
      const host = yield* testSessionHost([])
      yield* testPresentation(host, { "test.looks": facet })
      expect((yield* members).filter((name) => !name.startsWith("connection"))).toEqual([
        ...lifecycle,
        ...log,
        "interactions.handle",
        "observe",
        "provide",
        "reload",
        "session.changes",
        "session.current",
        "session.select",
        "use"
      ].sort())
    }).pipe(Effect.scoped))
})

describe("a client", () => {
  it.live("reaches the services that tokens name, and of local ones not even the names", () =>
    Effect.gen(function*() {
      const Vault = LocalService.make<{ readonly key: string }>("test.vault")
      const host = yield* testSessionHost([
        Plugin.define({ id: "test.vault", session: (ctx) => ctx.provide(Vault, { key: "sk-canary" }) })
      ])
      const client = yield* host.connect()
      expect(yield* client.catalogue).toEqual(["bezel.conversation", "bezel.plugins", "bezel.registries"])
    }).pipe(Effect.scoped))

  it.live("that stops waiting, or goes away, ends no turn: only an abort does", () =>
    Effect.gen(function*() {
      const [started, finish] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const model = scriptedModel([[
        run(Effect.asVoid(Deferred.succeed(started, undefined))),
        run(Deferred.await(finish)),
        say("done")
      ]])
      const host = yield* testSessionHost([], { model })
      const { id } = yield* host.session.create()
      const connection = yield* host.connect(id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
      const { inputID } = yield* conversation.send({ text: "go" })
      yield* Deferred.await(started)
      const waiting = yield* Effect.forkChild(conversation.wait({ inputID }))
      yield* Fiber.interrupt(waiting)
      yield* connection.drop
      expect(yield* host.session.active).toEqual([id])
      yield* Deferred.succeed(finish, undefined)
      expect(yield* host.session.wait(id, inputID)).toMatchObject({ status: "done" })
      const { messages } = yield* host.session.messages(id)
      expect(messages.map(({ kind }) => kind)).toEqual(["bezel.user", "bezel.assistant"])
    }).pipe(Effect.scoped))
})
