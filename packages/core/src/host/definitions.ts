/**
 * Definitions that plugins contribute by name: agents, commands and skills. They are data here; what one does is the business
 * of the feature that reads them. Many plugins shape one result, which is replayed in manifest order whenever one of them comes
 * or goes.
 */
import * as Effect from "effect/Effect"
import { Contribution, type Contributions } from "../contribution/index.ts"
import type { JsonValue } from "../json/index.ts"
import type { ThinkingLevel } from "../model/index.ts"

/** A prompt, a choice of tools and a model under one name. */
export interface AgentDefinition {
  /** When to use it; models read this too. */
  readonly description?: string
  /** Added in front of the system message of its conversations. */
  readonly prompt?: string
  /** Tools by name: `false` hides one. Unnamed ones are offered. */
  readonly tools?: { readonly [name: string]: boolean }
  /** `provider/model`. */
  readonly model?: string
  readonly thinking?: ThinkingLevel
  /** As in the settings; they only take away from what the location allows. */
  readonly permissions?: { readonly [access: string]: JsonValue }
}

/** A prompt with places for arguments, written behind a slash. */
export interface CommandDefinition {
  readonly description: string
  /** What it takes, for people: `[BRANCH]`. */
  readonly argument?: string
  /** With `$ARGUMENTS`, `$1`, … for what was typed. */
  readonly template: string
  readonly agent?: string
  /** `provider/model`. */
  readonly model?: string
}

/** Instructions for a particular task, read when they are needed. */
export interface SkillDefinition {
  /** When to use it. */
  readonly description: string
  /** Absolute path of a folder with a `SKILL.md`, whose text is what the model gets. */
  readonly folder: string
}

/** The kinds, by the name that a context has for them. */
export interface Definitions {
  readonly agent: AgentDefinition
  readonly command: CommandDefinition
  readonly skill: SkillDefinition
}

/** One definition of the result. */
export interface Defined<D> {
  readonly name: string
  /** Who has set or changed it last. */
  readonly plugin: string
  readonly definition: D
}

/** Valid until the transform that it is given to returns. */
export interface DefinitionDraft<D> {
  readonly names: () => ReadonlyArray<string>
  readonly get: (name: string) => D | undefined
  /** One of the same name is replaced. */
  readonly set: (name: string, definition: D) => void
  /** Throws where there is none of that name. */
  readonly update: (name: string, change: (definition: D) => D) => void
  readonly remove: (name: string) => void
}

/** The definitions of one kind in a location; the same array until something changes. */
export type DefinitionRegistry<D> = Contributions<DefinitionDraft<D>, ReadonlyArray<Defined<D>>>

const makeRegistry = <D>(kind: string): Effect.Effect<DefinitionRegistry<D>> =>
  Contribution.make<Map<string, Defined<D>>, DefinitionDraft<D>, ReadonlyArray<Defined<D>>>({
    name: kind,
    empty: () => new Map(),
    draft: (state, { plugin }) => ({
      names: () => [...state.keys()],
      get: (name) => state.get(name)?.definition,
      set: (name, definition) => void state.set(name, { name, plugin, definition }),
      update: (name, change) => {
        const before = state.get(name)
        if (before === undefined) throw new Error(`there is no definition "${name}" among the ${kind} to change`)
        state.set(name, { name, plugin, definition: change(before.definition) })
      },
      remove: (name) => void state.delete(name)
    }),
    finish: (state) => [...state.values()].sort((left, right) => left.name < right.name ? -1 : 1)
  })

/** The registries of one location, by kind. */
export type DefinitionRegistries = { readonly [Kind in keyof Definitions]: DefinitionRegistry<Definitions[Kind]> }

export const makeDefinitions: Effect.Effect<DefinitionRegistries> = Effect.all({
  agent: makeRegistry<AgentDefinition>("agents"),
  command: makeRegistry<CommandDefinition>("commands"),
  skill: makeRegistry<SkillDefinition>("skills")
})
