/**
 * Agents as others see them: what one is, how to find one by name, and the list that people choose from.
 */
import type { ModelRef, ThinkingLevel } from "@bezel/core/model"
import { LocalService, RemoteService } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { accessOfTool, coversAccess, type PermissionRules } from "../permissions/contract.ts"

/** The agent of a conversation that names none. */
export const defaultAgent = "build"

/** A prompt, a choice of tools, a model and permissions under one name. */
export interface Agent {
  readonly name: string
  /** When to use it; models read this too. */
  readonly description: string
  /** Where it is from: `built-in`, `settings`, a plugin or the file; later ones that added to it behind. */
  readonly source: string
  /** Added in front of the system message; `null`: nothing. */
  readonly prompt: string | null
  /** Tools by name: `false` takes one away, also from those that another tool would add; `*` is for all that are not named. */
  readonly tools: { readonly [name: string]: boolean }
  /** For conversations without a model of their own. */
  readonly model: ModelRef | null
  readonly thinking: ThinkingLevel | null
  /** They only take away from what the rules of the location allow. */
  readonly permissions: PermissionRules
  /** It may change no file, whatever the rules say. */
  readonly readOnly: boolean
}

/** Whether what is said of tools takes this one away; a name may speak of many. */
export const hidesTool = (said: Agent["tools"], name: string): boolean => {
  const access = Object.hasOwn(accessOfTool, name) ? accessOfTool[name] : undefined
  const exact = [name, access].filter((one) => one !== undefined && Object.hasOwn(said, one))
  if (exact.length > 0) return exact.some((one) => one !== undefined && said[one] === false)
  // Of those that speak of many, the one that says most of the name.
  const [ruled] = Object.keys(said).filter((one) => one === "*" || coversAccess(one, name))
    .sort((left, right) => right.length - left.length)
  return ruled !== undefined && said[ruled] === false
}

/** What is said later of tools, without lifting what was taken away before. */
export const mergeTools = (earlier: Agent["tools"], later: Agent["tools"]): Agent["tools"] => ({
  ...earlier,
  ...Object.fromEntries(Object.entries(later).map(([name, offered]) => [name, offered && !hidesTool(earlier, name)]))
})

export class UnknownAgent extends Schema.TaggedError<UnknownAgent>()("UnknownAgent", {
  agent: Schema.String,
  message: Schema.String
}) {}

/** The agents of a location. Those of plugins come and go with them; the others do not change while it is up. */
export interface AgentsShape {
  /** By name; built-in ones first. */
  readonly list: Effect.Effect<ReadonlyArray<Agent>>
  /** `null` is the default agent. */
  readonly get: (name: string | null) => Effect.Effect<Agent, UnknownAgent>
}

export const Agents: LocalService<AgentsShape> = LocalService.make("bezel.agents.local")

/** The same for people at a client. */
export class AgentList extends RemoteService.make("bezel.agents")({
  methods: {
    list: {
      success: Schema.Array(
        Schema.Struct({ name: Schema.String, description: Schema.String, source: Schema.String })
      )
    }
  }
}) {}

/** Options of the plugin in the manifest. */
export const AgentsOptions = Schema.Struct({
  /** Where the user's `agents/` is; default: the config folder of this user. */
  configDirectory: Schema.optionalKey(Schema.String),
  /** The project is trusted, so `.bezel/agents/` in it counts; default: it does not. */
  trusted: Schema.optionalKey(Schema.Boolean)
})
export type AgentsOptions = typeof AgentsOptions.Type
