/**
 * `bezel [PATH]` and `bezel attach`: the terminal over a session, with the session host in this process or in a server.
 *
 * Where a server of this user runs on the same sessions, the plain command shows it too, and says so; what is said for this
 * run alone (`--set`, `--trust`) a server knows nothing of, so then, and with `--inline`, everything runs here.
 */
import { makePresentation, Plugins } from "@bezel/core/host"
import { resolveLocation } from "@bezel/core/location"
import { parseModelRef } from "@bezel/core/model"
import type { ConnectionShape } from "@bezel/core/rpc"
import { makeSessionID, SessionStore } from "@bezel/core/session"
import { AppPaths, Settings } from "@bezel/core/settings"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { KeybindingsSetting, MouseSetting, ScreenSetting, ThemeSetting } from "@bezel/plugins/settings"
import { inlineLocations, Placement } from "@bezel/server"
import { findServer, readOwnToken } from "@bezel/server/discovery"
import { runTerminal } from "@bezel/tui"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { stat } from "node:fs/promises"
import type { Environment, Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { nearest } from "../arguments/suggest.ts"
import { Exit, exitCode, signalCode } from "../exit.ts"
import { coordinatorPlugins } from "../host/coordinator-plugins.ts"
import { currentFolder } from "../host/current-folder.ts"
import { globalLayer, settingsLayer } from "../host/global.ts"
import { canPlaceText, localeWarning } from "../host/locale.ts"
import { hostLayer } from "../host/location.ts"
import { logLayer } from "../host/log.ts"
import { isTrusted, outsidePlugins, outsideSources } from "../host/outside-plugins.ts"
import { runProcess } from "../host/process.ts"
import type { RemoteServer } from "../host/remote-terminal-host.ts"
import { environmentToken, serverFolders } from "../host/server-folders.ts"
import { type Chosen, placedTerminalHost, type ShownSession, type TerminalHost } from "../host/terminal-host.ts"
import { askForTrust } from "../host/trust.ts"

interface SessionOptions {
  readonly [key: string]: Option<unknown>
  readonly continue: Option<boolean>
  readonly session: Option<string | null>
  readonly model: Option<string | null>
  readonly agent: Option<string | null>
  readonly fullScreen: Option<boolean>
}

interface TerminalOptions extends SessionOptions {
  readonly attach: Option<string | null>
  readonly inline: Option<boolean>
  readonly trust: Option<boolean>
}

interface AttachOptions extends SessionOptions {
  readonly dir: Option<string | null>
  readonly token: Option<string | null>
}

type Options = Parameters<Execute<SessionOptions>>[0]

/** As many as a screen has room for. */
const maxWarnings = 3

const usage = (message: string) => new Exit(exitCode.usage, message)

/** Told on the screen once there is one; the log has them too. */
const collecting = (environment: Environment, trust: boolean) => {
  const locale = localeWarning(process.env)
  const warnings: Array<string> = locale === null ? [] : [locale]
  const onWarning = (message: string) => {
    if (warnings.length < maxWarnings) warnings.push(message)
  }
  return { warnings, global: { environment, trust, plugins: {}, onWarning } }
}

const requireTerminal = () => {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw usage('this needs a terminal; bezel run "…" answers a prompt without one')
  }
  if (!canPlaceText(process.env)) {
    throw usage('this terminal shows lines only (TERM=dumb); bezel run "…" answers a prompt in one')
  }
}

export const terminal: Execute<TerminalOptions> = async (options, [path], environment) => {
  // A path on the machine of a server that is named is for that server to judge.
  if (path !== undefined && options.attach === null) await checkFolder(path)
  requireTerminal()
  const { global, warnings } = collecting(environment, options.trust)
  return runProcess(
    Effect.gen(function*() {
      const server = options.attach !== null
        ? yield* serverAt(options.attach, null)
        : options.inline || options.trust || environment.set.length > 0
        ? null
        : yield* ownServer
      return server === null
        ? yield* showInline(path ?? currentFolder(), options, global, warnings)
        : yield* showRemote(
          server,
          path ?? (server.isOwn ? currentFolder() : null),
          options,
          global,
          warnings,
          options.attach === null ? "; bezel --inline does without" : ""
        )
    }).pipe(Effect.provide(AppPaths.layer)),
    { environment }
  )
}

/** `bezel attach [URL]`. */
export const attach: Execute<AttachOptions> = async (options, [url], environment) => {
  requireTerminal()
  const { global, warnings } = collecting(environment, false)
  return runProcess(
    Effect.gen(function*() {
      const server = url === undefined ? yield* ownServer : yield* serverAt(url, options.token)
      if (server === null) {
        return yield* Effect.fail(
          usage("no server of this user runs here; bezel serve starts one, or name the URL of one")
        )
      }
      return yield* showRemote(
        server,
        options.dir ?? (server.isOwn ? currentFolder() : null),
        options,
        global,
        warnings
      )
    }).pipe(Effect.provide(AppPaths.layer)),
    { environment }
  )
}

