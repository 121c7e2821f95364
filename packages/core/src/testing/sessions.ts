/** What test hosts of every kind are built over: sessions in memory, and settings that set nothing. */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { SessionStore } from "../session/index.ts"
import type { SettingsReader } from "../settings/index.ts"
import { SessionStorage } from "../storage/index.ts"

/** Settings that set nothing. */
export const emptySettings: SettingsReader = { get: (key) => key.default, skipped: [], sources: [], warnings: [] }

export const memorySessions = SessionStore.layerMemory.pipe(Layer.provideMerge(SessionStorage.layerMemory))

/** Sessions in memory for several hosts, one after another or beside each other. */
export const testSessions: Effect.Effect<Context.Context<SessionStore | SessionStorage>, never, Scope.Scope> = Layer
  .build(memorySessions)
