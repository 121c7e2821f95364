/** `bezel serve` without its code, which no other command needs: it is loaded when the command is called. */
import type { Serve } from "./serve.ts"

export const serve: Serve = async (...call) => (await import("./serve.ts")).serve(...call)
