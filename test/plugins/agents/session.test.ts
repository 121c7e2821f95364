import { Plugin, PluginKernel } from "@bezel/core/host"
import { SessionRuntime } from "@bezel/core/session"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import { call, emptySettings, scriptedModel, temporaryDirectory } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { AgentList, type AgentsOptions } from "@bezel/plugins/agents"
import { session as agents } from "@bezel/plugins/agents/session"
import { type PermissionRules, PermissionsKey } from "@bezel/plugins/permissions"
import { type AgentSettings, AgentsSetting } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Schema } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { bash, codes, person, world } from "../permissions/world.ts"

const settingsOf = (
  rules: PermissionRules,
  named: { readonly [name: string]: AgentSettings }
): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A =>
    (key.name === PermissionsKey.name ? rules : key.name === AgentsSetting.name ? named : key.default) as A
})

/** The agents plugin with these options in place of a manifest's. */
const withOptions = (options: AgentsOptions) =>
  Plugin.define({ id: "bezel.agents", session: (ctx) => agents({ ...ctx, options }) })

/** In place of the built-in one. */
const delegate = Plugin.define({
  id: "bezel.delegate",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "subagent",
        tool({
          description: "Has a sub-agent do it",
          input: Schema.Struct({ agent: Schema.NullOr(Schema.String) }),
          execute: ({ agent }, run) =>
            Effect.gen(function*() {
              const child = yield* ctx.session.create({ parentID: run.sessionID, agent })
              const { inputID } = yield* ctx.session.prompt({ sessionID: child.id, prompt: { text: "do it" } })
              yield* ctx.session.wait(child.id, inputID)
              return "done"
            }).pipe(Effect.orDie)
        })
      )
    ))
})

/** A tool of a plugin that comes behind all built-in ones. */
const late = Plugin.define({
  id: "test.late",
  session: (ctx) =>
    Effect.asVoid(
      ctx.tool.transform((draft) =>
        draft.set(
          "late",
          tool({ description: "late", input: Schema.Struct({}), execute: () => Effect.succeed("late") })
        )
      )
    )
})

const agentWorld = (
  script: Parameters<typeof world>[0],
  options: {
    readonly rules?: PermissionRules
    readonly agents?: { readonly [name: string]: AgentSettings }
    readonly options?: AgentsOptions
    readonly yes?: boolean
    readonly directory?: string
  } = {}
) =>
  Effect.gen(function*() {
    const configDirectory = yield* temporaryDirectory
    return yield* world(script, {
      settings: settingsOf(options.rules ?? {}, options.agents ?? {}),
      options: { yes: options.yes === true, stateDirectory: configDirectory },
      extra: [delegate],
      later: [withOptions({ configDirectory, ...options.options }), late],
      ...(options.directory === undefined ? {} : { directory: options.directory })
    })
  })

const everything: PermissionRules = { "*": "allow", write: "allow", bash: "allow" }

