import { Plugin } from "@bezel/core/host"
import type { RevertReport } from "@bezel/core/session"
import type { SettingsKey } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedStep,
  type ScriptedTurn,
  temporaryDirectory,
  testSessionHost
} from "@bezel/core/testing"
import type { TestHostOptions } from "@bezel/core/testing"
import { SnapshotsSetting } from "@bezel/plugins/history"
import type { SnapshotSettings } from "@bezel/plugins/history"
import { session as history } from "@bezel/plugins/history/session"
import { session as tools } from "@bezel/plugins/tools/session"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"

export const write = (path: string, content: string): ReadonlyArray<ScriptedStep> => [call("write", { path, content })]
export const edit = (path: string, oldText: string, newText: string): ReadonlyArray<ScriptedStep> => [
  call("edit", { path, oldText, newText })
]
export const bash = (command: string): ReadonlyArray<ScriptedStep> => [call("bash", { command })]

/** Git in a folder, without any settings of whoever runs the tests. */
export const git = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args], {
    cwd: directory,
    encoding: "utf8",
    env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" }
  })

export const commitAll = (directory: string): void => {
  git(directory, "init", "-q")
  git(directory, "add", "-A")
  git(directory, "commit", "-q", "-m", "start")
}

export interface World {
  readonly directory: string
  readonly sessionID: string
  readonly host: Effect.Success<ReturnType<typeof testSessionHost>>
  readonly ask: (text: string) => Effect.Effect<string>
  readonly stage: (to?: string, options?: { readonly dryRun?: boolean; readonly conflicts?: "keep" }) => Effect.Effect<
    RevertReport,
    unknown
  >
  readonly clear: Effect.Effect<RevertReport, unknown>
  readonly file: (name: string) => string
  readonly read: (name: string) => string | null
  /** What the model would see now, as text. */
  readonly context: Effect.Effect<string, unknown>
}

/** A session in a real folder, with the tools and its history. */
export const world = (
  script: ReadonlyArray<ScriptedTurn>,
  options: {
    readonly files?: { readonly [name: string]: string }
    readonly isRepository?: boolean
    readonly settings?: SnapshotSettings
    readonly directory?: string
    readonly location?: string
    readonly sessions?: TestHostOptions["sessions"]
    readonly sessionID?: string
    readonly plugins?: ReadonlyArray<Plugin>
  } = {}
) =>
  Effect.gen(function*() {
    const directory = options.directory ?? fs.realpathSync(yield* temporaryDirectory)
    for (const [name, content] of Object.entries(options.files ?? {})) {
      fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
      fs.writeFileSync(path.join(directory, name), content)
    }
    if (options.isRepository === true) commitAll(directory)
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.tools", session: tools }),
      ...options.plugins ?? [],
      Plugin.define({ id: "bezel.history", session: history })
    ], {
      directory: path.join(directory, options.location ?? ""),
      model: scriptedModel(script),
      ...(options.sessions === undefined ? {} : { sessions: options.sessions }),
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A =>
          key.name === SnapshotsSetting.name ? (options.settings ?? {}) as A : key.default
      }
    })
    const sessionID = options.sessionID ?? (yield* host.session.create()).id
    const world: World = {
      directory,
      sessionID,
      host,
      ask: (text) => host.ask(sessionID, text),
      stage: (to = "last", request = {}) => host.session.revert.stage(sessionID, { to, ...request }),
      clear: host.session.revert.clear(sessionID),
      file: (name) => path.join(directory, name),
      read: (name) => {
        const file = path.join(directory, name)
        return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : null
      },
      context: Effect.map(host.session.context(sessionID), (messages) => JSON.stringify(messages))
    }
    return world
  })
