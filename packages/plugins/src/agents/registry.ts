/**
 * All agents of a location by name: the built-in ones, those of the user's folder, of the settings, and of the project's
 * folder, in this order. A later one of the same name adds to the earlier: it may say more or something else, but a tool that
 * was taken away stays away, a `deny` stays, and who only reads goes on to only read.
 */
import { parseModelRef } from "@bezel/core/model"
import * as Result from "effect/Result"
import { mergePermissions, type PermissionRules } from "../permissions/contract.ts"
import type { AgentSettings } from "../settings/contract.ts"
import { builtinAgents } from "./builtin.ts"
import { type Agent, hidesTool, mergeTools } from "./contract.ts"

export interface AgentSource {
  readonly name: string
  readonly source: string
  /** Or what is wrong with it, in a few words. */
  readonly agent: Result.Result<AgentSettings, string>
}

const agentName = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u

const fresh = (name: string): Agent => ({
  name,
  description: "",
  source: "",
  prompt: null,
  tools: {},
  model: null,
  thinking: null,
  permissions: {},
  readOnly: false
})

/** What `mergePermissions` gives of rules is rules. */
const rulesOf = (earlier: PermissionRules, later: PermissionRules): PermissionRules =>
  mergePermissions(earlier, later) as PermissionRules

const addTo = (before: Agent, { agent, name, source }: AgentSource): Result.Result<Agent, string> => {
  if (Result.isFailure(agent)) return Result.fail(agent.failure)
  const said = agent.success
  const model = said.model === undefined ? before.model : parseModelRef(said.model)
  if (model !== null && "error" in model) return Result.fail(`its model is none: ${model.error}`)
  return Result.succeed({
    name,
    description: said.description ?? before.description,
    source: before.source === "" ? source : `${before.source}, ${source}`,
    prompt: said.prompt ?? before.prompt,
    tools: mergeTools(before.tools, said.tools ?? {}),
    model,
    thinking: said.thinking ?? before.thinking,
    permissions: rulesOf(before.permissions, said.permissions ?? {}),
    readOnly: before.readOnly
  })
}

export interface CollectedAgents {
  readonly agents: ReadonlyMap<string, Agent>
  /** Why an agent cannot be used, one sentence each, by name. */
  readonly broken: ReadonlyMap<string, string>
}

/** Folds the sources over the built-in agents. */
export const collectAgents = (sources: ReadonlyArray<AgentSource>): CollectedAgents => {
  const agents = new Map(builtinAgents.map((agent) => [agent.name, agent]))
  const broken = new Map<string, string>()
  for (const source of sources) {
    const { name } = source
    const added = agentName.test(name)
      ? addTo(agents.get(name) ?? fresh(name), source)
      : Result.fail("a name may have letters, digits, dots, dashes and underscores, at most 64")
    if (Result.isSuccess(added)) agents.set(name, added.success)
    else broken.set(name, `The agent ${JSON.stringify(name)} in ${source.source} cannot be used: ${added.failure}.`)
  }
  // What a broken part would have taken away is not known, so nothing of the agent is used.
  for (const name of broken.keys()) agents.delete(name)
  return { agents, broken }
}

/** Of these tools, those that the agent is not offered. */
export const hiddenTools = (agent: Agent, tools: ReadonlyArray<string>): ReadonlyArray<string> =>
  tools.filter((name) => hidesTool(agent.tools, name))
