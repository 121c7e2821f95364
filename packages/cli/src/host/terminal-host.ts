/**
 * What a terminal shows sessions of: a host in this process, or a server. It sees no difference beyond this file's interface.
 */
import { Registries } from "@bezel/core/host/contract"
import type { LocationRef } from "@bezel/core/location"
import type { ModelRef } from "@bezel/core/model"
import type { ConnectionShape, PluginVersion } from "@bezel/core/rpc"
import { AgentList } from "@bezel/plugins/agents/contract"
import type { PlacedHost } from "@bezel/server"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Exit, exitCode } from "../exit.ts"

export interface ShownSession {
  readonly id: string
  readonly location: LocationRef
}

/** What a session is given on the command line. */
export interface Chosen {
  readonly model: ModelRef | null
  readonly agent: string | null
}

/** Everything fails with an error whose message is for people. */
export interface TerminalHost {
  readonly find: (sessionID: string) => Effect.Effect<ShownSession, Error>
  /** The latest session of the place, if it has one. */
  readonly latest: Effect.Effect<ShownSession | null, Error>
  readonly create: (chosen: Chosen) => Effect.Effect<ShownSession, Error>
  readonly choose: (sessionID: string, chosen: Chosen) => Effect.Effect<void, Error>
  /** Names of the agents of the place; `null` where they can be asked for only once the place has a session. */
  readonly agents: Effect.Effect<ReadonlyArray<string> | null, Error>
  /** Whether nothing was said in it. */
  readonly isEmpty: (sessionID: string) => Effect.Effect<boolean, Error>
  readonly remove: (sessionID: string) => Effect.Effect<void, Error>
  /** A client of the session's host, attached to it. `manifest` are the terminal's plugins. */
  readonly connect: (
    session: ShownSession,
    manifest: ReadonlyArray<PluginVersion>
  ) => Effect.Effect<ConnectionShape, Error, Scope.Scope>
}

/** What was chosen, as a patch of a conversation's settings; `null` where nothing was. */
export const patchOf = ({ agent, model }: Chosen) =>
  agent === null && model === null
    ? null
    : { ...(model === null ? {} : { model }), ...(agent === null ? {} : { agent }) }

/** A model that there is not is told before anything is written, as servers do. */
const refuseUnknown = (connect: PlacedHost["connect"], { model }: Chosen): Effect.Effect<void, Error> =>
  model === null ? Effect.void : Effect.scoped(Effect.gen(function*() {
    const connection = yield* connect({ label: "models" })
    const missing = yield* (yield* connection.use(Registries)).missingModel(model)
    if (missing !== null) return yield* Effect.fail(new Exit(exitCode.usage, missing))
  }))

/** A host in this process. */
export const placedTerminalHost = ({ connect, location, session }: PlacedHost): TerminalHost => ({
  find: (sessionID) => Effect.map(session.get(sessionID), ({ id }) => ({ id, location })),
  latest: Effect.map(
    session.list({ location, parentID: null, archived: false, limit: 1 }),
    ({ sessions: [latest] }) => latest === undefined ? null : { id: latest.id, location }
  ),
  create: (chosen) =>
    Effect.andThen(
      refuseUnknown(connect, chosen),
      Effect.map(session.create(chosen), ({ id }) => ({ id, location }))
    ),
  choose: (sessionID, chosen) => {
    const patch = patchOf(chosen)
    return patch === null
      ? Effect.void
      : Effect.andThen(refuseUnknown(connect, chosen), session.configure(sessionID, patch))
  },
  agents: Effect.scoped(Effect.gen(function*() {
    const connection = yield* connect({ label: "agents" })
    const agents = yield* (yield* connection.use(AgentList)).list()
    return agents.map(({ name }) => name)
  })),
  isEmpty: (sessionID) =>
    Effect.map(session.messages(sessionID, { limit: 1 }), ({ messages }) => messages.length === 0),
  remove: session.remove,
  connect: ({ id }, manifest) => connect({ label: "terminal", sessionID: id, manifest })
})
