/**
 * `bezel plugin doctor`: looks at every plugin of a folder, from where it comes to what it has contributed, and says of each
 * fault what to do about it. Ends with 1 if there is one. It changes nothing.
 */
import type { PluginStatus } from "@bezel/core/kernel"
import { AppPaths, Trust } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { exitCode } from "../exit.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { isTrusted, type OutsidePlugin, outsidePlugins } from "../host/outside-plugins.ts"
import { runProcess } from "../host/process.ts"
import { oneLine } from "../run/text.ts"

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

const hosts = ["session", "tui", "coordinator", "web"] as const

/** The hosts that a plugin has a facet for. */
const facetsOf = (plugin: object): ReadonlyArray<string> =>
  hosts.filter((host) => typeof Reflect.get(plugin, host) === "function")

const remedies: { readonly [phase in PluginStatus["phase"]]: string } = {
  load: 'mend its file, or take it out of the setting "plugins"',
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
  const facets = outside?.plugin === null || outside === undefined ? null : facetsOf(outside.plugin)
  if (facets !== null && facets.length === 0) {
    const message = `${from}: it has nothing for any host; Plugin.define takes one of ${hosts.join(", ")}`
    return { plugin, state: "warning", message }
  }
  return { plugin, state: "ok", message: `${from}${version}${facets === null ? "" : `, for ${facets.join(" and ")}`}` }
}

export const pluginDoctor: Execute<DoctorOptions> = (options, _, environment) =>
  runProcess(
    Effect.gen(function*() {
      const directory = options.dir ?? process.cwd()
      const place = yield* openLocation(directory)
      const trusted = yield* isTrusted(place.location.directory, options.trust)
      const outside = yield* outsidePlugins(place.location.directory, place.settings, trusted)
      const left = [...yield* place.tools.faults, ...yield* place.models.contributions.faults]
      const findings: ReadonlyArray<Finding> = [
        ...(yield* place.plugins).map((status) => stateOf(status, outside.find(({ entry }) => entry.id === status.id))),
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
