/**
 * The tools of a location: a fold of what plugins contribute, and the materializations that generations make of it.
 *
 * The same manifest gives the same result, byte for byte: tools are sorted by name, declarations are hashed over all
 * that a model is told. A materialization never changes; it keeps the code that it offered, and knows whether it is
 * still current.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import type {
  ContributionEntry,
  ContributionFault,
  ContributionRegistration,
  Contributor
} from "../contribution/index.ts"
import { Contribution } from "../contribution/index.ts"
import type { JsonValue } from "../json/index.ts"
import { Location } from "../location/index.ts"
import type { DraftedTool, DraftState, ToolDraft, ToolListing } from "./draft.ts"
import { listing, sorted, toolDraft } from "./draft.ts"
import type {
  AcceptedCall,
  Materialization,
  MaterializeOptions,
  RefusedCall,
  ToolDeclaration,
  ToolSource
} from "./materialization.ts"
import { settle } from "./settle.ts"

export interface ToolRegistryService extends ToolSource {
  /** Adds a transform of a contributor until the scope closes or it is unregistered. */
  readonly transform: (
    contributor: Contributor,
    change: (draft: ToolDraft) => void
  ) => Effect.Effect<ContributionRegistration, never, Scope.Scope>
  /** Adds and takes out transforms in one step; for hosts. */
  readonly replace: (change: {
    readonly remove: ReadonlyArray<ContributionEntry<ToolDraft>>
    readonly add: ReadonlyArray<ContributionEntry<ToolDraft>>
  }) => Effect.Effect<void>
  readonly reload: Effect.Effect<void>
  readonly list: Effect.Effect<ReadonlyArray<ToolListing>>
  /** Transforms that are left out now, and why. */
  readonly faults: Effect.Effect<ReadonlyArray<ContributionFault>>
}

/** The tools of one location. */
export class ToolRegistry extends Context.Service<ToolRegistry, ToolRegistryService>()("@bezel/core/ToolRegistry") {
  static readonly layer: Layer.Layer<ToolRegistry, never, Location> = Layer.effect(
    ToolRegistry,
    Effect.andThen(Location, Effect.suspend(() => makeToolRegistry()))
  )
}

/** A registry outside any location: for tests, and for a harness on its own. */
export const makeToolRegistry = (
  options?: { readonly onFault?: (fault: ContributionFault) => void }
): Effect.Effect<ToolRegistryService> =>
  Effect.gen(function*() {
    const tools = yield* Contribution.make<DraftState, ToolDraft, Offer>({
      name: "tools",
      empty: () => new Map(),
      draft: toolDraft,
      finish: (state) => offerOf(sorted(state)),
      ...(options?.onFault === undefined ? {} : { onFault: options.onFault })
    })
    return {
      transform: tools.transform,
      replace: tools.replace,
      reload: tools.reload,
      faults: tools.faults,
      list: Effect.map(tools.current, (offer) => [...offer.values()].map(({ drafted }) => listing(drafted))),
      materialize: (options) => Effect.map(tools.current, (offer) => materialize(offer, options, tools.currentUnsafe))
    }
  })

/** A tool as it is offered now. */
interface OfferedTool {
  readonly drafted: DraftedTool
  readonly declaration: ToolDeclaration
}

/** All tools, sorted by name. */
type Offer = ReadonlyMap<string, OfferedTool>

const offerOf = (tools: ReadonlyArray<DraftedTool>): Offer =>
  new Map(tools.map((drafted) => [drafted.name, { drafted, declaration: declare(drafted) }]))

const declare = ({ arguments: args, name, owner, tool }: DraftedTool): ToolDeclaration => ({
  name,
  plugin: owner.plugin,
  version: owner.version,
  hash: createHash("sha256")
    .update(canonical([owner.plugin, owner.version, name, tool.description, args.inputSchema, tool.replay]))
    .digest("hex")
})

const materialize = (all: Offer, options: MaterializeOptions, current: () => Offer): Materialization => {
  const isOffered = (name: string) =>
    !(Object.hasOwn(options.enabled, name) && options.enabled[name] === false) && !options.denied.includes(name)
  const offered: Offer = new Map([...all].filter(([name]) => isOffered(name)))
  const refuse = (code: RefusedCall["code"], message: string) => ({ refused: { code, message } })
  const accept: Materialization["accept"] = (name, args) => {
    const found = offered.get(name)
    if (found === undefined) {
      return all.has(name)
        ? refuse(
          "not_offered",
          `The tool "${name}" is not available here. Available tools: ${listed([...offered.keys()])}.`
        )
        : refuse("unknown_tool", unknownTool(name, [...offered.keys()]))
    }
    const decoded = found.drafted.arguments.decode(name, args)
    if ("problem" in decoded) return refuse("invalid_arguments", decoded.problem)
    const { tool } = found.drafted
    try {
      const permission = tool.permission?.(decoded.input) ?? { access: name, subjects: [] }
      return {
        accepted: { name, declaration: found.declaration, tool, input: decoded.input, args: decoded.args, permission }
      }
    } catch (defect) {
      return refuse(
        "invalid_arguments",
        `The tool "${name}" cannot say what these arguments would touch: ${String(defect)}.`
      )
    }
  }
  const fresh = (call: AcceptedCall): RefusedCall | null => {
    const now = current().get(call.name)?.declaration
    if (now !== undefined && now.hash === call.declaration.hash) return null
    return {
      code: "stale_tool",
      message: now === undefined
        ? `The tool "${call.name}" has been removed since it was offered, so this call was not run.`
        : `The tool "${call.name}" has been replaced since it was offered, so this call was not run. Its new description comes with the next request; call it again by that.`
    }
  }
  return {
    definitions: [...offered.values()].map(({ drafted }) => ({
      name: drafted.name,
      description: drafted.tool.description,
      inputSchema: drafted.arguments.inputSchema
    })),
    accept,
    fresh,
    settle
  }
}

const unknownTool = (name: string, names: ReadonlyArray<string>): string => {
  const near = names.filter((other) =>
    distance(name.toLowerCase(), other.toLowerCase()) <= Math.max(2, Math.floor(other.length / 3))
  )
  const hint = near.length === 0 ? "" : ` Did you mean ${near.slice(0, 3).map((other) => `"${other}"`).join(" or ")}?`
  return `There is no tool "${name.slice(0, 80)}".${hint} Available tools: ${listed(names)}.`
}

const listed = (names: ReadonlyArray<string>): string => names.length === 0 ? "none" : names.join(", ")

/** Edit distance; names are short, and a longer one is unlike all of them. */
const distance = (left: string, right: string): number => {
  if (left.length > 64) return left.length
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const change = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}

/** JSON with sorted keys, so that a hash does not depend on how a schema was written down. */
const canonical = (value: JsonValue): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  return `{${
    Object.entries(value).sort(([left], [right]) => left < right ? -1 : 1)
      .map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")
  }}`
}
