/** Loads `agent.ts`: from the bundle that shares its modules with plugin files if there may be some, else from the other. */
import type * as Agent from "./agent.ts"
import { bundle } from "./bundle.ts"
import { pluginsAreLikely } from "./plugin-hint.ts"

/** What shares modules with plugin files, for commands that load some in any case. */
export const sharingAgentModule = (): Promise<typeof Agent> => bundle === "lean" ? sharing() : import("./agent.ts")

const sharing = (): Promise<typeof Agent> => import(new URL("./sharing/agent.mjs", import.meta.url).href)

export const agentModule = (directory: string, overrides: ReadonlyArray<string>): Promise<typeof Agent> =>
  bundle === "lean" && pluginsAreLikely(directory, overrides) ? sharing() : import("./agent.ts")
