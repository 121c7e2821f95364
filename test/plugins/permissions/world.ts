/** Sessions with tools that only note that they ran, behind the real gate, and persons who answer it. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { InteractionBroker } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  testPresentation,
  type TestSessionHost,
  testSessionHost
} from "@bezel/core/testing"
import { tool, type ToolPermission } from "@bezel/core/tool"
import {
  Approval,
  type ApprovalRequest,
  type ApprovalResponse,
  type PermissionOptions,
  type PermissionRules,
  PermissionsKey
} from "@bezel/plugins/permissions"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { Context, Effect, Option, Schema, type Scope, Stream } from "effect"
import * as path from "node:path"

/** Tools that only say that they ran, and note it. */
export const toolsPlugin = (ran: Array<string>) =>
  Plugin.define({
    id: "test.tools",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) => {
        const make = <I>(
          name: string,
          input: Schema.Codec<I, unknown>,
          permission: ((input: I) => ToolPermission) | undefined,
          text: (input: I) => string
        ) =>
          draft.set(
            name,
            tool({
              description: name,
              input,
              ...(permission === undefined ? {} : { permission }),
              execute: (input: I) =>
                Effect.sync(() => {
                  ran.push(`${name} ${text(input)}`.trim())
                  return `ran ${text(input)}`
                })
            })
          )
        make(
          "bash",
          Schema.Struct({ command: Schema.String }),
          ({ command }) => ({ access: "bash", subjects: [command] }),
          ({ command }) => command
        )
        for (const access of ["read", "write"]) {
          make(
            access,
            Schema.Struct({ path: Schema.String }),
            (input) => ({ access, subjects: [path.resolve(ctx.location.directory, input.path)] }),
            (input) => input.path
          )
        }
        make("web", Schema.Struct({}), undefined, () => "")
      }))
  })

export const withRules = (rules: PermissionRules): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => key.name === PermissionsKey.name ? rules as A : key.default
})

export interface World {
  readonly host: TestSessionHost
  readonly model: ReturnType<typeof scriptedModel>
  readonly ran: Array<string>
  readonly sessionID: string
  /** The result that the model got last, by call. */
  readonly results: () => ReadonlyArray<{ readonly isFailure: boolean; readonly result: unknown }>
}

export const world = (
  script: ReadonlyArray<ScriptedTurn>,
  settings: {
    readonly rules?: PermissionRules
    readonly options?: PermissionOptions
    readonly unattended?: "wait" | "deny"
    readonly settings?: SettingsReader
    readonly directory?: string
    /** Before and behind the permissions in the manifest. */
    readonly extra?: ReadonlyArray<Plugin>
    readonly later?: ReadonlyArray<Plugin>
  } = {}
): Effect.Effect<World, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const ran: Array<string> = []
    const model = scriptedModel(script)
    const host = yield* testSessionHost(
      [
        toolsPlugin(ran),
        ...settings.extra ?? [],
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        ...settings.later ?? []
      ],
      {
        model,
        settings: settings.settings ?? withRules(settings.rules ?? {}),
        ...(settings.directory === undefined ? {} : { directory: settings.directory }),
        ...(settings.options === undefined
          ? {}
          : { entries: { "bezel.permissions": { required: true, options: { ...settings.options } as never } } })
      }
    )
    const { id } = yield* Effect.orDie(host.session.create({ title: "t" }))
    yield* Context.get(host.services, InteractionBroker).unattended(id, settings.unattended ?? "deny")
    const results = (): ReturnType<World["results"]> => {
      const message = model.requests.at(-1)?.messages.findLast((each) => each.role === "tool")
      return message?.role === "tool" ? message.content : []
    }
    return { host, model, ran, sessionID: id, results }
  })

/** A person at a client who answers like this, and what was asked. */
export const person = (
  host: TestSessionHost,
  sessionID: string,
  answer: (request: ApprovalRequest) => Effect.Effect<ApprovalResponse | "declined">
) =>
  Effect.gen(function*() {
    const asked: Array<ApprovalRequest> = []
    const connection = yield* testPresentation(host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(Approval, (request) => {
          asked.push(request)
          return answer(request)
        })
    }, sessionID)
    return { asked, connection }
  })

export const bash = (command: string) => call("bash", { command })

/** The codes of finished tool calls, as a client sees them. */
export const codes = (host: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const connection = yield* host.connect(sessionID)
    const conversation = yield* connection.use(Conversation, { key: conversationKey(sessionID, "c1") })
    yield* conversation.ready
    const view = Option.getOrThrow(yield* Stream.runHead(conversation.view.changes))
    return view.entries.flatMap((entry) => {
      const data = entry.data
      return typeof data === "object" && data !== null && !Array.isArray(data) && "callID" in data
        ? [("code" in data ? data.code : null) ?? null]
        : []
    })
  })
