/**
 * `bezel plugin add` and `bezel plugin remove`: packages in the user's plugin folder, and their names in the user's settings.
 *
 * The person's own npm does the work, in a folder of its own with a lock file, so that versions are exact and what is installed
 * is what was chosen. Scripts of packages are never run. Peers of a package are installed beside it, but for the modules that a
 * plugin gets from the program. A package that turns out to be neither a plugin nor a model provider is taken away again.
 */
import { AppPaths } from "@bezel/core/settings"
import { findPackage, packageName, readPackage, withoutPlugin, withPlugin } from "@bezel/plugins/packages"
import * as Effect from "effect/Effect"
import { chmodSync, existsSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import type { Execute } from "../arguments/command.ts"
import { Exit, exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { inspectPackage, userPluginFolder } from "../host/outside-plugins.ts"
import { runProcess } from "../host/process.ts"
import { addPeers, installed, locked, lockedFiles, npm, removeIdlePeers } from "./plugin-npm.ts"

const failed = (message: string) => new Exit(exitCode.failed, message)

const usage = (message: string) => new Exit(exitCode.usage, message)

const say = (text: string) => process.stdout.write(`${text}\n`)

/**
 * A version that was installed before has to be the same bytes. npm takes a package that is named anew as it comes, so this is
 * looked at afterwards; nothing of it has been run by then. What was known of it before stays known.
 */
const refuseOtherContents = (folder: string, name: string, before: ReturnType<typeof lockedFiles>) =>
  Effect.gen(function*() {
    const was = before.of(name)
    const now = locked(folder, name)
    if (was === null || was.version !== now?.version || was.integrity === now.integrity) return
    yield* npm(folder, "uninstall", [name])
    before.restore()
    return yield* Effect.fail(failed(
      `${name} was not added: ${was.version} has other contents now than when it was installed before; ` +
        `if that is meant, bezel plugin remove ${name} first`
    ))
  })

/** Where a path leads that a person wrote, or `null` if it is the name of a package. */
const localPath = (written: string): string | null => {
  const path = resolve(currentFolder(), written.replace(/^file:/, ""))
  if (existsSync(path) && (/^(\.{0,2}\/|file:)/.test(written) || !/^@?[\w.~-]+(\/[\w.~-]+)?(@.*)?$/.test(written))) {
    return realpathSync(path)
  }
  if (existsSync(path) && (statSync(path).isFile() || readPackage(path) !== null)) return realpathSync(path)
  if (/^(\.{0,2}\/|file:)/.test(written)) throw new Exit(exitCode.usage, `there is no file and no folder ${path}`)
  return null
}

/** The name under which npm has installed what was asked for. */
function installedName(folder: string, spec: string, path: string | null, before: { readonly [name: string]: string }) {
  if (path === null) {
    const [name] = packageName(spec.replace(/(.)@.*$/, "$1")) ?? [null]
    if (name !== null && findPackage(name, [folder]) !== null) return name
  } else {
    const own = statSync(path).isDirectory() ? readPackage(path) : null
    if (own !== null) return own.name
  }
  const now = Object.entries(installed(folder))
  const fromPath = now.find(([, range]) =>
    path !== null && range.startsWith("file:") && resolve(folder, range.slice(5)) === path
  )
  return (fromPath ?? now.find(([name, range]) => before[name] !== range))?.[0] ?? null
}

/** Changes the user's settings file, which is replaced as a whole. */
const changeSettings = (
  file: string,
  change: (text: string) => string | null,
  byHand: string
): Effect.Effect<boolean, Exit> =>
  Effect.try({
    try: () => {
      const text = existsSync(file) ? readFileSync(file, "utf8") : ""
      const changed = change(text)
      if (changed === null) throw new Error("it is not valid")
      if (changed === text) return false
      // Behind a link is the file that a person keeps elsewhere.
      const target = existsSync(file) ? realpathSync(file) : file
      const next = `${target}.${process.pid}.tmp`
      writeFileSync(next, changed, { mode: 0o600 })
      if (existsSync(target)) chmodSync(next, statSync(target).mode)
      renameSync(next, target)
      return true
    },
    catch: (error) =>
      failed(`${file} could not be changed (${error instanceof Error ? error.message : String(error)}); ${byHand}`)
  })

interface AddOptions {
  readonly [key: string]: never
}

export const pluginAdd: Execute<AddOptions> = (_, [spec = ""]) =>
  runProcess(
    Effect.gen(function*() {
      const paths = yield* AppPaths
      const settings = join(yield* paths.ensure("config"), "bezel.jsonc")
      const path = localPath(spec)
      if (path !== null && /\.(ts|mts|js|mjs)$/.test(path) && statSync(path).isFile()) {
        return yield* name(settings, path, `${path}, where it is; it is loaded from there`)
      }
      if (path !== null && !statSync(path).isDirectory() && !/\.(tgz|tar\.gz|tar)$/.test(path)) {
        return yield* Effect.fail(usage(
          `${path} is no plugin; name a file that ends in .ts, .mts, .js or .mjs, a folder or an archive (.tgz) of a package, ` +
            `or a package of the registry`
        ))
      }
      if (path !== null && statSync(path).isDirectory() && readPackage(path) === null) {
        return yield* Effect.fail(
          failed(`${path} has no package.json with a name; name the file of the plugin instead`)
        )
      }
      const folder = yield* paths.ensure("config", "plugins")
      const manifest = join(folder, "package.json")
      if (!existsSync(manifest)) {
        writeFileSync(manifest, `${JSON.stringify({ name: "bezel-plugins", private: true }, null, 2)}\n`, {
          mode: 0o600
        })
      }
      const before = installed(folder)
      const files = lockedFiles(folder)
      yield* npm(folder, "install", [path ?? spec])
      const added = installedName(folder, spec, path, before)
      const found = added === null ? null : findPackage(added, [folder])
      if (added === null || found === null) {
        return yield* Effect.fail(failed(`npm has installed ${spec}, but no package of it is in ${folder}`))
      }
      if (path === null) yield* refuseOtherContents(folder, added, files)
      const kind = yield* Effect.result(
        Effect.andThen(Effect.mapError(addPeers(folder), ({ message }) => message), inspectPackage(found))
      )
      if (kind._tag === "Failure") {
        if (before[added] === undefined) {
          yield* npm(folder, "uninstall", [added])
          yield* removeIdlePeers(folder)
        }
        return yield* Effect.fail(failed(`${added} was not added: ${kind.failure}`))
      }
      const what = `${added} ${found.version ?? ""}`.trim()
      if (kind.success.type === "provider") {
        say(`added ${what}, which has models: name it as "package" of a provider in ${settings}`)
        return exitCode.answered
      }
      return yield* name(settings, added, `${what}, for ${kind.success.hosts.join(" and ")}`)
    }).pipe(Effect.provide(AppPaths.layer))
  )

/** Names a plugin in the user's settings. */
const name = (settings: string, source: string, what: string) =>
  Effect.gen(function*() {
    yield* changeSettings(
      settings,
      (text) => withPlugin(text, source),
      `add ${JSON.stringify(source)} to its "plugins"`
    )
    say(`added ${what}`)
    return exitCode.answered
  })

export const pluginRemove: Execute<AddOptions> = (_, [written = ""]) =>
  runProcess(
    Effect.gen(function*() {
      const paths = yield* AppPaths
      const settings = join(paths.config, "bezel.jsonc")
      const folder = userPluginFolder(paths)
      const isInstalled = installed(folder)[written] !== undefined
      const sources = [written, resolve(currentFolder(), written)]
      const taken = existsSync(settings)
        ? yield* changeSettings(settings, (text) =>
          withoutPlugin(text, sources), `take ${JSON.stringify(written)} out of it`)
        : false
      if (isInstalled) {
        yield* npm(folder, "uninstall", [written])
        yield* removeIdlePeers(folder)
      }
      if (isInstalled || taken) {
        say(`removed ${written}`)
        return exitCode.answered
      }
      const known = Object.keys(installed(folder))
      const hint = known.length === 0 ? "no package is installed" : `installed are ${known.join(", ")}`
      return yield* Effect.fail(
        failed(`${written} is neither installed in ${folder} nor named in ${settings}; ${hint}`)
      )
    }).pipe(Effect.provide(AppPaths.layer))
  )
