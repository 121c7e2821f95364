import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { InteractionBroker, type Unattended } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import type { testSessions } from "@bezel/core/testing"
import {
  call,
  emptySettings,
  fail,
  run,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  type TestSessionHost,
  testSessionHost
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { session as agents } from "@bezel/plugins/agents/session"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { session as question } from "@bezel/plugins/question/session"
import { AgentsSetting } from "@bezel/plugins/settings/contract"
import { SubagentDetails } from "@bezel/plugins/subagent/contract"
import { session as subagent } from "@bezel/plugins/subagent/session"
import { Context, Deferred, Effect, Option, Schema, Stream } from "effect"

export type Sessions = Effect.Success<typeof testSessions>

export interface Given {
  readonly unattended?: Unattended
  readonly sessions?: Sessions
  readonly directory?: string
  readonly sessionID?: string
  readonly agents?: { readonly [name: string]: { readonly model?: string; readonly description?: string } }
  readonly maxDepth?: number
  readonly extra?: ReadonlyArray<Plugin>
  readonly cost?: boolean
  /** Stands in for resuming a session from within the tool. */
  readonly resume?: Effect.Effect<void>
}

export const withAgents = (agents: NonNullable<Given["agents"]>): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => key.name === AgentsSetting.name ? agents as A : key.default
})

/** A tool that needs approval and notes that it ran. */
export const touchPlugin = (ran: Array<string>) =>
  Plugin.define({
    id: "test.touch",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) =>
        draft.set(
          "touch",
          tool({
            description: "Touches",
            input: Schema.Struct({ name: Schema.String }),
            execute: ({ name }) =>
              Effect.sync(() => {
                ran.push(name)
                return `touched ${name}`
              })
          })
        )
      ))
  })

/**
 * A model that answers by what its conversation was asked: `script` has the turns of each first prompt. Parent and children
 * share it, so that the order of their requests does not matter.
 */
export const modelOf = (scripts: { readonly [prompt: string]: ReadonlyArray<ScriptedTurn> }, cost = false) => {
  const left = new Map(Object.entries(scripts).map(([prompt, turns]) => [prompt, [...turns]]))
  return scriptedModel(
    Array.from({ length: 100 }, (): ScriptedTurn => (request) => {
      const user = request.messages.find((message) => message.role === "user")
      const first = user?.role === "user" ? user.content.find((part) => part.type === "text") : undefined
      const prompt = first?.type === "text" ? first.text : ""
      const turn = left.get(prompt)?.shift()
      if (turn === undefined) return [fail("invalid_request", { message: `no turn for ${JSON.stringify(prompt)}` })]
      return typeof turn === "function" ? turn(request) : turn
    }),
    cost ? { cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } } : {}
  )
}

export const world = (scripts: { readonly [prompt: string]: ReadonlyArray<ScriptedTurn> }, given: Given = {}) =>
  Effect.gen(function*() {
    const ran: Array<string> = []
    const model = modelOf(scripts, given.cost)
    const host = yield* testSessionHost(
      [
        touchPlugin(ran),
        ...given.extra ?? [],
        Plugin.define({ id: "bezel.question", session: question }),
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.agents", session: agents }),
        Plugin.define({
          id: "bezel.subagent",
          session: (ctx) => {
            const { resume } = given
            return subagent(resume === undefined ? ctx : { ...ctx, session: { ...ctx.session, resume: () => resume } })
          }
        })
      ],
      {
        model,
        settings: withAgents(given.agents ?? {}),
        entries: {
          "bezel.agents": { required: true, options: { configDirectory: yield* temporaryDirectory } },
          "bezel.subagent": {
            required: true,
            ...(given.maxDepth === undefined ? {} : { options: { maxDepth: given.maxDepth } })
          }
        },
        ...(given.sessions === undefined ? {} : { sessions: given.sessions }),
        ...(given.directory === undefined ? {} : { directory: given.directory })
      }
    )
    const id = given.sessionID ?? (yield* host.session.create({ title: "parent" })).id
    if (given.unattended !== undefined) {
      yield* Context.get(host.services, InteractionBroker).unattended(id, given.unattended)
    }
    return { host, model, id, ran }
  })

export const viewOf = (host: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const connection = yield* host.connect(sessionID)
    const conversation = yield* connection.use(Conversation, { key: conversationKey(sessionID, "c1") })
    yield* conversation.ready
    return conversation.view
  })

/** What clients see of the finished calls. */
export const finished = (host: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const view = Option.getOrThrow(yield* Stream.runHead((yield* viewOf(host, sessionID)).changes))
    return view.entries.filter((entry) => entry.kind === "bezel.tool_result").map((entry) => entry.data)
  })

export const detailsOf = (data: unknown) =>
  Schema.decodeUnknownSync(SubagentDetails)(Reflect.get(Object(data), "details"))

export const children = (host: TestSessionHost, parentID: string) =>
  Effect.map(host.session.list({ parentID }), ({ sessions }) => sessions)

export const resultsIn = (
  request: { readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }> } | undefined
) => request?.messages.findLast((message) => message.role === "tool")?.content

export const task = (
  prompt: string,
  more: { readonly agent?: string; readonly background?: boolean } = {},
  id?: string
) => call("subagent", { description: `do ${prompt}`, prompt, ...more }, id)

export const started = (latch: Deferred.Deferred<void>) => run(Effect.asVoid(Deferred.succeed(latch, undefined)))
