/**
 * Tools of the program that Bezel is embedded in, as a plugin: a transform of each location's tools, of those that are up now
 * and of those that come later.
 */
import { Plugin } from "@bezel/core/host"
import type { Tool } from "@bezel/core/tool"
import * as Effect from "effect/Effect"

export interface ProgramTools {
  readonly plugin: Plugin
  /** Adds a tool everywhere, in place of one of that name; the result takes it away again. */
  readonly register: (name: string, tool: Tool) => Effect.Effect<Effect.Effect<void>>
}

export const makeProgramTools = (): ProgramTools => {
  const tools = new Map<string, Tool>()
  const locations = new Set<Effect.Effect<void>>()
  const changed = Effect.suspend(() => Effect.forEach([...locations], (reload) => reload, { discard: true }))
  return {
    plugin: Plugin.define({
      id: "bezel.program",
      session: (ctx) =>
        Effect.gen(function*() {
          yield* ctx.tool.transform((draft) => {
            for (const [name, tool] of tools) draft.set(name, tool)
          })
          const { reload } = ctx.tool
          yield* Effect.acquireRelease(
            Effect.sync(() => locations.add(reload)),
            () => Effect.sync(() => locations.delete(reload))
          )
        })
    }),
    register: (name, tool) =>
      Effect.gen(function*() {
        tools.set(name, tool)
        yield* changed
        return Effect.suspend(() => {
          if (tools.get(name) !== tool) return Effect.void
          tools.delete(name)
          return changed
        })
      })
  }
}
