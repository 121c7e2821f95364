/** `bezel auth token`: makes, lists and revokes the tokens that other people and programs call the server of this user with. */
import { AppPaths } from "@bezel/core/settings"
import { createToken, type KeptToken, listTokens, revokeToken } from "@bezel/server/discovery"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { Exit, exitCode } from "../exit.ts"
import { runProcess } from "../host/process.ts"
import { serverFolders } from "../host/server-folders.ts"

interface AuthTokenOptions {
  readonly [key: string]: Option<unknown>
  readonly scope: Option<"read" | "prompt" | "admin">
  readonly json: Option<boolean>
}

const usage = (message: string) => Effect.fail(new Exit(exitCode.usage, message))

const shown = ({ createdAt, name, scope, server }: KeptToken) => ({
  name,
  scope,
  createdAt: new Date(createdAt).toISOString(),
  ...(server === undefined ? {} : { endsWithServer: server })
})

export const authToken: Execute<AuthTokenOptions> = (options, [action, name], environment) =>
  runProcess(
    Effect.gen(function*() {
      const { state: folder } = yield* serverFolders
      const { ensure } = yield* AppPaths
      yield* ensure("state", "server")
      if (action === "list") {
        const tokens = (yield* listTokens(folder)).map(shown)
        const line = (token: ReturnType<typeof shown>) =>
          options.json
            ? JSON.stringify(token)
            : [
              token.name.padEnd(24),
              token.scope.padEnd(8),
              token.createdAt,
              ...(token.endsWithServer === undefined ? [] : ["ends with the server"])
            ].join("  ")
        process.stdout.write(tokens.map((token) => `${line(token)}\n`).join(""))
        return exitCode.answered
      }
      if (action !== "create" && action !== "revoke") {
        return yield* usage(`bezel auth token takes create, list or revoke, not ${JSON.stringify(action ?? "")}`)
      }
      if (name === undefined) return yield* usage(`which token? bezel auth token ${action} NAME`)
      if (action === "revoke") {
        if (yield* revokeToken(folder, name)) return exitCode.answered
        return yield* usage(`there is no token ${JSON.stringify(name)}; bezel auth token list shows all`)
      }
      const { scope } = options
      const token = Redacted.value(yield* createToken(folder, { name, scope, now: yield* Clock.currentTimeMillis }))
      // On stdout the token alone, so that a script can take it.
      process.stdout.write(options.json ? `${JSON.stringify({ name, scope, token })}\n` : `${token}\n`)
      process.stderr.write("Keep it now: it is stored as a digest only and cannot be shown again.\n")
      return exitCode.answered
    }).pipe(Effect.provide(AppPaths.layer)),
    { environment }
  )
