/** A server for tests: the real API on a real port, over session hosts in this process and storage on disk. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { Interaction } from "@bezel/core/service"
import { SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import {
  type ScriptedModel,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testGlobals
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { clientToolsSession } from "@bezel/plugins/client-tools"
import { inlineLocations, Placement } from "@bezel/server"
import { type HttpServerOptions, serveHttp } from "@bezel/server/http"
import { type Caller, Fleet, type FleetShape, type TokenScope } from "@bezel/server/serve"
import { Context, Effect, Layer, Logger, Schema } from "effect"
import type { Scope } from "effect"
import { mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { offerTool } from "../../../packages/cli/src/host/offered-lists.ts"
import { fleetLayer } from "../../../packages/server/src/serve/make-fleet.ts"
import { makeRoll } from "../../../packages/server/src/serve/roll.ts"

export const tokens = { read: "token-of-a-reader", prompt: "token-of-a-prompter", admin: "token-of-an-owner" } as const

const callers = new Map<string, Caller>(
  Object.entries(tokens).map(([scope, token]) => [token, { name: scope, scope: scope as TokenScope }])
)

export const Ask = Interaction.make("test.ask")({
  request: Schema.Struct({ text: Schema.String }),
  response: Schema.Struct({ yes: Schema.Boolean }),
  unattended: "wait"
})

/** A plugin with a tool that asks a person and says what came of it. */
export const asking = Plugin.define({
  id: "test.asking",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "ask",
        tool({
          description: "Asks a person.",
          input: Schema.Struct({ text: Schema.String }),
          execute: ({ text }, call) =>
            Effect.map(
              ctx.interactions.request(Ask, { text }, { sessionID: call.sessionID }),
              (outcome) => JSON.stringify(outcome.type === "answered" ? outcome.response : outcome.type)
            )
        })
      )
    ))
})

/** The agents that every location offers. */
const agents = ["build", "plan"].map((name) => ({ name, description: `Agent ${name}.`, source: "built-in" }))

export const clientTools = Plugin.define({ id: "bezel.client-tools", session: clientToolsSession })

/** The fields of answers that tests look at. */
export interface Answer {
  readonly id: string
  readonly inputID: string
  readonly status: string
  readonly text: string
  readonly items: ReadonlyArray<Record<string, unknown>>
  readonly next?: string
  readonly error: { readonly code: string; readonly message: string; readonly data?: Record<string, unknown> }
  readonly [field: string]: unknown
}

/** A plugin with a tool that takes anything and gives nothing. */
export const sink = Plugin.define({
  id: "test.sink",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "sink",
        tool({
          description: "Takes text.",
          input: Schema.Struct({ text: Schema.String }),
          execute: () => Effect.succeed("")
        })
      )
    ))
})

export interface TestServer {
  readonly url: string
  /** The directory of those who name none. */
  readonly directory: string
  readonly fleet: FleetShape
  readonly model: ScriptedModel
  /** Lines of the server's log. */
  readonly logs: ReadonlyArray<string>
  /** For whoever prepares a server: names of what it has put there. */
  readonly extra: Record<string, string>
  readonly call: (
    method: string,
    path: string,
    options?: {
      readonly token?: string | null
      readonly body?: unknown
      readonly raw?: string | Uint8Array
      readonly headers?: Record<string, string>
    }
  ) => Promise<{ readonly status: number; readonly headers: Headers; readonly text: string; readonly json: Answer }>
}

export const startTestServer = (
  turns: ReadonlyArray<ScriptedTurn> = [],
  options: Partial<HttpServerOptions> & { readonly plugins?: ReadonlyArray<Plugin> } = {}
): Effect.Effect<TestServer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const logs: Array<string> = []
    const root = realpathSync(yield* temporaryDirectory)
    const directory = join(root, "work")
    const data = join(root, "data")
    for (const folder of [directory, data]) mkdirSync(folder)
    writeFileSync(join(directory, "hello.txt"), "Hello, file.\n")
    const model = scriptedModel(turns)
    const stored = SessionStore.layer({ directory: data, version: "test" }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory: data }))
    )
    const sessions = yield* Layer.build(stored)
    const globals = testGlobals([asking, clientTools, ...options.plugins ?? []], { model, sessions })
    const layer = fleetLayer({
      lists: { agents: () => Effect.succeed(agents) },
      roll: makeRoll(join(root, "roll.json"))
    }).pipe(
      Layer.provide(Placement.inline),
      Layer.provide(inlineLocations({ plugins: () => Effect.succeed([]) })),
      Layer.provide(globals)
    )
    const fleet = Context.get(yield* Layer.build(layer), Fleet)
    const { url } = yield* serveHttp({
      fleet,
      version: "test",
      defaultLocation: directory,
      offerTool,
      redeem: (code) => Effect.succeed(code === "a-code" ? { token: tokens.read, scope: "read" } : null),
      runCommand: (connection, { arguments: given, name, sessionID }) =>
        name === "greet"
          ? Effect.gen(function*() {
            const conversation = yield* connection.use(Conversation, { key: conversationKey(sessionID, "c1") })
            return yield* Effect.mapError(conversation.send({ text: `Greet ${given}` }), ({ message }) => ({
              code: "refused" as const,
              message
            }))
          })
          : Effect.fail({ code: "unknown_command" as const, message: `There is no command ${name}.` }),
      tokens: { find: (token) => callers.get(token) ?? null },
      ...options,
      limits: { lingerMillis: 0, ...options.limits }
    }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => {
      logs.push(String(message))
    })])))
    const call: TestServer["call"] = async (method, path, { body, headers = {}, raw, token = tokens.admin } = {}) => {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined && raw === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        ...(raw !== undefined
          ? { body: raw as NonNullable<RequestInit["body"]> }
          : body === undefined
          ? {}
          : { body: JSON.stringify(body) })
      })
      const text = await response.text()
      const isJson = response.headers.get("content-type")?.includes("json") ?? false
      return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : {} }
    }
    return { url, directory, fleet, model, logs, extra: {}, call }
  }).pipe(Effect.orDie)
