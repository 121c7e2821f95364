/**
 * The generations of plugins' code in one location, and how sessions get at it.
 *
 * A facet is one generation. Tools, wraps and models that it contributes run through here: each is counted as its plugin's
 * code for the session that runs it, and what was captured from an earlier generation (an offer that a model already has, a
 * chain that has begun) runs as the present one has it. So the code of a closed facet is never begun.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FacetScope } from "../kernel/index.ts"
import type { Model, ModelRequest, Provider, ProviderDraft, ProviderRegistryService } from "../model/index.ts"
import type { PluginCode } from "../session/index.ts"
import type { SettingsKey, SettingsReader } from "../settings/index.ts"
import type { ToolDraft, ToolExecute, ToolRegistryService } from "../tool/index.ts"
import { ToolFailure } from "../tool/index.ts"

type Wrap = (next: ToolExecute) => ToolExecute

/** What one facet has contributed that may be asked for after a reload, by its place among the facet's contributions. */
export interface Generation {
  readonly plugin: string
  readonly isPresent: () => boolean
  readonly isClosed: () => boolean
  readonly tools: Map<string, ToolExecute>
  readonly wraps: Map<string, Wrap>
  /** The settings that it has read. */
  readonly settings: Map<string, SettingsKey.Any>
  transforms: number
}

export interface GenerationParts {
  readonly code: PluginCode
  readonly tools: Pick<ToolRegistryService, "list">
  readonly providers: Pick<ProviderRegistryService, "resolve">
}

export interface Generations {
  /** The generation of a facet, until that is closed. */
  readonly add: (facet: Pick<FacetScope<never>, "bound" | "closed" | "entry">) => Generation
  /** Those that are visible. */
  readonly all: () => ReadonlyArray<Generation>
  /** A transform of tools as the generation contributes it. */
  readonly tools: (generation: Generation, change: (draft: ToolDraft) => void) => (draft: ToolDraft) => void
  readonly providers: (generation: Generation, change: (draft: ProviderDraft) => void) => (draft: ProviderDraft) => void
}

export const makeGenerations = ({ code, providers, tools }: GenerationParts): Generations => {
  const generations = new Set<Generation>()

  /** The newest that is visible. While code is exchanged nobody asks. */
  const present = (plugin: string) =>
    [...generations].findLast((generation) => generation.plugin === plugin && generation.isPresent())

  /** The generation that is there now, once what it contributes has been asked for; `null` if it is still this one. */
  const successor = (generation: Generation): Effect.Effect<Generation | undefined> | null => {
    const now = present(generation.plugin)
    return now === generation ? null : Effect.as(tools.list, now)
  }

  const followTool = (generation: Generation, name: string, execute: ToolExecute): ToolExecute => {
    generation.tools.set(name, execute)
    return (input, call) =>
      code.run(generation.plugin, () => {
        const next = successor(generation)
        if (next === null) return execute(input, call)
        return Effect.flatMap(next, (now) =>
          now?.tools.get(name)?.(input, call) ?? Effect.fail(
            new ToolFailure({ message: `The tool "${name}" has been removed since it was offered; it was not run.` })
          ))
      })
  }

  const followWrap = (generation: Generation, place: string, wrap: Wrap): Wrap => {
    generation.wraps.set(place, wrap)
    return (inner) => {
      const outer = wrap(inner)
      return (input, call) =>
        code.run(generation.plugin, () => {
          const next = successor(generation)
          if (next === null) return outer(input, call)
          return Effect.flatMap(next, (now) => (now?.wraps.get(place)?.(inner) ?? inner)(input, call))
        })
    }
  }

  const followModel = (generation: Generation, model: Model, provider: string): Model => {
    const ask = (request: (model: Model) => ReturnType<Model["stream"]>) =>
      code.stream(generation.plugin, () => {
        return successor(generation) === null
          ? request(model)
          : Stream.unwrap(Effect.map(providers.resolve({ provider, model: model.info.model }), request))
      })
    return {
      info: model.info,
      stream: (request) => ask((now) => now.stream(request)),
      ...(model.resume === undefined ? {} : {
        resume: (token: string, request: ModelRequest) =>
          ask((now) => now.resume?.(token, request) ?? now.stream(request))
      })
    }
  }

  const followProvider = (generation: Generation, provider: Provider): Provider => ({
    ...provider,
    open: (modelID) =>
      Effect.map(
        code.run(generation.plugin, () => provider.open(modelID)),
        (model) => followModel(generation, model, provider.id)
      )
  })

  return {
    add: (facet) => {
      for (const earlier of generations) if (earlier.isClosed()) generations.delete(earlier)
      const generation: Generation = {
        plugin: facet.entry.id,
        isPresent: () => facet.bound() && !facet.closed(),
        isClosed: facet.closed,
        tools: new Map(),
        wraps: new Map(),
        settings: new Map(),
        transforms: 0
      }
      generations.add(generation)
      return generation
    },
    all: () => [...generations].filter((generation) => generation.isPresent()),
    tools: (generation, change) => {
      const transform = generation.transforms++
      return (draft) => {
        let wraps = 0
        return change({
          set: (name, tool) => draft.set(name, { ...tool, execute: followTool(generation, name, tool.execute) }),
          wrap: (name, wrap) => draft.wrap(name, followWrap(generation, `${transform} ${name} ${wraps++}`, wrap)),
          remove: (name) => draft.remove(name),
          list: () => draft.list()
        })
      }
    },
    providers: (generation, change) => (draft) =>
      change({
        ids: () => draft.ids(),
        get: (id) => draft.get(id),
        has: (id) => draft.has(id),
        set: (id, provider) => draft.set(id, followProvider(generation, provider)),
        remove: (id) => draft.remove(id),
        update: (id, update) =>
          draft.update(id, (before) => {
            const after = update(before)
            return after.open === before.open ? after : followProvider(generation, after)
          }),
        setDefault: (ref) => draft.setDefault(ref)
      })
  }
}

/** The location's settings as one facet reads them: what it has read is remembered. */
export const readBy = (generation: Generation, settings: SettingsReader): SettingsReader => ({
  get: (key) => {
    generation.settings.set(key.name, key)
    return settings.get(key)
  },
  get skipped() {
    return settings.skipped
  },
  get sources() {
    return settings.sources
  },
  get warnings() {
    return settings.warnings
  }
})
