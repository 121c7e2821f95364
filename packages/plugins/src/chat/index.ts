/** Chat: the conversation on the screen. */
import { Plugin } from "@bezel/core/host/contract"
import { tui } from "./tui.ts"

export * from "./contract.ts"

export const chatPlugin = Plugin.define({ id: "bezel.chat", tui })
