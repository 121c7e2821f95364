import { type Harness, type HarnessReport, type TaskApi, TaskKind } from "@bezel/core/harness"
import type { ModelInfo } from "@bezel/core/model"
import { MemorySession } from "@bezel/core/storage"
import type { Batch, Storage } from "@bezel/core/storage"
import { makeToolRegistry, tool, type ToolDraft, type ToolSource } from "@bezel/core/tool"
import { openHarness, type TurnOptions } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type ScriptedModel, scriptedModel, type ScriptedTurn } from "../../../packages/core/src/testing/model.ts"

/** Echoes its text; `slow` tools are made by the tests that need them. */
export const echo = tool({
  description: "Echoes text.",
  input: Schema.Struct({ text: Schema.String }),
  replay: "safe",
  execute: ({ text }) => Effect.succeed(text)
})

export const user = (text: string) => ({ content: [{ type: "text", text } as const] })

export interface Fixture {
  readonly harness: Harness
  readonly model: ScriptedModel
  readonly reports: Array<HarnessReport>
}

export const toolSource = (change: (draft: ToolDraft) => void): Effect.Effect<ToolSource, never, Scope.Scope> =>
  Effect.gen(function*() {
    const registry = yield* makeToolRegistry()
    yield* registry.transform({ plugin: "test", version: "1", order: 0 }, change)
    return registry
  })

/** Opens a harness over `storage`, in the scope of the test, without resuming it. */
export const open = (
  storage: Storage,
  script: ReadonlyArray<ScriptedTurn>,
  options: { readonly tools?: (draft: ToolDraft) => void } & Partial<Omit<TurnOptions, "tools">> = {},
  info: Partial<ModelInfo> = {}
): Effect.Effect<Fixture, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const model = scriptedModel(script, info)
    const reports: Array<HarnessReport> = []
    const { tools, ...rest } = options
    const source = yield* toolSource(tools ?? ((draft) => draft.set("echo", echo)))
    const harness = yield* openHarness(storage, {
      sessionID: "ses_test",
      models: model.source,
      tools: source,
      artifact: () => Effect.die(new Error("no artifacts in this test")),
      onReport: (report) => reports.push(report),
      ...rest
    })
    return { harness, model, reports }
  })

export const memory = (): MemorySession => new MemorySession()

/** Lets whatever can run without time passing do so. */
export const settle = Effect.gen(function*() {
  for (let n = 0; n < 80; n++) yield* Effect.yieldNow
})

/** A kind of task that runs one effect and ends with what it gives. */
export const simpleKind = (
  name: string,
  run: (api: { readonly taskID: string; readonly conversationID: string }) => Effect.Effect<string>,
  options: { readonly abort?: (api: SimpleApi) => Effect.Effect<void, { readonly message: string }> } = {}
) =>
  TaskKind.make(name, {
    input: Schema.Struct({}),
    checkpoint: Schema.Struct({ phase: Schema.Literal("none") }),
    slot: { schema: Schema.Struct({}), initial: {} },
    result: Schema.String,
    failure: Schema.Struct({ message: Schema.String }),
    initial: (_, api) => Effect.map(run(api), (result) => ({ done: () => ({ status: "completed", result } as const) })),
    phases: { none: () => Effect.succeed("retry" as const) },
    ...(options.abort === undefined ? {} : { abort: (_, api) => options.abort?.(api) ?? Effect.void })
  })

type SimpleApi = TaskApi<{ readonly phase: string }, unknown>

/** Storage whose commits can be watched, and held back. */
export const watched = (storage: Storage, before: (batch: Batch) => Effect.Effect<void>): Storage => ({
  ...storage,
  commit: (batch) => Effect.andThen(before(batch), storage.commit(batch))
})