describe("an agent", () => {
  it.live("gives its conversations a prompt, and takes tools from them, also those of later plugins", () =>
    Effect.gen(function*() {
      const { host, model, sessionID } = yield* agentWorld(["hi", "hi"], {
        agents: { own: { prompt: "You are own.", tools: { late: false }, permissions: { write: "deny" } } }
      })
      const own = yield* Effect.orDie(host.session.create({ agent: "own" }))
      yield* host.ask(own.id, "go")
      yield* host.ask(sessionID, "go")
      const [first, second] = model.requests
      expect(first?.tools.map((each) => each.name)).toEqual(["bash", "read", "subagent", "web"])
      expect(JSON.stringify(first?.messages)).toContain("You are own.")
      expect(second?.tools.map((each) => each.name)).toEqual(["bash", "late", "read", "subagent", "web", "write"])
      expect(JSON.stringify(second?.messages)).not.toContain("You are own.")
    }).pipe(Effect.scoped))

  it.live("offers no tool that a rule denies, whichever plugin has it", () =>
    Effect.gen(function*() {
      const { host, model, sessionID } = yield* agentWorld(["hi"], { rules: { late: "deny", write: "deny" } })
      yield* host.ask(sessionID, "go")
      expect(model.requests[0]?.tools.map((each) => each.name)).toEqual(["bash", "read", "subagent", "web"])
    }).pipe(Effect.scoped))

  it.live("brings its model where the conversation has none of its own", () =>
    Effect.gen(function*() {
      const used: Array<string> = []
      const { info, stream } = scriptedModel(["a", "b", "c"])
      const provider = Plugin.define({
        id: "test.provider",
        session: (ctx) =>
          Effect.asVoid(ctx.provider.transform((draft) => {
            draft.set("p", {
              id: "p",
              name: "p",
              models: [],
              openEnded: true,
              availability: { ready: true },
              open: (id) =>
                Effect.succeed({
                  info: { ...info, provider: "p", model: id },
                  stream: (request) => {
                    used.push(id)
                    return stream(request)
                  }
                })
            })
            draft.setDefault({ provider: "p", model: "default" })
          }))
      })
      const { host } = yield* world([], {
        settings: settingsOf({}, { fast: { model: "p/fast" } }),
        later: [withOptions({ configDirectory: yield* temporaryDirectory }), provider]
      })
      const fast = yield* Effect.orDie(host.session.create({ agent: "fast" }))
      yield* host.ask(fast.id, "1")
      yield* Effect.orDie(host.session.configure(fast.id, { model: { provider: "p", model: "own" } }))
      yield* host.ask(fast.id, "2")
      yield* Effect.orDie(host.session.configure(fast.id, { model: null, agent: null }))
      yield* host.ask(fast.id, "3")
      expect(used).toEqual(["fast", "own", "default"])
    }).pipe(Effect.scoped))

  it.live("that is not there runs nothing and asks no model, and says which there are", () =>
    Effect.gen(function*() {
      const { host, model } = yield* agentWorld(["never"], { agents: { broken: { model: "gpt" } } })
      const lost = yield* Effect.orDie(host.session.create({ agent: "lost" }))
      expect(yield* host.ask(lost.id, "go")).toContain(
        'There is no agent "lost" here; there are build, plan, review, explore. Choose another agent'
      )
      const broken = yield* Effect.orDie(host.session.create({ agent: "broken" }))
      expect(yield* host.ask(broken.id, "go")).toContain('The agent "broken" in settings cannot be used')
      expect(model.requests).toHaveLength(0)
      yield* Effect.orDie(host.session.configure(lost.id, { agent: "build" }))
      expect(yield* host.ask(lost.id, "go")).toBe("never")
    }).pipe(Effect.scoped))

  it.live("is listed for people with where it is from", () =>
    Effect.gen(function*() {
      const { host, sessionID } = yield* agentWorld([], { agents: { own: { description: "mine" } } })
      const { connection } = yield* person(host, sessionID, () => Effect.succeed("declined"))
      const list = yield* (yield* connection.use(AgentList)).list()
      expect(list.map(({ name }) => name)).toEqual(["build", "plan", "review", "explore", "own"])
      expect(list.at(-1)).toEqual({ name: "own", description: "mine", source: "settings" })
    }).pipe(Effect.scoped))

  it.live("of a project's folder counts only when the project is trusted, and then down from the git root", () =>
    Effect.gen(function*() {
      const root = fs.realpathSync(yield* temporaryDirectory)
      const directory = path.join(root, "packages", "a")
      for (const [folder, name] of [[root, "outer"], [directory, "inner"]] as const) {
        fs.mkdirSync(path.join(folder, ".bezel", "agents"), { recursive: true })
        fs.writeFileSync(path.join(folder, ".bezel", "agents", `${name}.md`), `You are ${name}.`)
      }
      fs.mkdirSync(path.join(root, ".git"))
      const names = (options: AgentsOptions) =>
        Effect.gen(function*() {
          const { host, sessionID } = yield* agentWorld([], { options, directory })
          const { connection } = yield* person(host, sessionID, () => Effect.succeed("declined"))
          return (yield* (yield* connection.use(AgentList)).list()).slice(4).map(({ name }) => name)
        }).pipe(Effect.scoped)
      expect(yield* names({})).toEqual([])
      expect(yield* names({ trusted: true })).toEqual(["outer", "inner"])
    }).pipe(Effect.scoped))
})

