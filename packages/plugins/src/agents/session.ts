/**
 * The session facet of agents: gives each conversation the prompt, the tools and the model of its agent, and narrows what it
 * may do.
 *
 * An agent's permissions are judged beside those of the location and only take away. They also hold for the sub-agents that
 * its conversations start, whatever agent those have: who may not write cannot have somebody write. A conversation whose
 * agent is not there (any more) runs nothing and asks no model; it says so.
 */
import type { AgentDefinition, Defined, SessionContext } from "@bezel/core/host"
import type { OpenSession } from "@bezel/core/session"
import { AppPaths, projectFolders } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import { useIfThere } from "../optional/index.ts"
import { type NarrowingSource, PermissionGate, type PermissionGateShape } from "../permissions/contract.ts"
import { unknownToOnlyRead } from "../permissions/read-only.ts"
import { deniesTool, flatten } from "../permissions/rules.ts"
import { AgentSettings, AgentsSetting } from "../settings/contract.ts"
import {
  type Agent,
  AgentList,
  Agents,
  AgentsOptions,
  type AgentsShape,
  defaultAgent,
  UnknownAgent
} from "./contract.ts"
import { agentFiles } from "./file.ts"
import { openSessions } from "./open-sessions.ts"
import { type AgentSource, collectAgents, type CollectedAgents, hiddenTools } from "./registry.ts"

type Context = Pick<
  SessionContext,
  | "agent"
  | "options"
  | "location"
  | "settings"
  | "namespace"
  | "hooks"
  | "onSession"
  | "session"
  | "tool"
  | "turns"
  | "provide"
  | "use"
  | "find"
  | "onActivate"
>

/** A chain of sub-agents longer than this is one that does not end. */
const maxAncestors = 64

const readSources = Effect.fnUntraced(function*(ctx: Pick<Context, "options" | "location" | "settings">) {
  const options = yield* Schema.decodeUnknownEffect(AgentsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const configDirectory = options.configDirectory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.config)), AppPaths.layer))
  const folders = options.trusted === true ? yield* projectFolders(ctx.location.directory) : []
  const inSettings = Object.entries(ctx.settings.get(AgentsSetting)).map(([name, agent]) => ({
    name,
    source: "settings",
    agent: Result.succeed(agent)
  }))
  return [
    ...yield* agentFiles(path.join(configDirectory, "agents")),
    ...inSettings,
    ...(yield* Effect.forEach(
      folders,
      (folder) => agentFiles(path.join(folder, ".bezel", "agents"), folders[0] ?? folder)
    )).flat()
  ]
})

/** An agent that a plugin contributes, as strictly checked as one of the settings. */
const contributed = ({ definition, name, plugin }: Defined<AgentDefinition>): AgentSource => ({
  name,
  source: `plugin ${plugin}`,
  agent: Result.mapError(
    Schema.decodeUnknownResult(AgentSettings, { onExcessProperty: "error" })(definition),
    ({ message }) => message.replace(/\s+/g, " ")
  )
})

/** Those of plugins, under what the user and the project say of the same names. */
const makeCollected = (ctx: Pick<Context, "agent">, sources: ReadonlyArray<AgentSource>) => {
  let of: ReadonlyArray<Defined<AgentDefinition>> | null = null
  let collected = collectAgents(sources)
  return Effect.map(ctx.agent.list, (all) => {
    if (all === of) return collected
    of = all
    return collected = collectAgents([...all.map(contributed), ...sources])
  })
}

const makeShape = (collected: Effect.Effect<CollectedAgents>): AgentsShape => ({
  list: Effect.map(collected, ({ agents }) => [...agents.values()]),
  get: (name) =>
    Effect.flatMap(collected, ({ agents, broken }) => {
      const wanted = name ?? defaultAgent
      const found = agents.get(wanted)
      if (found !== undefined) return Effect.succeed(found)
      const message = broken.get(wanted) ??
        `There is no agent ${JSON.stringify(wanted.slice(0, 80))} here; there are ${[...agents.keys()].join(", ")}.`
      return Effect.fail(new UnknownAgent({ agent: wanted, message }))
    })
})

