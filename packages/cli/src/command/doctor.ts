/**
 * `bezel doctor`: looks at what Bezel needs and says of each fault what to do about it. Ends with 1 if there is one.
 *
 * It looks at each part by itself, so that one fault does not hide the others; it changes nothing but to make folders that
 * are missing, and to write a file in each that it takes away again.
 */
import { type AppFolder, AppPaths, Settings, Trust } from "@bezel/core/settings"
import { type LeaseState, leaseState, sessionsFolder, sessionsIn } from "@bezel/core/storage"
import type { McpConnectionsShape } from "@bezel/plugins/mcp/contract"
import { guidance, ModelSetting } from "@bezel/plugins/providers"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { settingsLayer } from "../host/global.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { runProcess } from "../host/process.ts"
import { oneLine } from "../run/text.ts"
import { checkServer } from "./doctor-server.ts"
import { littleRoom, mebibytes, tryFolder } from "./folder-room.ts"
import { checkSessions } from "./session-repair.ts"

interface DoctorOptions {
  readonly [key: string]: Option<unknown>
  readonly dir: Option<string | null>
  readonly json: Option<boolean>
  readonly trust: Option<boolean>
}

/** How long looking at sessions may take; large ones are read whole. */
const sessionsLimitMillis = 20_000

interface Finding {
  readonly part: string
  readonly state: "ok" | "warning" | "fault"
  readonly message: string
}

const ok = (part: string, message: string): Finding => ({ part, state: "ok", message })
const warning = (part: string, message: string): Finding => ({ part, state: "warning", message })
const fault = (part: string, message: string): Finding => ({ part, state: "fault", message })

/** Findings of one part; what it fails with is a finding too. */
const look = <E, R>(part: string, findings: Effect.Effect<ReadonlyArray<Finding>, E, R>) =>
  Effect.catchCause(findings, (cause) => {
    const error = Cause.squash(cause)
    return Effect.succeed([fault(part, oneLine(error instanceof Error ? error.message : String(error), 400))])
  })

const lockFinding = (id: string, { holder, state }: LeaseState): Finding => {
  const who = holder === null ? "a process that has not said which" : `process ${holder.pid} (${holder.command})`
  return state === "held"
    ? ok("locks", `session ${id} is in use by ${who}${holder === null ? "" : `, started ${holder.startedAt}`}`)
    : warning(
      "locks",
      `session ${id} was left behind by ${who}, which is gone; nothing is locked: bezel run --session ${id} goes on with it`
    )
}

/** Without the marks of Markdown. */
const plain = (words: string): string => words.replaceAll("`", "")

const serverFindings = ({ list, settled }: McpConnectionsShape) =>
  Effect.map(
    Effect.andThen(settled, list),
    (servers) =>
      servers.flatMap(({ error, name, problems, status, title, tools }) => [
        status === "ready"
          ? ok("mcp", `${name} is connected${title === null ? "" : ` (${title})`}; ${tools.length} tools`)
          : status === "disabled"
          ? ok("mcp", `${name} is disabled`)
          : fault("mcp", `${name} is not connected: ${error ?? "it did not say why"}`),
        ...problems.map((problem) => warning("mcp", `${name}: ${problem}`))
      ])
  )

/** Every plugin that `bezel plugin list` lists is counted. */
const countOf = (plugins: ReadonlyArray<{ readonly state: string }>): string => {
  const states = new Map<string, number>()
  for (const { state } of plugins) states.set(state, (states.get(state) ?? 0) + 1)
  const words = [...states].map(([state, count]) => `${count} ${state === "absent" ? "only for the screen" : state}`)
  return `${plugins.length} (bezel plugin list): ${words.join(", ")}`
}

const folderFinding = (name: AppFolder, path: string): Finding => {
  const { free, problem } = tryFolder(path)
  if (problem !== null) {
    return fault(
      "folders",
      `${name}: nothing can be kept in ${path} (${problem}); ` +
        `make room or make it writable, or set BEZEL_${name.toUpperCase()}_DIR`
    )
  }
  return free !== null && free < littleRoom
    ? warning("folders", `${name}: ${path} has only ${mebibytes(free)} MiB left on its disk; make room`)
    : ok("folders", `${name}: ${path}`)
}