describe("an agent's permissions", () => {
  it.live("take away what the rules, --yes and a person allow, and give nothing", () =>
    Effect.gen(function*() {
      const calls = [bash("make"), bash("rm x"), call("write", { path: "a" }), call("web", {})]
      const { host, ran } = yield* agentWorld([calls, "done"], {
        rules: { bash: { "*": "allow" } },
        yes: true,
        agents: { own: { permissions: { bash: { "rm *": "deny" }, write: { a: "deny" }, web: "allow" } } }
      })
      const own = yield* Effect.orDie(host.session.create({ agent: "own" }))
      yield* host.ask(own.id, "go")
      expect(ran.sort()).toEqual(["bash make", "web"])

      const plain = yield* agentWorld([[call("web", {}), bash("make")], "done"], {
        agents: { own: { permissions: { web: "allow", "*": "allow", bash: "allow" } } }
      })
      const ownPlain = yield* Effect.orDie(plain.host.session.create({ agent: "own" }))
      yield* plain.host.ask(ownPlain.id, "go").pipe(Effect.timeoutOption("200 millis"))
      expect(plain.ran).toEqual([])
    }).pipe(Effect.scoped))

  it.live("may ask where the rules allow, and an answer for the session settles it", () =>
    Effect.gen(function*() {
      const { host, ran } = yield* agentWorld([[bash("make")], "one", [bash("make")], "two"], {
        rules: everything,
        agents: { own: { permissions: { bash: { "*": "ask", "git *": "allow" } } } }
      })
      const own = yield* Effect.orDie(host.session.create({ agent: "own" }))
      const { asked } = yield* person(host, own.id, () => Effect.succeed({ decision: "session" }))
      yield* host.ask(own.id, "1")
      yield* host.ask(own.id, "2")
      expect(asked).toMatchObject([{ reasons: ['the rule "bash" (the agent own) asks about the command "make"'] }])
      expect(ran).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.live("deny what was always allowed in another session of the project", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* agentWorld([[bash("make")], "one", [bash("make")], "two"], {
        agents: { own: { permissions: { bash: { "make*": "deny" } } } }
      })
      yield* person(host, sessionID, () => Effect.succeed({ decision: "project" }))
      yield* host.ask(sessionID, "1")
      const own = yield* Effect.orDie(host.session.create({ agent: "own" }))
      yield* host.ask(own.id, "2")
      expect(ran).toEqual(["bash make"])
      expect(yield* codes(host, own.id)).toEqual(["denied_by_rule"])
    }).pipe(Effect.scoped))

  it.live("hold for the sub-agents that it starts, and theirs, whatever agent those have", () =>
    Effect.gen(function*() {
      const nested = [call("subagent", { agent: null })]
      const { host, ran } = yield* agentWorld(
        [nested, nested, [call("write", { path: "a" }), bash("make"), bash("ls")], "deep", "child", "done"],
        { rules: everything }
      )
      const plan = yield* Effect.orDie(host.session.create({ agent: "plan" }))
      expect(yield* host.ask(plan.id, "go")).toBe("done")
      expect(ran).toEqual(["bash ls"])
    }).pipe(Effect.scoped))

  it.live("are those of the agent that the conversation has now", () =>
    Effect.gen(function*() {
      const { host, ran, sessionID } = yield* agentWorld([[bash("make")], "one", [bash("make")], "two"], {
        rules: everything
      })
      yield* Effect.orDie(host.session.configure(sessionID, { agent: "plan" }))
      yield* host.ask(sessionID, "1")
      expect(ran).toEqual([])
      yield* Effect.orDie(host.session.configure(sessionID, { agent: "build" }))
      yield* host.ask(sessionID, "2")
      expect(ran).toEqual(["bash make"])
    }).pipe(Effect.scoped))
})

describe("a reload", () => {
  it.live.each(["bezel.permissions", "bezel.agents"])(
    "of %s loosens nothing in a session that is open",
    (plugin) =>
      Effect.gen(function*() {
        const { host, ran } = yield* agentWorld(
          [[bash("make")], "one", [bash("make")], "two", [bash("ls")], "three"],
          { rules: everything, yes: true }
        )
        const plan = yield* Effect.orDie(host.session.create({ agent: "plan" }))
        yield* Effect.orDie(Context.get(host.services, SessionRuntime).open(plan.id))
        yield* host.ask(plan.id, "1")
        yield* Context.get(host.services, PluginKernel).reload({ plugins: [plugin] })
        yield* host.ask(plan.id, "2")
        expect(ran).toEqual([])
        yield* host.ask(plan.id, "3")
        expect(ran).toEqual(["bash ls"])
        expect(yield* codes(host, plan.id)).toEqual(["denied_by_rule", "denied_by_rule", null])
      }).pipe(Effect.scoped)
  )
})

describe("the plan agent", () => {
  it.live("is offered no tool that writes, and refused every command that may, whatever is allowed", () =>
    Effect.gen(function*() {
      const { host, model, ran, results } = yield* agentWorld(
        [[bash("git log"), bash("ls > x"), bash("npm test"), call("write", { path: "a" })], "done"],
        { rules: everything, yes: true }
      )
      const plan = yield* Effect.orDie(host.session.create({ agent: "plan" }))
      yield* host.ask(plan.id, "go")
      expect(model.requests[0]?.tools.map((each) => each.name)).not.toContain("write")
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("you cannot change anything")
      expect(ran).toEqual(["bash git log"])
      expect(results().map(({ result }) => String(result)).slice(1)).toEqual([
        expect.stringContaining('The agent plan only reads, and a redirection would write "x"'),
        expect.stringContaining('The agent plan only reads, and the command "npm test" is not known to only read'),
        expect.stringContaining("not available here")
      ])
    }).pipe(Effect.scoped))

  it.live("is offered no tool of a plugin from outside either, unless it is allowed by name", () =>
    Effect.gen(function*() {
      const offered = (agents: { readonly [name: string]: AgentSettings }) =>
        Effect.gen(function*() {
          const { host, model, results } = yield* agentWorld([[call("late", {})], "done"], {
            rules: everything,
            yes: true,
            agents
          })
          const plan = yield* Effect.orDie(host.session.create({ agent: "plan" }))
          yield* host.ask(plan.id, "go")
          return [
            model.requests[0]?.tools.some(({ name }) => name === "late"),
            results().map(({ result }) => String(result))
          ]
        }).pipe(Effect.scoped)
      expect(yield* offered({})).toEqual([false, [expect.stringContaining("not available here")]])
      expect(yield* offered({ plan: { permissions: { late: "allow" } } })).toEqual([true, ["late"]])
    }))
})