// -------------------------------------------------------------------------------------------------------------- servers

interface FoundServer extends RemoteServer {
  /** It runs on the files of this user, here. */
  readonly isOwn: boolean
  /** Its address is from the state folder. */
  readonly isFound: boolean
}

/** The token that this user has for servers: what the environment says, else that of the state folder. */
const ownTokenOf = Effect.gen(function*() {
  const given = environmentToken()
  return given === null ? yield* readOwnToken((yield* serverFolders).state) : Redacted.make(given)
})

/** The server that runs on the sessions of this user, if there is one. */
const ownServer = Effect.gen(function*() {
  const note = yield* findServer(yield* serverFolders)
  if (note === null) return null
  const token = yield* ownTokenOf
  return token === null ? null : { url: note.url, token, isOwn: true, isFound: true } satisfies FoundServer
})

const serverAt = (written: string, given: string | null) =>
  Effect.gen(function*() {
    const url = URL.parse(/^[\w.-]+(:\d+)?$/.test(written) ? `http://${written}` : written)
    if (url === null || !/^https?:$/.test(url.protocol)) {
      return yield* Effect.fail(
        usage(`${JSON.stringify(written)} is no address of a server; one is http://127.0.0.1:4747`)
      )
    }
    const token = given !== null ? Redacted.make(given) : yield* ownTokenOf
    if (token === null) {
      return yield* Effect.fail(usage(`which token does ${url.origin} take? --token or BEZEL_TOKEN say it`))
    }
    const note = yield* findServer(yield* serverFolders)
    return {
      url: url.href,
      token,
      isOwn: note !== null && new URL(note.url).origin === url.origin,
      isFound: false
    } satisfies FoundServer
  })

// -------------------------------------------------------------------------------------------------------------- showing

type Global = ReturnType<typeof collecting>["global"]

const codeOf = (end: Effect.Success<ReturnType<typeof runTerminal>>): number =>
  end.type === "quit" ? exitCode.answered : signalCode[end.signal]

/** Under a coordinator in this process, which knows the other sessions. */
const showInline = (
  path: string,
  options: Options & { readonly trust: boolean },
  global: Global,
  warnings: ReadonlyArray<string>
) =>
  Effect.gen(function*() {
    const { version } = global.environment
    const locations = inlineLocations({ plugins: coordinatorPlugins(version) })
    const layer = Placement.inline.pipe(Layer.provideMerge(locations), Layer.provideMerge(hostLayer(global)))
    const shown = yield* Effect.gen(function*() {
      const { directory } = yield* resolveLocation(path)
      if (!options.trust) yield* askForTrust(directory)
      const placed = yield* (yield* Placement).place(directory)
      return yield* show(placedTerminalHost(placed), directory, options, global, warnings)
    }).pipe(Effect.scoped, Effect.provide(layer))
    // The sessions are closed now; one in which nothing was said is none.
    if (shown.empty.length > 0) {
      yield* Effect.flatMap(SessionStore, (store) =>
        Effect.forEach(shown.empty, (id) => Effect.ignore(store.remove(id)), { discard: true })).pipe(
          Effect.provide(globalLayer(global)),
          Effect.ignore
        )
    }
    return codeOf(shown.end)
  })

/** The longest that leaving waits for a server to delete a session in which nothing was said. */
const removingLimit = "6 seconds"

const showRemote = (
  server: FoundServer,
  path: string | null,
  options: Options,
  global: Global,
  warnings: ReadonlyArray<string>,
  /** What is said behind the address of the server. */
  note = ""
) =>
  Effect.gen(function*() {
    const { remoteTerminalHost } = yield* Effect.promise(() => import("../host/remote-terminal-host.ts"))
    const directory = path === null || !server.isOwn ? path : (yield* resolveLocation(path)).directory
    const isNewlyTrusted = server.isOwn && directory !== null && (yield* askForTrust(directory))
    const paths = yield* AppPaths
    // One that was found in the state folder may come back on another port; where a person has named the address, it holds.
    const again = server.isFound
      ? Effect.orElseSucceed(Effect.provideService(ownServer, AppPaths, paths), () => null)
      : Effect.succeed(null)
    const host = remoteTerminalHost(server, directory, again)
    const shown = yield* Effect.scoped(
      show(host, server.isOwn ? directory : null, options, global, warnings, (connection) =>
        Effect.gen(function*() {
          process.stdout.write(`Attached to the server on ${server.url}${note}.\n`)
          // A host that is up has read the settings when it was not.
          if (!isNewlyTrusted) return
          yield* Effect.flatMap(connection.use(Plugins), (plugins) => plugins.reloadSettings()).pipe(
            Effect.catch((error) => Effect.logWarning(`The server has not taken the settings in: ${error.message}`))
          )
        }))
    )
    yield* Effect.ignore(
      Effect.timeout(
        Effect.forEach(shown.empty, (id) => Effect.ignore(host.remove(id)), { discard: true }),
        removingLimit
      )
    )
    return codeOf(shown.end)
  }).pipe(
    Effect.provide(
      Layer.provideMerge(
        logLayer({ verbose: global.environment.verbose, onWarning: global.onWarning }),
        settingsLayer(global)
      )
    )
  )

