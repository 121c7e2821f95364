/** `bezel [PATH]`: the terminal over a session of a folder, with the session host in this process. */
import { makePresentation } from "@bezel/core/host"
import { resolveLocation } from "@bezel/core/location"
import { parseModelRef } from "@bezel/core/model"
import { type SessionApi, SessionStore } from "@bezel/core/session"
import { Settings } from "@bezel/core/settings"
import { builtinCoordinatorPlugins, builtinTerminalPlugins } from "@bezel/plugins"
import { AgentList } from "@bezel/plugins/agents/contract"
import { KeybindingsSetting, ThemeSetting } from "@bezel/plugins/settings"
import { inlineLocations, type PlacedHost, Placement } from "@bezel/server"
import { runTerminal } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { stat } from "node:fs/promises"
import type { Environment, Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { nearest } from "../arguments/suggest.ts"
import { Exit, exitCode, signalCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { globalLayer } from "../host/global.ts"
import { hostLayer } from "../host/location.ts"
import { isTrusted, outsidePlugins, outsideSources } from "../host/outside-plugins.ts"
import { runProcess } from "../host/process.ts"
import { askForTrust } from "../host/trust.ts"

interface TerminalOptions {
  readonly [key: string]: Option<unknown>
  readonly continue: Option<boolean>
  readonly session: Option<string | null>
  readonly model: Option<string | null>
  readonly agent: Option<string | null>
  readonly attach: Option<string | null>
  readonly trust: Option<boolean>
}

type Options = Parameters<Execute<TerminalOptions>>[0]

/** As many as a screen has room for. */
const maxWarnings = 3

const usage = (message: string) => new Exit(exitCode.usage, message)

export const terminal: Execute<TerminalOptions> = async (options, [path], environment) => {
  if (options.attach !== null) throw usage("--attach is not built yet")
  if (path !== undefined) await checkFolder(path)
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw usage('this needs a terminal; bezel run "…" answers a prompt without one')
  }
  // Told on the screen once there is one; the log has them too.
  const warnings: Array<string> = []
  const global = {
    environment,
    trust: options.trust,
    plugins: {},
    onWarning: (message: string) => {
      if (warnings.length < maxWarnings) warnings.push(message)
    }
  }
  // Under a coordinator in this process, which knows the other sessions.
  const locations = inlineLocations({ plugins: builtinCoordinatorPlugins(environment.version) })
  const layer = Placement.inline.pipe(Layer.provideMerge(locations), Layer.provideMerge(hostLayer(global)))
  return runProcess(
    Effect.gen(function*() {
      const shown = yield* show(path ?? currentFolder(), options, environment, warnings).pipe(
        Effect.provide(layer),
        Effect.scoped
      )
      // The session is closed now; one in which nothing was said is none.
      if (shown.isEmpty) {
        yield* Effect.flatMap(SessionStore, (store) => store.remove(shown.sessionID)).pipe(
          Effect.provide(globalLayer(global)),
          Effect.ignore
        )
      }
      return shown.end.type === "quit" ? exitCode.answered : signalCode[shown.end.signal]
    }),
    { environment }
  )
}

const show = (path: string, options: Options, environment: Environment, warnings: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { directory } = yield* resolveLocation(path)
    if (!options.trust) yield* askForTrust(directory)
    const settings = yield* Effect.flatMap(Settings, ({ forLocation }) => forLocation(directory))
    const outside = yield* outsidePlugins(directory, settings, yield* isTrusted(directory, options.trust))
    const placement = yield* Placement
    const host = yield* placement.place(directory)
    if (options.agent !== null) yield* checkAgent(host, options.agent)
    const session = yield* openSession(host.session, directory, options)
    const connection = yield* host.connect({ label: "terminal", sessionID: session.id })
    const presentation = yield* makePresentation({ connection, location: host.location })
    const bound = Object.entries(settings.get(KeybindingsSetting))
    const end = yield* runTerminal({
      presentation,
      plugins: [...builtinTerminalPlugins(environment.version), ...outsideSources("tui", outside)],
      theme: settings.get(ThemeSetting),
      warnings: [...settings.warnings, ...warnings],
      keybindings: Object.fromEntries(bound.flatMap(([key, name]) => name === null ? [] : [[key, name]]))
    })
    const page = session.isNew ? yield* host.session.messages(session.id, { limit: 1 }) : null
    return { end, sessionID: session.id, isEmpty: page?.messages.length === 0 }
  })

/** A path that is none may be a command that is written wrong. */
async function checkFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory()) return
  const { commands } = await import("../commands.ts")
  const near = nearest(path, commands.map((item) => item.name.split(" ")[0] ?? "").filter((name) => name !== ""))
  const hint = near === null ? "bezel --help lists the commands" : `did you mean bezel ${near}?`
  throw usage(found === null ? `there is no folder and no command ${path}; ${hint}` : `${path} is not a folder`)
}

/** A name that is no agent is told before anything is written. */
const checkAgent = (host: PlacedHost, name: string) =>
  Effect.gen(function*() {
    const connection = yield* host.connect({ label: "agents" })
    const agents = yield* (yield* connection.use(AgentList)).list()
    if (agents.some((agent) => agent.name === name)) return
    const known = agents.map((agent) => agent.name).join(", ")
    return yield* Effect.fail(usage(`there is no agent ${JSON.stringify(name)} here; there are ${known}`))
  }).pipe(Effect.scoped)

const openSession = (sessions: SessionApi, directory: string, options: Options) =>
  Effect.gen(function*() {
    const model = options.model === null ? null : parseModelRef(options.model)
    if (model !== null && "error" in model) return yield* Effect.fail(usage(`--model: ${model.error}`))
    const found = options.session !== null
      ? yield* sessions.get(options.session)
      : options.continue
      ? (yield* sessions.list({
        location: { directory, workspaceID: null },
        parentID: null,
        archived: false,
        limit: 1
      })).sessions[0]
      : undefined
    const { agent } = options
    if (found === undefined) return { id: (yield* sessions.create({ model, agent })).id, isNew: true }
    if (model !== null || agent !== null) {
      yield* sessions.configure(found.id, {
        ...(model === null ? {} : { model }),
        ...(agent === null ? {} : { agent })
      })
    }
    return { id: found.id, isNew: false }
  })
