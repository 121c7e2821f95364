/** `bezel serve`: the server of this user, in the foreground until a signal ends it. */
import { AppPaths } from "@bezel/core/settings"
import { inlineLocations, Placement } from "@bezel/server"
import { processPlacement } from "@bezel/server/process"
import { checkReach, isLoopback, type RunningServer, startServer, type TokenScope } from "@bezel/server/serve"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Environment, Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { coordinatorPlugins } from "../host/coordinator-plugins.ts"
import { globalLayer } from "../host/global.ts"
import { hostLayer } from "../host/location.ts"
import { lists, offerTool, runCommand } from "../host/offered-lists.ts"
import { runProcess } from "../host/process.ts"
import { environmentToken, serverFolders } from "../host/server-folders.ts"

type Isolation = "none" | "location" | "session"

interface ServeOptions {
  readonly [key: string]: Option<unknown>
  readonly host: Option<string | null>
  readonly port: Option<number | null>
  readonly isolation: Option<Isolation>
  readonly allowHost: Option<ReadonlyArray<string>>
  readonly allowOrigin: Option<ReadonlyArray<string>>
  readonly browser: Option<"none" | TokenScope>
  readonly json: Option<boolean>
}

/** Longer than hosts are given to suspend what they do. */
const closingMillis = 12_000

/** Where the sessions of a server run. */
const placement = (isolation: Isolation, environment: Environment) => {
  const global = {
    environment,
    trust: false,
    plugins: {},
    onWarning: (message: string) => {
      process.stderr.write(`bezel: ${message}\n`)
    }
  }
  const plugins = coordinatorPlugins(environment.version)
  if (isolation === "none") {
    return Placement.inline.pipe(
      Layer.provideMerge(inlineLocations({ plugins, coordinatorFirst: true })),
      Layer.provideMerge(hostLayer(global))
    )
  }
  return Layer.unwrap(Effect.map(AppPaths, ({ state }) =>
    processPlacement({
      command: [process.execPath, ...process.execArgv, process.argv[1] ?? "", "host-session"],
      state,
      plugins,
      isolation,
      times: { stopMillis: 3_000 },
      options: { set: [...environment.set], trust: false, verbose: environment.verbose }
    }))).pipe(Layer.provideMerge(globalLayer(global)))
}

export type Serve = Execute<ServeOptions>

export const serve: Serve = (options, _, environment) => {
  const host = options.host ?? "127.0.0.1"
  const token = environmentToken()
  // Nothing that runs below this process needs it, and tools could print it.
  delete process.env.BEZEL_TOKEN
  return runProcess(
    Effect.gen(function*() {
      const reach = {
        host,
        port: options.port ?? 4747,
        allowedHosts: options.allowHost,
        allowedOrigins: options.allowOrigin
      }
      yield* checkReach({ ...reach, token })
      const server = yield* startServer({
        ...reach,
        version: environment.version,
        folders: yield* serverFolders,
        token: token === null ? null : Redacted.make(token),
        lists,
        runCommand,
        offerTool,
        browser: options.browser === "none" ? null : options.browser
      }, placement(options.isolation, environment))
      announce(server, { ...options, host, fromEnvironment: token !== null })
      return yield* Effect.never
    }).pipe(Effect.scoped, Effect.provide(AppPaths.layer)),
    { environment, endsBySignal: { closingMillis } }
  )
}

/** What whoever started it wants to know, on stdout. */
const announce = (
  server: RunningServer,
  options: {
    readonly host: string
    readonly isolation: Isolation
    readonly json: boolean
    readonly fromEnvironment: boolean
  }
): void => {
  const { browserUrl, resumed, token, url } = server
  if (options.json) {
    const { isolation } = options
    process.stdout.write(
      `${
        JSON.stringify({
          url,
          token: Redacted.value(token),
          pid: process.pid,
          isolation,
          resumed,
          ...(browserUrl === null ? {} : { browser: Redacted.value(browserUrl) })
        })
      }\n`
    )
    return
  }
  const lines = [
    `Bezel serves sessions on ${url}; Ctrl-C ends it.`,
    options.fromEnvironment
      ? "Its token is what BEZEL_TOKEN said."
      : "Programs of this user find it by themselves: bezel, bezel attach.",
    ...(browserUrl === null
      ? []
      : [`For a browser, once and within ten minutes: ${Redacted.value(browserUrl)}`]),
    ...(isLoopback(options.host)
      ? []
      : ["Other machines reach it: whoever has the token runs commands here as this user, and nothing is encrypted."]),
    ...(resumed === 0
      ? []
      : [`${resumed === 1 ? "One session goes" : `${resumed} sessions go`} on where the last server ended.`])
  ]
  process.stdout.write(lines.map((line) => `${line}\n`).join(""))
}