export const doctor: Execute<DoctorOptions> = (options, _, environment) => {
  const global = { environment, trust: options.trust }
  const directory = options.dir ?? currentFolder()
  const folders = look(
    "folders",
    Effect.gen(function*() {
      const paths = yield* AppPaths
      const names = ["data", "config", "state", "cache"] as const
      return yield* Effect.forEach(names, (name) =>
        Effect.match(paths.ensure(name), {
          onSuccess: (path) => folderFinding(name, path),
          onFailure: (error) =>
            fault("folders", `${error.message}; make it writable or set BEZEL_${name.toUpperCase()}_DIR`)
        }))
    })
  )
  const settings = look(
    "settings",
    Effect.gen(function*() {
      const reader = yield* Effect.flatMap(Settings, ({ forLocation }) => forLocation(directory))
      const trust = yield* Effect.flatMap(Trust, ({ status }) => status(directory))
      return [
        ...reader.sources.map((source) => ok("settings", `${source.file} sets ${source.keys.join(", ") || "nothing"}`)),
        ...(reader.sources.length === 0 ? [ok("settings", "none; everything has its default")] : []),
        ...reader.warnings.map((message) => warning("settings", message)),
        ...(reader.skipped.length === 0 ? [] : [
          warning(
            "trust",
            `this project is ${trust.status}: ${reader.skipped.map((item) => item.key).join(", ")} in it ${
              reader.skipped.length === 1 ? "has" : "have"
            } no effect; start bezel here to be asked, or pass --trust`
          )
        ])
      ]
    })
  )
  const warned = new Set<string>()
  const location = look(
    "plugins",
    Effect.gen(function*() {
      const place = yield* openLocation(directory)
      const plugins = yield* place.plugins
      const broken = plugins.filter((plugin) => plugin.state === "failed")
      const models = yield* place.models.list
      const ready = models.filter((item) => item.availability.ready)
      const { providers } = yield* place.models.table
      const usable = [...providers.values()].flatMap(({ availability, id }) =>
        availability.ready && id !== "bezel" ? [id] : []
      )
      const chosen = yield* Effect.match(place.models.resolve(null), {
        onSuccess: ({ info }) =>
          info.provider === "bezel" && place.settings.get(ModelSetting) === null
            ? warning("model", `${info.provider}/${info.model} is the default. ${plain(guidance(usable))}`)
            : ok("model", `${info.provider}/${info.model} is the default`),
        onFailure: (error) => fault("model", error.message)
      })
      return [
        ok("plugins", countOf(plugins)),
        ...[...warned].filter((message) => broken.every((plugin) => plugin.error !== message)).map((message) =>
          warning("plugins", message)
        ),
        ...broken.map((plugin) => fault("plugins", `${plugin.id} failed: ${plugin.error ?? "without saying why"}`)),
        ...(yield* serverFindings(place.mcp)),
        ok("models", `${ready.length} of ${models.length} can be used (bezel model list)`),
        chosen
      ]
    }).pipe(
      Effect.scoped,
      Effect.provide(locationsLayer({ ...global, plugins: {}, onWarning: (message) => warned.add(message) }))
    )
  )
  const sessions = look(
    "sessions",
    Effect.gen(function*() {
      const { data } = yield* AppPaths
      const { all, damaged, looked } = yield* checkSessions(data, sessionsLimitMillis)
      return [
        ...damaged.map(({ message }) => fault("sessions", message)),
        looked === all
          ? ok("sessions", `${all - damaged.length} of ${all} are whole`)
          : warning(
            "sessions",
            `only the newest ${looked} of ${all} were looked at; bezel session repair ID --dry-run looks at one`
          )
      ]
    })
  )
  const locks = look(
    "locks",
    Effect.gen(function*() {
      const { data } = yield* AppPaths
      const findings: Array<Finding> = []
      for (const id of sessionsIn(data)) {
        const lease = yield* Effect.catch(leaseState(join(sessionsFolder(data), id)), Effect.succeed)
        if (lease === null) continue
        if ("message" in lease) findings.push(warning("locks", `session ${id}: ${lease.message}`))
        else findings.push(lockFinding(id, lease))
      }
      return findings.length === 0 ? [ok("locks", "no session is in use")] : findings
    })
  )
  return runProcess(Effect.gen(function*() {
    const node = ok("node", `${process.version} at ${process.execPath}`)
    const first = yield* Effect.provide(Effect.all([folders, settings]), settingsLayer(global))
    const findings = [ok("bezel", environment.version), node, ...first.flat()]
    // A location cannot boot on settings that do not read; that fault is told already.
    if (findings.every((item) => item.state !== "fault")) findings.push(...(yield* location))
    findings.push(
      ...(yield* Effect.provide(sessions, AppPaths.layer)),
      ...(yield* Effect.provide(locks, AppPaths.layer)),
      ...(yield* Effect.provide(look("server", checkServer(environment.version)), AppPaths.layer))
    )
    for (const item of findings) {
      const mark = item.state === "ok" ? "✓" : item.state === "warning" ? "!" : "✗"
      process.stdout.write(options.json ? `${JSON.stringify(item)}\n` : `${mark} ${item.part}: ${item.message}\n`)
    }
    return findings.some((item) => item.state === "fault") ? exitCode.failed : exitCode.answered
  }))
}
