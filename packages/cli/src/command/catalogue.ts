/** `bezel model list`, `bezel tool list`, `bezel plugin list`: what a location has, once its plugins are up. */
import { formatModelRef } from "@bezel/core/model"
import { AppPaths, type AppPathsShape, type Trust } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { folderNotices, settingsNotices } from "../host/notices.ts"
import { findOutsidePlugins, isTrusted } from "../host/outside-plugins.ts"
import { runProcess } from "../host/process.ts"
import { oneLine } from "../run/text.ts"

interface ListOptions {
  readonly [key: string]: Option<unknown>
  readonly dir: Option<string | null>
  readonly json: Option<boolean>
  readonly trust: Option<boolean>
}

type Place = Effect.Success<ReturnType<typeof openLocation>>

interface Row {
  readonly json: object
  readonly cells: ReadonlyArray<string>
}

interface ListingOptions {
  /** Said on stderr where there is nothing to list, so that stdout stays empty. */
  readonly none?: (paths: AppPathsShape) => string
}

/**
 * A command that prints one row for each of something. What is missing in it and why is told on stderr: plugins that have
 * failed, files that cannot be used, what of a project is not trusted.
 */
export const listing = (
  rows: (place: Place & { readonly trust: boolean }) => Effect.Effect<ReadonlyArray<Row>, never, AppPaths | Trust>,
  { none }: ListingOptions = {}
): Execute<ListOptions> =>
(options, _, environment) => {
  const told = new Set<string>()
  const tell = (message: string): void => {
    if (!told.has(message)) warn(message)
    told.add(message)
  }
  return runProcess(
    Effect.gen(function*() {
      const place = yield* openLocation(options.dir ?? currentFolder())
      settingsNotices(place.settings).forEach(tell)
      if (!options.trust) (yield* folderNotices(place.location.directory)).forEach(tell)
      const all = yield* rows({ ...place, trust: options.trust })
      if (options.json) { for (const row of all) process.stdout.write(`${JSON.stringify(row.json)}\n`) }
      else process.stdout.write(columns(all.map((row) => row.cells)))
      if (all.length === 0 && none !== undefined) warn(none(yield* AppPaths))
      return exitCode.answered
    }).pipe(
      Effect.scoped,
      Effect.provide(locationsLayer({ environment, trust: options.trust, plugins: {}, onWarning: tell }))
    )
  )
}

function columns(rows: ReadonlyArray<ReadonlyArray<string>>): string {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) =>
    row.map((cell, column) => column === row.length - 1 ? cell : cell.padEnd(width(column))).join("  ").trimEnd() + "\n"
  ).join("")
}

const modelRows = (place: Place) =>
  Effect.map(place.models.list, (all) =>
    all.map(({ availability, info }): Row => ({
      json: { ...info, availability },
      cells: [formatModelRef(info), oneLine(info.name, 40), availability.ready ? "" : oneLine(availability.reason, 100)]
    })))

/** With `--refresh` the providers are asked first; what they say is kept, so that the list has it from then on. */
export const modelList: Execute<ListOptions & { readonly refresh: Option<boolean> }> = (
  options,
  positionals,
  environment
) =>
  listing((place) =>
    options.refresh
      ? Effect.andThen(
        Effect.matchEffect(place.refreshModels, {
          onSuccess: ({ warnings }) => Effect.sync(() => warnings.forEach(warn)),
          onFailure: (error) => Effect.sync(() => warn(error.message))
        }),
        modelRows(place)
      )
      : modelRows(place)
  )(options, positionals, environment)

const warn = (message: string): void => {
  process.stderr.write(`bezel: ${oneLine(message, 500)}\n`)
}

export const toolList = listing(({ mcp, tools }) =>
  Effect.map(Effect.andThen(mcp.settled, tools.list), (all) =>
    all.map((item) => ({
      json: item,
      cells: [item.name, item.plugin, oneLine(item.description, 100)]
    })))
)

/** Versions and origins are told of all, and of those that are reached in several ways, the other ways. */
export const pluginList = listing((place) => pluginRows(place))

const pluginRows = (place: Place & { readonly trust: boolean }) =>
  Effect.gen(function*() {
    const trusted = yield* isTrusted(place.location.directory, place.trust)
    const { duplicates, plugins } = yield* findOutsidePlugins(place.location.directory, place.settings, trusted)
    return (yield* place.plugins).map((item) => {
      const outside = plugins.find(({ entry }) => entry.id === item.id)
      const source = outside?.source ?? "built in"
      const also = duplicates.filter(({ of }) => of === outside?.source).map((duplicate) => duplicate.source)
      const error = item.error !== null
        ? `: ${oneLine(item.error, 200)}`
        : item.state === "absent"
        ? ": it has nothing for sessions, only for other hosts such as the screen"
        : ""
      const again = also.length === 0 ? "" : ` (also ${also.join(", ")})`
      return {
        json: { ...item, source, also },
        cells: [item.id, item.version ?? "", item.state, `${source}${again}${error}`]
      }
    })
  })
