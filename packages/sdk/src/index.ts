/**
 * `@bezel/sdk`: the definition of the HTTP API and its typed client, for Node and for browsers.
 *
 * `createClient` speaks promises, `makeEffectClient` effects; `@bezel/sdk/node` finds the server of this user by itself, and
 * `@bezel/sdk/api` is the definition alone.
 */
export type { Page, Session, SessionEvent, SessionMessage, WaitResult } from "./api/index.ts"
export * from "./client/effect-client.ts"
export { BezelError } from "./client/error.ts"
export type { EventOptions, Placed } from "./client/event-stream.ts"
export {
  type BezelClient,
  createClient,
  type OfferedClientTool,
  type Promised,
  promised
} from "./client/promise-client.ts"
export type { ClientTool, ClientToolCall, ToolOffered } from "./client/tool-offer.ts"
