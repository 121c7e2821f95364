/** Session directory: which sessions there are, from the coordinator through the session host to whoever shows them. */
import { Plugin } from "@bezel/core/host/contract"
import { coordinator } from "./coordinator.ts"
import { session } from "./session.ts"
import { tui } from "./tui.ts"

export * from "./contract.ts"

export const sessionDirectoryPlugin = Plugin.define({ id: "bezel.session-directory", coordinator, session, tui })
