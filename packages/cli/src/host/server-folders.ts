/** Where the server of this user keeps what it needs, and where others find it. */
import { AppPaths } from "@bezel/core/settings"
import type { ServerFolders } from "@bezel/server/discovery"
import * as Effect from "effect/Effect"
import { join } from "node:path"

export const serverFolders: Effect.Effect<ServerFolders, never, AppPaths> = Effect.map(
  AppPaths,
  ({ data, state }) => ({ data, state: join(state, "server") })
)

/** The token that the environment gives; `null` where it gives none. */
export const environmentToken = (): string | null => {
  const token = process.env.BEZEL_TOKEN ?? ""
  return token === "" ? null : token
}
