/**
 * `bezel plugin doctor`: looks at every plugin of a folder, from where it comes to what it has contributed, and says of each
 * fault what to do about it. Ends with 1 if there is one. It changes nothing.
 */
import type { PluginStatus } from "@bezel/core/kernel"
import { AppPaths, Trust } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import metadata from "../../package.json" with { type: "json" }
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { findOutsidePlugins, hostNames, isTrusted, type OutsidePlugin } from "../host/outside-plugins.ts"
import { runProcess } from "../host/process.ts"
import { oneLine } from "../run/text.ts"

const programVersions: { readonly [name: string]: string } = metadata.dependencies

interface DoctorOptions {
  readonly [key: string]: Option<unknown>
  readonly dir: Option<string | null>
  readonly json: Option<boolean>
  readonly trust: Option<boolean>
}

interface Finding {
  readonly plugin: string
  readonly state: "ok" | "warning" | "fault"
  readonly message: string
}

const remedies: { readonly [phase in PluginStatus["phase"]]: string } = {
  load: 'mend its file, or take it out of the setting "plugins" or the plugin folder that it lies in',
  setup: "see its message and its documentation",
  bind: "change what the settings name, or their order",
  activate: "see its message and its documentation",
  dispose: "it did not end in good order; report it to its author"
}

const stateOf = (status: PluginStatus, outside: OutsidePlugin | undefined): Finding => {
  const plugin = status.id
  const from = outside === undefined ? "built in" : outside.source
  const version = status.version === null ? "" : ` ${status.version}`
  if (status.state === "failed") {
    const what = oneLine(status.error ?? "it failed without saying why", 400)
    return { plugin, state: "fault", message: `${what}; ${remedies[status.phase]}` }
  }
  if (outside !== undefined && outside.hosts.length === 0) {
    const message = `${from}: it has nothing for any host; Plugin.define takes one of ${hostNames.join(", ")}`
    return { plugin, state: "warning", message }
  }
  const hosts = outside === undefined ? "" : `, for ${outside.hosts.join(" and ")}`
  return { plugin, state: "ok", message: `${from}${version}${hosts}` }
}

/** What the terminal would load: its entry points are imported here, and not run. */
const terminalFault = (outside: OutsidePlugin) =>
  outside.error !== null || !outside.hosts.includes("tui")
    ? Effect.succeed([])
    : outside.facet("tui").pipe(Effect.match({
      onSuccess: (): ReadonlyArray<Finding> => [],
      onFailure: ({ message }): ReadonlyArray<Finding> => [
        { plugin: outside.entry.id, state: "fault", message: `${oneLine(message, 400)}; ${remedies.load}` }
      ]
    }))

/** Modules that are the program's own, whatever a package brings along. */
const isProvided = (name: string): boolean => /^(effect|@bezel\/(core|tui))$/.test(name)

const leadingNumber = (version: string): string | undefined => /\d+/.exec(version)?.[0]

/** What a package says about the modules that it gets from the program. */
const copies = (outside: OutsidePlugin, program: { readonly [name: string]: string }): ReadonlyArray<Finding> => {
  const { package: from } = outside
  if (from === null) return []
  const plugin = outside.entry.id
  const brought = Object.keys(from.dependencies).filter(isProvided).map((name): Finding => ({
    plugin,
    state: "warning",
    message: `it brings a copy of ${name}, which is not used: the program's ${
      program[name] ?? "own"
    } is; its author should name ${name} in peerDependencies`
  }))
  const meant = Object.entries({ ...from.dependencies, ...from.peerDependencies }).flatMap(
    ([name, range]): ReadonlyArray<Finding> => {
      const [ours, theirs] = [program[name], leadingNumber(range)]
      return !isProvided(name) || ours === undefined || theirs === undefined || leadingNumber(ours) === theirs
        ? []
        : [{
          plugin,
          state: "warning",
          message: `it was written for ${name} ${range}, and this program has ${ours}; look for a newer version of it`
        }]
    }
  )
  return [...brought, ...meant]
}

export const pluginDoctor: Execute<DoctorOptions> = (options, _, environment) =>
  runProcess(
    Effect.gen(function*() {
      const directory = options.dir ?? currentFolder()
      const place = yield* openLocation(directory)
      const trusted = yield* isTrusted(place.location.directory, options.trust)
      const { duplicates, plugins: outside } = yield* findOutsidePlugins(
        place.location.directory,
        place.settings,
        trusted
      )
      const left = [...yield* place.tools.faults, ...yield* place.models.contributions.faults]
      const findings: ReadonlyArray<Finding> = [
        ...(yield* place.plugins).map((status) => stateOf(status, outside.find(({ entry }) => entry.id === status.id))),
        ...(yield* Effect.forEach(outside, terminalFault)).flat(),
        ...outside.flatMap((plugin) => copies(plugin, programVersions)),
        ...(yield* place.tools.list).filter(({ plugin, replaced }) =>
          replaced.length > 0 && outside.some(({ entry }) => entry.id === plugin)
        ).map(({ name, plugin, replaced }): Finding => ({
          plugin,
          state: "warning",
          message: `its tool ${name} takes the place of that of ${replaced.join(" and ")}`
        })),
        ...duplicates.map(({ of, source }): Finding => ({
          plugin: outside.find((plugin) => plugin.source === of)?.entry.id ?? "bezel",
          state: "warning",
          message: source === of
            ? `${source} is named more than once and is loaded once; take the other mentions away`
            : `${source} is the same plugin as ${of}, so it is loaded once; take one of them away`
        })),
        ...left.map(({ message, plugin }): Finding => ({
          plugin: plugin ?? "bezel",
          state: "fault",
          message: oneLine(message, 400)
        })),
        ...(!trusted && existsSync(join(place.location.directory, ".bezel", "plugins"))
          ? [
            {
              plugin: "bezel",
              state: "warning",
              message: "the plugins in .bezel/plugins are left out; start bezel here to be asked, or pass --trust"
            } as const
          ]
          : [])
      ]
      for (const item of findings) {
        const mark = item.state === "ok" ? "✓" : item.state === "warning" ? "!" : "✗"
        process.stdout.write(options.json ? `${JSON.stringify(item)}\n` : `${mark} ${item.plugin}: ${item.message}\n`)
      }
      return findings.some(({ state }) => state === "fault") ? exitCode.failed : exitCode.answered
    }).pipe(
      Effect.scoped,
      Effect.provide(locationsLayer({ environment, trust: options.trust, plugins: {} })),
      Effect.provide(Trust.layer),
      Effect.provide(AppPaths.layer)
    )
  )
