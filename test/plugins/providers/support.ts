/** What the tests of the provider wires share: models of both wires at a server on loopback. */
import type { ModelInfo, ModelPart, ModelRequest, ToolDefinition } from "@bezel/core/model"
import { type Model, ModelError } from "@bezel/core/model"
import { Effect, Exit, Redacted, Stream } from "effect"
import type { Scope } from "effect"
import {
  type ModelServer,
  type ScriptedReply,
  startModelServer
} from "../../../packages/core/src/testing/model-server.ts"
import {
  anthropicPackage,
  openAICompatiblePackage,
  openModel
} from "../../../packages/plugins/src/providers/ai-sdk-packages.ts"

export const wires = ["openai", "anthropic"] as const
export type Wire = (typeof wires)[number]

const info = (change: Partial<ModelInfo> = {}): ModelInfo => ({
  provider: "local",
  model: "m",
  name: "M",
  contextWindow: null,
  maxOutput: null,
  reasoning: false,
  images: false,
  cost: null,
  ...change
})

export const tool = (name: string): ToolDefinition => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: "object", properties: {}, additionalProperties: true }
})

export const request = (change: Partial<ModelRequest> = {}): ModelRequest => ({
  messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
  tools: [tool("read")],
  thinking: "off",
  maxOutput: null,
  sessionID: "ses_1",
  ...change
})

export const secretKey = "sk-very-secret-0123456789"

export const server = (...script: ReadonlyArray<ScriptedReply>): Effect.Effect<ModelServer, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.promise(() => startModelServer(...script)), (open) => Effect.promise(() => open.close()))

const connection = (wire: Wire, baseURL: string) => ({
  id: "local",
  name: "Local",
  package: wire === "openai" ? openAICompatiblePackage : anthropicPackage,
  baseURL,
  key: { kind: "key" as const, value: Redacted.make(secretKey) },
  headers: { "x-team": Redacted.make("team-secret-value") }
})

export const model = (wire: Wire, baseURL: string, change: Partial<ModelInfo> = {}): Effect.Effect<Model, ModelError> =>
  openModel(connection(wire, baseURL), info(change))

/** A model whose answers are what `fetch` gives. */
export const modelOver = (wire: Wire, fetch: typeof globalThis.fetch): Effect.Effect<Model, ModelError> =>
  openModel({ ...connection(wire, "http://local.invalid/v1"), fetch }, info())

export interface Collected {
  readonly parts: ReadonlyArray<ModelPart>
  readonly error: ModelError | null
}

/** All parts of one answer, and the error that ended it. */
export const collect = (one: Model, asked: ModelRequest = request()): Effect.Effect<Collected> =>
  Effect.gen(function*() {
    const parts: Array<ModelPart> = []
    const exit = yield* Effect.exit(Stream.runForEach(one.stream(asked), (part) => Effect.sync(() => parts.push(part))))
    if (Exit.isSuccess(exit)) return { parts, error: null }
    const error = exit.cause.reasons.map((reason) => reason._tag === "Fail" ? reason.error : null).find((found) =>
      found !== null
    )
    if (!(error instanceof ModelError)) {
      throw new Error("The stream ended by something else than a ModelError", { cause: exit.cause })
    }
    return { parts, error }
  })

/** One request against one scripted answer. */
export const ask = (
  wire: Wire,
  reply: ScriptedReply,
  asked?: ModelRequest,
  change?: Partial<ModelInfo>
): Effect.Effect<Collected> =>
  Effect.scoped(Effect.gen(function*() {
    const { url } = yield* server(reply)
    return yield* collect(yield* Effect.orDie(model(wire, url, change)), asked)
  }))

export const textOf = (parts: ReadonlyArray<ModelPart>): string =>
  parts.map((part) => part.type === "text-delta" ? part.delta : "").join("")

export const reasoningOf = (parts: ReadonlyArray<ModelPart>): string =>
  parts.map((part) => part.type === "reasoning-delta" ? part.delta : "").join("")

export const callsOf = (parts: ReadonlyArray<ModelPart>) => parts.filter((part) => part.type === "tool-call")

export const lastOf = (parts: ReadonlyArray<ModelPart>): ModelPart | undefined => parts.at(-1)

/** Server-sent events of raw JSON, in the wire's order. */
export const sse = (...events: ReadonlyArray<unknown>): string =>
  events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")

/** A chunk of an OpenAI chat completion. */
export const chunk = (delta: unknown, finish: string | null = null): unknown => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }]
})
