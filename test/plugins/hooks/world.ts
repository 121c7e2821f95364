/** Sessions whose calls go past commands of a person: real processes that note what they were told. */
import { Plugin } from "@bezel/core/host"
import { InteractionBroker } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  type TestHostOptions,
  testSessionHost
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { type HookSettings, HooksSetting } from "@bezel/plugins/hooks"
import { session as hooks } from "@bezel/plugins/hooks/session"
import { type PermissionRules, PermissionsKey } from "@bezel/plugins/permissions"
import { session as permissions } from "@bezel/plugins/permissions/session"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

export interface Note {
  readonly event: string
  readonly sessionID: string
  readonly call?: {
    readonly id: string
    readonly name: string
    readonly arguments: unknown
    readonly subjects?: unknown
  }
  readonly result?: { readonly status: string; readonly text: string }
  readonly [name: string]: unknown
}

/** Notes what it was told in a file, then does the rest. */
export const noting = (folder: string, rest = "true"): string => `cat >> '${join(folder, "notes")}'; ${rest}`

export const notes = (folder: string): ReadonlyArray<Note> => {
  const file = join(folder, "notes")
  return existsSync(file)
    ? readFileSync(file, "utf8").split("\n").filter((line) => line.endsWith("}")).map((line) => JSON.parse(line))
    : []
}

const settingsOf = (setting: HookSettings, rules: PermissionRules): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A =>
    (key.name === HooksSetting.name ? setting : key.name === PermissionsKey.name ? rules : key.default) as A
})

/** Tools: `say` gives its text, `fails` an error, `waits` waits until it is interrupted. */
const toolsPlugin = (ran: Array<string>) =>
  Plugin.define({
    id: "test.tools",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) => {
        const input = Schema.Struct({ text: Schema.String })
        const make = (name: string, execute: (text: string) => Effect.Effect<string, { readonly message: string }>) =>
          draft.set(
            name,
            tool({
              description: name,
              input,
              permission: ({ text }) => ({ access: name, subjects: [text] }),
              execute: ({ text }) =>
                Effect.suspend(() => {
                  ran.push(`${name} ${text}`)
                  return execute(text)
                })
            })
          )
        make("say", (text) => Effect.succeed(text))
        make("other", (text) => Effect.succeed(text))
        make("fails", () => Effect.fail({ message: "it broke" }))
        make("waits", () => Effect.never)
      }))
  })

export interface WorldOptions {
  readonly rules?: PermissionRules
  readonly later?: ReadonlyArray<Plugin>
  readonly folder?: string
  readonly sessions?: TestHostOptions["sessions"]
  readonly directory?: string
}

export const world = (
  setting: (folder: string) => HookSettings,
  script: ReadonlyArray<ScriptedTurn>,
  options: WorldOptions = {}
) =>
  Effect.gen(function*() {
    const folder = options.folder ?? (yield* temporaryDirectory)
    const stateDirectory = yield* temporaryDirectory
    const ran: Array<string> = []
    const model = scriptedModel(script)
    const host = yield* testSessionHost(
      [
        toolsPlugin(ran),
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.hooks", session: hooks }),
        ...options.later ?? []
      ],
      {
        model,
        settings: settingsOf(setting(folder), options.rules ?? { "*": "allow" }),
        entries: { "bezel.permissions": { options: { stateDirectory } } },
        ...(options.sessions === undefined ? {} : { sessions: options.sessions }),
        ...(options.directory === undefined ? {} : { directory: options.directory })
      }
    )
    const start = Effect.gen(function*() {
      const { id } = yield* Effect.orDie(host.session.create({ title: "t" }))
      yield* Context.get(host.services, InteractionBroker).unattended(id, "deny")
      return id
    })
    const results = () => {
      const message = model.requests.at(-1)?.messages.findLast((each) => each.role === "tool")
      return message?.role === "tool" ? message.content : []
    }
    return { host, model, folder, ran, start, results, notes: () => notes(folder) }
  })

/** Looks again at what other processes do until it is so; the test's own time limit ends it. */
export const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10))
  })
