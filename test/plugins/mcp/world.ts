/** Sessions with servers of the Model Context Protocol that are real processes, and the real plugin. */
import { Plugin } from "@bezel/core/host"
import { ServiceDirectory } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  type TestHostOptions,
  testSessionHost
} from "@bezel/core/testing"
import { McpConnections, type McpServer, McpServers, type McpServerState, McpSetting } from "@bezel/plugins/mcp"
import { session as mcp } from "@bezel/plugins/mcp/session"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The command of the test's own server. */
export const program = (mode: string, folder: string): readonly [string, ...ReadonlyArray<string>] => [
  process.execPath,
  "--no-warnings",
  join(import.meta.dirname, "server-program.ts"),
  mode,
  folder
]

export const withServers = (servers: { readonly [name: string]: McpServer }): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => (key.name === McpSetting.name ? servers : key.default) as A
})

export interface WorldOptions {
  readonly extra?: ReadonlyArray<Plugin>
  readonly later?: ReadonlyArray<Plugin>
  readonly entries?: TestHostOptions["entries"]
}

/** A location with these servers; `folder` is where the test's own server leaves its marks. */
export const world = (
  servers: (folder: string) => { readonly [name: string]: McpServer },
  script: ReadonlyArray<ScriptedTurn> = [],
  options: WorldOptions = {}
) =>
  Effect.gen(function*() {
    const folder = yield* temporaryDirectory
    const directory = yield* temporaryDirectory
    const model = scriptedModel(script)
    const host = yield* testSessionHost(
      [...options.extra ?? [], Plugin.define({ id: "bezel.mcp", session: mcp }), ...options.later ?? []],
      {
        model,
        directory,
        settings: withServers(servers(folder)),
        ...(options.entries === undefined ? {} : { entries: options.entries })
      }
    )
    const services = Context.get(host.services, ServiceDirectory)
    const connections = yield* services.useLocal(McpConnections)
    const client = yield* host.connect()
    const remote = yield* client.use(McpServers)
    /** The first state of a server that is so. */
    const until = (name: string, holds: (state: McpServerState) => boolean) =>
      remote.servers.changes.pipe(
        Stream.map((all) => all.find((server) => server.name === name)),
        Stream.filter((state) => state !== undefined && holds(state)),
        Stream.runHead,
        Effect.flatMap((found) =>
          found._tag === "Some" && found.value !== undefined ? Effect.succeed(found.value) : Effect.die("no such state")
        )
      )
    const { id: sessionID } = yield* Effect.orDie(host.session.create({ title: "t" }))
    const results = () => {
      const message = model.requests.at(-1)?.messages.findLast((each) => each.role === "tool")
      return message?.role === "tool" ? message.content : []
    }
    return { host, model, folder, directory, connections, remote, until, sessionID, results }
  })

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A process that has ended and that nobody has waited for yet is none.
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"))
  } catch {
    return false
  }
}

const linesOf = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").filter((line) => line !== "") : []

/** What the test's own server has noted. */
export const marks = (folder: string) => linesOf(join(folder, "marks"))

/** Process ids of the test's own server, one for each start. */
export const starts = (folder: string) => linesOf(join(folder, "started")).map(Number)

/** Looks again at what other processes do until it is so; the test's own time limit ends it. */
export const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10))
  })