/** The facet for session hosts. */
export const session = Effect.fn("agents/session")(function*(ctx: Context) {
  const collected = makeCollected(ctx, yield* readSources(ctx))
  const agents = makeShape(collected)
  yield* ctx.provide(Agents, agents)
  yield* ctx.provide(AgentList, {
    list: () =>
      Effect.map(agents.list, (all) => all.map(({ description, name, source }) => ({ name, description, source })))
  })
  let gate: PermissionGateShape | null = null
  // Once those of all plugins are there.
  yield* ctx.onActivate(Effect.gen(function*() {
    const { agents: all, broken } = yield* collected
    yield* Effect.forEach(broken.values(), (problem) => Effect.logWarning(problem), { discard: true })
    gate = yield* useIfThere(ctx, PermissionGate)
    if (gate === null) {
      return yield* Effect.logWarning(
        "There is no gate over tools here, so what agents may not do is only hidden from them: commands are not looked at."
      )
    }
    for (const { name, permissions, source, tools } of all.values()) {
      for (const { message } of yield* gate.unknown([...Object.keys(permissions), ...Object.keys(tools)])) {
        yield* Effect.logWarning(
          `What the agent ${JSON.stringify(name)} (${source}) says of a tool has no effect: ${message}`
        )
      }
    }
  }))
  const open = yield* openSessions(ctx)

  yield* ctx.turns.configure({
    agent: (name) =>
      Effect.gen(function*() {
        const agent = yield* Effect.option(agents.get(name))
        const tools = yield* ctx.tool.list
        const all = tools.map((tool) => tool.name)
        // Without its agent a conversation is offered nothing; it does not get as far as a request.
        if (agent._tag === "None") return { enabled: {}, denied: all, prompt: null }
        const { model, permissions, prompt, readOnly, thinking } = agent.value
        const rules = flatten(permissions)
        return {
          enabled: {},
          denied: [
            ...tools.filter((tool) => gate?.denies(tool) === true || deniesTool(rules, tool)).map(({ name }) => name),
            ...hiddenTools(agent.value, all),
            ...(readOnly ? unknownToOnlyRead(tools, permissions) : [])
          ],
          prompt,
          model,
          ...(thinking === null ? {} : { thinking })
        }
      })
  })

  const namespace = yield* ctx.namespace("agents", {})
  const named = (sessionID: string, conversationID: string) =>
    Effect.flatMap(
      conversationOf(open, sessionID, conversationID),
      (config) => Effect.forEach(config, (name) => agents.get(name))
    )
  yield* ctx.hooks(namespace, "generation", {
    beforeRequest: (_request, api) =>
      Effect.match(named(api.sessionID, api.conversationID), {
        onSuccess: () => undefined,
        onFailure: (error) => ({ end: `${error.message} Choose another agent to go on.` })
      })
  })

  const narrowings: NarrowingSource = ({ conversationID, sessionID }) =>
    Effect.gen(function*() {
      const found: Array<Agent> = [...yield* named(sessionID, conversationID)]
      let child = sessionID
      for (let depth = 0; depth < maxAncestors; depth++) {
        const { parentID } = yield* ctx.session.get(child)
        if (parentID === null) break
        const names = yield* ancestorAgents(ctx, open, parentID)
        found.push(...yield* Effect.forEach(names, (name) => agents.get(name)))
        child = parentID
      }
      return found.map(({ name, permissions, readOnly }) => ({ name, rules: permissions, readOnly }))
    })
  yield* ctx.onActivate(Effect.suspend(() => gate === null ? Effect.void : gate.narrow(narrowings)))
})

/**
 * The names of the agents that a conversation answers to: its own, and, where a call of the session owns it, the main
 * conversation's.
 */
const conversationOf = Effect.fnUntraced(
  function*(open: ReadonlyMap<string, OpenSession>, sessionID: string, conversationID: string) {
    const session = open.get(sessionID)
    const conversation = session === undefined ? null : yield* session.conversation(conversationID)
    if (session === undefined || conversation === null) {
      return yield* new UnknownAgent({
        agent: "",
        message: `The conversation ${conversationID} of session ${sessionID} is not open, so its agent is not known.`
      })
    }
    const { view } = yield* conversation.snapshot
    return view.conversation.owner === null
      ? [view.config.agent]
      : [view.config.agent, (yield* session.main.snapshot).view.config.agent]
  }
)

/** Of a session that waits for a sub-agent: the agents of all its conversations that are at work. */
const ancestorAgents = Effect.fnUntraced(
  function*(ctx: Pick<Context, "session">, open: ReadonlyMap<string, OpenSession>, sessionID: string) {
    const session = open.get(sessionID)
    if (session === undefined) return [(yield* ctx.session.get(sessionID)).agent]
    const names = new Set<string | null>([(yield* session.main.snapshot).view.config.agent])
    for (const { id } of yield* session.tree) {
      const conversation = yield* session.conversation(id)
      if (conversation !== null && (yield* conversation.busy)) {
        names.add((yield* conversation.snapshot).view.config.agent)
      }
    }
    return [...names]
  }
)
