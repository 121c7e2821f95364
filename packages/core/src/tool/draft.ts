/**
 * The draft of a location's tools: what `ctx.tool.transform` changes, and the state behind it.
 *
 * A draft is replayed from empty for every rebuild (see `contribution`), so nothing here undoes anything. Throwing
 * takes out the transform that did it, and only that: a bad name, a schema that no model can be told, a wrap of an
 * absent tool.
 */
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Contributor } from "../contribution/index.ts"
import type { ToolArguments } from "./schema.ts"
import { toolArguments } from "./schema.ts"
import type { Tool, ToolCall, ToolFailure, ToolResult } from "./tool.ts"

/** What a tool does with decoded arguments. */
export type ToolExecute = (input: unknown, call: ToolCall) => Effect.Effect<ToolResult, ToolFailure>

export interface ToolListing {
  readonly name: string
  readonly plugin: string
  readonly description: string
  /** True if its calls name the access that permission rules match by themselves; else that is the tool's name. */
  readonly namesAccess: boolean
  /** Plugins whose tool of this name was replaced, in order. */
  readonly replaced: ReadonlyArray<string>
  /** Plugins that wrap it, innermost first. */
  readonly wrappedBy: ReadonlyArray<string>
}

export interface ToolDraft {
  /** Adds a tool, or replaces the one of that name together with its wraps. Names are `[a-zA-Z0-9_-]{1,64}`. */
  readonly set: (name: string, tool: Tool) => void
  /** Puts code around what the tool does; a later wrap is further out. The tool must be there. */
  readonly wrap: (name: string, wrap: (next: ToolExecute) => ToolExecute) => void
  /** Takes a tool out; nothing happens if it is absent. */
  readonly remove: (name: string) => void
  /** What is there at this point, by name. */
  readonly list: () => ReadonlyArray<ToolListing>
}

/** One tool of a draft. */
export interface DraftedTool {
  readonly name: string
  readonly owner: Contributor
  readonly tool: Tool
  readonly arguments: ToolArguments
  readonly replaced: ReadonlyArray<string>
  readonly wrappedBy: ReadonlyArray<string>
}

export type DraftState = Map<string, DraftedTool>

/** The face of the state for one contributor. */
export const toolDraft = (state: DraftState, contributor: Contributor): ToolDraft => ({
  set: (name, tool) => {
    checkName(name)
    // A plugin in plain JavaScript has nobody else who tells it.
    if (!isTool(tool)) {
      throw new Error(
        `tool "${name}" is not what tool({ description, input, execute }) makes, with a text, a Schema and a function`
      )
    }
    const args = toolArguments(tool)
    if (Result.isFailure(args)) throw new Error(`tool "${name}" cannot be offered to a model, ${args.failure}`)
    const before = state.get(name)
    state.set(name, {
      name,
      owner: contributor,
      tool,
      arguments: args.success,
      replaced: before === undefined ? [] : [...before.replaced, before.owner.plugin],
      wrappedBy: []
    })
  },
  wrap: (name, wrap) => {
    const before = state.get(name)
    if (before === undefined) throw new Error(`there is no tool "${name}" to wrap; there are: ${namesOf(state)}`)
    state.set(name, {
      ...before,
      tool: { ...before.tool, execute: wrap(before.tool.execute) },
      wrappedBy: [...before.wrappedBy, contributor.plugin]
    })
  },
  remove: (name) => {
    state.delete(name)
  },
  list: () => sorted(state).map(listing)
})

export const listing = (drafted: DraftedTool): ToolListing => ({
  name: drafted.name,
  plugin: drafted.owner.plugin,
  description: drafted.tool.description,
  namesAccess: drafted.tool.permission !== null,
  replaced: drafted.replaced,
  wrappedBy: drafted.wrappedBy
})

/** By name, in code unit order: the same on every machine. */
export const sorted = (state: DraftState): ReadonlyArray<DraftedTool> =>
  [...state.values()].sort((left, right) => left.name < right.name ? -1 : left.name > right.name ? 1 : 0)

const isTool = ({ description, execute, executionMode, input }: Tool): boolean =>
  typeof description === "string" && Schema.isSchema(input) && typeof execute === "function" &&
  executionMode !== undefined

const checkName = (name: string): void => {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw new Error(
      `"${name}" is not a tool name: letters, digits, "_" and "-", 1 to 64 of them, is what providers take`
    )
  }
  // Such names would be members of every object that is indexed by tool names.
  if (name in Object.prototype) throw new Error(`"${name}" is reserved and cannot name a tool`)
}

const namesOf = (state: DraftState): string =>
  state.size === 0 ? "none" : sorted(state).map(({ name }) => name).join(", ")
