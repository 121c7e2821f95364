/** Sub-agents: a task for a session of its own. */
import { Plugin } from "@bezel/core/host/contract"
import { session } from "./session.ts"
import { tui } from "./tui.ts"

export * from "./contract.ts"

export const subagentPlugin = Plugin.define({ id: "bezel.subagent", session, tui })
