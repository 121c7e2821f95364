/** Sandbox: commands that can write only the workspace. */
export * from "./contract.ts"
export { session as sandboxSession } from "./session.ts"
