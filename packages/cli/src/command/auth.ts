/**
 * `bezel auth list|set|login|remove`: keys of providers that this user has stored.
 *
 * A key comes over stdin and never as an argument, where other processes and the shell's history would see it.
 */
import { AppPaths, Settings } from "@bezel/core/settings"
import { begin, type CredentialStore, makeCredentialStore } from "@bezel/plugins/accounts"
import { credentialKey, McpSetting, signInServer } from "@bezel/plugins/mcp"
import { ProvidersSetting } from "@bezel/plugins/providers/contract"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { Exit, exitCode } from "../exit.ts"
import { currentFolder } from "../host/current-folder.ts"
import { type GlobalOptions, settingsLayer } from "../host/global.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { runProcess } from "../host/process.ts"
import { readSecret } from "../host/secret.ts"
import { oneLine } from "../run/text.ts"
import { listing } from "./catalogue.ts"

interface PlaceOptions {
  readonly [key: string]: Option<unknown>
  readonly dir: Option<string | null>
  readonly trust: Option<boolean>
}

const say = (message: string): void => {
  process.stderr.write(`${message}\n`)
}

const wrong = (message: string) => Effect.fail(new Exit(exitCode.usage, message))

const store: Effect.Effect<CredentialStore, never, AppPaths> = Effect.map(
  AppPaths,
  ({ data }) => makeCredentialStore(data)
)

/** Providers that take a key, and the MCP servers that somebody has signed in to. */
export const authList = listing(({ models, settings }) =>
  Effect.gen(function*() {
    const { providers } = yield* models.table
    // What is damaged is told to whoever needs it.
    const stored = yield* Effect.orElseSucceed((yield* store).list, () => [])
    const keys = new Set(stored.map(({ provider }) => provider))
    const servers = Object.entries(settings.get(McpSetting)).flatMap(([name, server]) =>
      "url" in server && keys.has(credentialKey(server)) ? [{ name, url: server.url }] : []
    )
    return [
      ...[...providers.values()].flatMap(({ availability, id, key, name }) =>
        key === undefined ? [] : [{
          json: { provider: id, name, key: key.source, ready: availability.ready },
          cells: [
            id,
            key.source === null ? "no key" : `key from ${oneLine(key.source, 60)}`,
            availability.ready ? "" : oneLine(availability.reason, 200)
          ]
        }]
      ),
      ...servers.map(({ name, url }) => ({
        json: { server: name, url },
        cells: [oneLine(name, 60), "signed in", `MCP server ${oneLine(url, 200)}`]
      }))
    ]
  })
)

/** Refuses a provider that is not there, with those that are. */
const checkProvider = Effect.fnUntraced(function*(provider: string, directory: string | null) {
  const { models } = yield* openLocation(directory ?? currentFolder())
  const { providers } = yield* models.table
  const known = [...providers.values()].filter(({ key }) => key !== undefined)
  const found = known.find(({ id }) => id === provider)
  return found ?? (yield* wrong(
    `There is no provider ${JSON.stringify(provider.slice(0, 80))} that takes a key; there are ${
      known.map(({ id }) => id).join(", ")
    }. Others are added under providers in bezel.jsonc.`
  ))
})

export const authSet: Execute<PlaceOptions> = (options, [provider = ""], environment) =>
  runProcess(
    Effect.gen(function*() {
      const { key, name } = yield* checkProvider(provider, options.dir)
      const secret = yield* readSecret(`Key for ${name} (not shown): `)
      const value = secret.trim()
      if (value === "") return yield* wrong("No key came on stdin; nothing was stored.")
      if (/[^\x21-\x7e]/.test(value)) {
        return yield* wrong("What came on stdin is no key: it holds spaces, line ends or characters that no key has.")
      }
      yield* (yield* store).setKey(provider, Redacted.make(value))
      say(`The key for ${provider} is stored.`)
      const source = key?.source ?? null
      if (source !== null && source !== "bezel auth") say(`It is not used as long as there is one from ${source}.`)
      return exitCode.answered
    }).pipe(Effect.scoped, Effect.provide(locationsLayer({ environment, trust: options.trust, plugins: {} })))
  )

/** What one signs in to by this name, and what that is stored under: a provider, or an MCP server at an address. */
const signInPlace = Effect.fnUntraced(function*(name: string, directory: string | null) {
  const settings = yield* Effect.flatMap(Settings, (all) => all.forLocation(directory ?? currentFolder()))
  const providers = settings.get(ProvidersSetting)
  const oauth = Object.hasOwn(providers, name) ? providers[name]?.oauth : undefined
  if (oauth !== undefined) return { key: name, what: name, place: oauth }
  const servers = settings.get(McpSetting)
  const server = Object.hasOwn(servers, name) ? servers[name] : undefined
  return server !== undefined && "url" in server
    ? { key: credentialKey(server), what: `the MCP server ${name}`, place: signInServer(name, server) }
    : null
})

export const authRemove: Execute<{ readonly [key: string]: Option<unknown> }> = (_, [provider = ""], environment) =>
  withSettings(
    { environment, trust: false },
    Effect.gen(function*() {
      if (yield* (yield* store).remove(provider)) {
        say(`The key for ${provider} is removed.`)
        return exitCode.answered
      }
      const found = yield* signInPlace(provider, null)
      if (found !== null && (yield* (yield* store).remove(found.key))) {
        say(`The sign-in to ${found.what} is removed.`)
        return exitCode.answered
      }
      return yield* Effect.fail(
        new Exit(exitCode.failed, `No key is stored for ${JSON.stringify(provider.slice(0, 80))}.`)
      )
    })
  )

export const authLogin: Execute<PlaceOptions> = (options, [provider = ""], environment) =>
  withSettings(
    { environment, trust: options.trust },
    Effect.gen(function*() {
      const found = yield* signInPlace(provider, options.dir)
      if (found === null) {
        return yield* wrong(
          `One cannot sign in to ${
            JSON.stringify(provider.slice(0, 80))
          }: no provider of this name has oauth in its settings, and no MCP server of this name has a url. A key is stored with bezel auth set.`
        )
      }
      const begun = yield* begin(provider, found.place)
      say(`Open this address to sign in:\n\n  ${begun.url}\n`)
      const pasted = process.stdin.isTTY || found.place.redirectURL !== undefined
        ? readSecret("If the browser does not come back by itself, paste the code here: ")
        : Effect.never
      const grant = yield* begun.finish(yield* Effect.raceFirst(pasted, begun.returned))
      yield* (yield* store).setGrant(found.key, grant, begun.server)
      say(`Signed in to ${found.what}.`)
      return exitCode.answered
    })
  )

const withSettings = (
  options: GlobalOptions,
  effect: Effect.Effect<number, unknown, AppPaths | Settings | Scope.Scope>
): Promise<number> => runProcess(Effect.scoped(Effect.provide(effect, settingsLayer(options))))