/** `directory`: whose settings hold for the screen; `null`: only the user's own. */
const show = (
  host: TerminalHost,
  directory: string | null,
  options: Options,
  global: Global,
  warnings: ReadonlyArray<string>,
  onAttached: (connection: ConnectionShape) => Effect.Effect<void, Error, Scope.Scope> = () => Effect.void
) =>
  Effect.gen(function*() {
    const { version } = global.environment
    const settings = yield* Effect.flatMap(
      Settings,
      ({ forLocation, user }) => directory === null ? user : forLocation(directory)
    )
    const outside = directory === null
      ? null
      : yield* outsidePlugins(directory, settings, yield* isTrusted(directory, global.trust))
    const isChecked = yield* checkAgent(host, options.agent)
    const session = yield* openSession(host, options)
    if (!isChecked) {
      const undo = session.isNew ? Effect.ignore(host.remove(session.id)) : Effect.void
      yield* Effect.onError(checkAgent(host, options.agent), () => undo)
    }
    const plugins = [...builtinTerminalPlugins(version), ...(outside === null ? [] : outsideSources("tui", outside))]
    const connection = yield* host.connect(session, plugins.map(({ entry }) => entry))
    const presentation = yield* makePresentation({ connection, location: session.location })
    const begun = yield* sessionsBegun(connection, session)
    const bound = Object.entries(settings.get(KeybindingsSetting))
    yield* onAttached(connection)
    const end = yield* runTerminal({
      presentation,
      plugins,
      theme: settings.get(ThemeSetting),
      fullScreen: options.fullScreen || settings.get(ScreenSetting) === "full"
        ? { mouse: settings.get(MouseSetting) }
        : null,
      warnings: [...settings.warnings, ...warnings],
      keybindings: Object.fromEntries(bound.flatMap(([key, name]) => name === null ? [] : [[key, name]]))
    })
    const empty = yield* Effect.filter(begun(), (id) => Effect.orElseSucceed(host.isEmpty(id), () => false))
    return { end, empty }
  })

/** Follows which of the sessions that the terminal shows were made while it ran: ids sort by their time. */
const sessionsBegun = Effect.fnUntraced(function*(
  connection: ConnectionShape,
  first: { readonly id: string; readonly isNew: boolean }
) {
  const since = makeSessionID(yield* Clock.currentTimeMillis).slice(0, "ses_".length + 10)
  const begun = new Set(first.isNew ? [first.id] : [])
  yield* Effect.forkScoped(Stream.runForEach(connection.session.changes, (id) =>
    Effect.sync(() => {
      if (id !== null && id !== first.id && id.slice(0, since.length) >= since) begun.add(id)
    })))
  return () => [...begun]
})

/** A path that is none may be a command that is written wrong. */
async function checkFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory()) return
  const { commands } = await import("../commands.ts")
  const names = commands.map((item) => item.name.split(" ")[0] ?? "").filter((name) => name !== "")
  const near = nearest(path, ["--version", ...names])
  const hint = near === null ? "bezel --help lists the commands" : `did you mean bezel ${near}?`
  throw usage(found === null ? `there is no folder and no command ${path}; ${hint}` : `${path} is not a folder`)
}

/** A name that is no agent is told before anything is written, where that is possible; false: it is not yet. */
const checkAgent = (host: TerminalHost, name: string | null): Effect.Effect<boolean, Error> =>
  name === null
    ? Effect.succeed(true)
    : Effect.flatMap(host.agents, (agents) =>
      agents === null || agents.includes(name)
        ? Effect.succeed(agents !== null)
        : Effect.fail(usage(`there is no agent ${JSON.stringify(name)} here; there are ${agents.join(", ")}`)))

const openSession = (host: TerminalHost, options: Options) =>
  Effect.gen(function*() {
    const model = options.model === null ? null : parseModelRef(options.model)
    if (model !== null && "error" in model) return yield* Effect.fail(usage(`--model: ${model.error}`))
    const chosen: Chosen = { model, agent: options.agent }
    const found: ShownSession | null = options.session !== null
      ? yield* host.find(options.session)
      : options.continue
      ? yield* host.latest
      : null
    if (found === null) return { ...(yield* host.create(chosen)), isNew: true }
    yield* host.choose(found.id, chosen)
    return { ...found, isNew: false }
  })
