/**
 * The session API: what plugins, and with the same meaning clients over HTTP, do with sessions.
 *
 * It composes the records and read models of all sessions with the running of those of one location; authors never see the
 * split. New sessions belong to the location that the API is of.
 */
import * as Effect from "effect/Effect"
import type { LocationRef } from "../location/index.ts"
import type { SessionRuntimeShape } from "./runtime-shape.ts"
import type { CreateSession, SessionStoreShape } from "./store.ts"

export interface SessionApi extends Omit<SessionStoreShape, "create" | "opened" | "report">, SessionRuntimeShape {
  readonly create: (
    input?: Omit<CreateSession, "location">
  ) => ReturnType<SessionStoreShape["create"]>
}

/** What needs no running session: the records and read models, as the API of one location has them. */
export const sessionRecords = (location: LocationRef, store: SessionStoreShape) => ({
  create: (input?: Omit<CreateSession, "location">) => Effect.suspend(() => store.create({ ...input, location })),
  get: store.get,
  list: store.list,
  messages: store.messages,
  message: store.message,
  context: store.context,
  history: store.history,
  rename: store.rename,
  switchAgent: store.switchAgent,
  switchModel: store.switchModel,
  archive: store.archive,
  remove: store.remove
})

/** Composes the API of one location. */
export const makeSessionApi = (
  location: LocationRef,
  store: SessionStoreShape,
  runtime: SessionRuntimeShape
): SessionApi => ({
  ...sessionRecords(location, store),
  prompt: runtime.prompt,
  steer: runtime.steer,
  resume: runtime.resume,
  wait: runtime.wait,
  interrupt: runtime.interrupt,
  active: runtime.active,
  configure: runtime.configure,
  abortInput: runtime.abortInput,
  fork: runtime.fork,
  revert: runtime.revert,
  finalText: runtime.finalText,
  folder: runtime.folder
})
