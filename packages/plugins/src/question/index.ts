/** Question: the model asks the person something. */
import { Plugin } from "@bezel/core/host/contract"
import { session } from "./session.ts"
import { tui } from "./tui.ts"

export * from "./contract.ts"

export const questionPlugin = Plugin.define({ id: "bezel.question", session, tui })
