/** Agents, commands and skills that plugins contribute: many contributors, one result, which the features use. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { ServiceDirectory } from "@bezel/core/service"
import { scriptedModel, temporaryDirectory, testSessionHost } from "@bezel/core/testing"
import { ToolRegistry } from "@bezel/core/tool"
import { Agents } from "@bezel/plugins/agents/contract"
import { session as agents } from "@bezel/plugins/agents/session"
import { PromptCommands } from "@bezel/plugins/commands/contract"
import { session as commands } from "@bezel/plugins/commands/session"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { Skills } from "@bezel/plugins/skills/contract"
import { session as skills } from "@bezel/plugins/skills/session"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { eventually } from "../../matrix/harness.ts"

describe("definitions of a location", () => {
  it.live("are replayed in manifest order, changed and removed by later plugins, and told by name", () =>
    Effect.gen(function*() {
      const seen = yield* Deferred.make<unknown>()
      const contributing = (id: string, change: Parameters<SessionContext["agent"]["transform"]>[0]) =>
        Plugin.define({ id, session: (ctx) => Effect.asVoid(ctx.agent.transform(change)) })
      const host = yield* testSessionHost([
        Plugin.define({
          id: "test.reader",
          session: (ctx) => ctx.onActivate(Effect.flatMap(ctx.agent.list, (all) => Deferred.succeed(seen, all)))
        }),
        contributing("test.first", (draft) => {
          draft.set("reviewer", { description: "reviews" })
          draft.set("spare", {})
        }),
        contributing("test.broken", (draft) => {
          draft.set("half", {})
          draft.update("nobody", (agent) => agent)
        }),
        contributing("test.second", (draft) => {
          draft.update("reviewer", (agent) => ({ ...agent, prompt: "Be brief." }))
          draft.remove("spare")
        })
      ])
      expect(yield* Deferred.await(seen)).toEqual([
        { name: "reviewer", plugin: "test.second", definition: { description: "reviews", prompt: "Be brief." } }
      ])
      expect((yield* host.plugins).map(({ state }) => state)).toEqual(Array.from({ length: 5 }, () => "loaded"))
    }).pipe(Effect.scoped))

  it.live("become agents, commands and skills, under what the user has of the same name, and go with their plugin", () =>
    Effect.gen(function*() {
      const config = yield* temporaryDirectory
      const folder = join(config, "plugin", "release")
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, "SKILL.md"), "---\ndescription: x\n---\nTag it, then push.\n")
      mkdirSync(join(config, "agents"), { recursive: true })
      writeFileSync(join(config, "agents", "reviewer.md"), "---\ndescription: Mine.\n---\n")
      let registration: Effect.Effect<void> = Effect.void
      const contributor = Plugin.define({
        id: "acme.review",
        session: (ctx) =>
          Effect.gen(function*() {
            yield* ctx.agent.transform((draft) => {
              draft.set("reviewer", { description: "Reviews.", prompt: "Review it.", tools: { bash: false } })
              draft.set("wrong", { model: "none" })
            })
            const { unregister } = yield* ctx.command.transform((draft) =>
              draft.set("review", {
                description: "Review a branch",
                template: "Review $1, and be brief.",
                agent: "reviewer"
              })
            )
            yield* ctx.skill.transform((draft) => draft.set("release", { description: "For releases", folder }))
            registration = unregister
          })
      })
      const options = { configDirectory: config }
      const host = yield* testSessionHost([
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.agents", session: agents }),
        Plugin.define({ id: "bezel.commands", session: commands }),
        Plugin.define({ id: "bezel.skills", session: skills }),
        contributor
      ], {
        model: scriptedModel([]),
        entries: {
          "bezel.permissions": { options: { stateDirectory: config } },
          "bezel.agents": { options },
          "bezel.commands": { options },
          "bezel.skills": { options }
        }
      })
      const directory = Context.get(host.services, ServiceDirectory)
      const found = yield* directory.useLocal(Agents)
      expect(yield* found.get("reviewer")).toMatchObject({
        description: "Mine.",
        prompt: "Review it.",
        tools: { bash: false },
        source: expect.stringMatching(/^plugin acme\.review, .*reviewer\.md$/)
      })
      expect((yield* Effect.flip(found.get("wrong"))).message).toContain("in plugin acme.review cannot be used")
      const prompts = yield* directory.useLocal(PromptCommands)
      expect((yield* prompts.found).commands).toMatchObject([
        { name: "review", argument: "[ARGUMENTS]", source: "plugin", file: "plugin acme.review" }
      ])
      expect(yield* prompts.expand("review", "main")).toEqual({
        text: "Review main, and be brief.",
        agent: "reviewer",
        model: null
      })
      const loaded = yield* directory.useLocal(Skills)
      expect((yield* loaded.found).skills).toMatchObject([{ name: "release", folder, source: "plugin" }])
      const tools = Context.get(host.services, ToolRegistry)
      expect((yield* tools.list).map(({ name }) => name)).toContain("skill")
      yield* registration
      yield* eventually(() => Effect.runSync(prompts.found).commands.length === 0)
      expect((yield* Effect.flip(prompts.expand("review", "main"))).code).toBe("unknown_command")
    }).pipe(Effect.scoped))
})
