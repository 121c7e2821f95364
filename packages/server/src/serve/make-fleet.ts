/** Makes the fleet of a server over whatever places its session hosts. */
import { Registries } from "@bezel/core/host"
import { makeKeyed } from "@bezel/core/location"
import type { ConnectionShape } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import { type SessionApi, SessionStore, type SessionStoreShape } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { HostProcesses, type HostProcessesShape } from "../host-processes.ts"
import { Placement } from "../placement.ts"
import { Fleet, type FleetShape, type Offered } from "./fleet.ts"
import type { Roll } from "./roll.ts"

/** How the lists that plugins keep are asked for, at a client of a location's host. */
export interface OfferedLists {
  readonly agents?: OfferedList
  readonly commands?: OfferedList
  readonly skills?: OfferedList
}

export type OfferedList = (
  connection: ConnectionShape
) => Effect.Effect<ReadonlyArray<Offered>, ServiceError, Scope.Scope>

export interface FleetOptions {
  readonly lists: OfferedLists
  readonly roll: Pick<Roll, "enter">
}

/** How long the client of a location stays after its last use. */
const idleTime = "30 seconds"

/** A session that was just used here closes a moment after its last use; until then it cannot be deleted. */
const untilClosed = Schedule.spaced("50 millis").pipe(Schedule.upTo({ duration: "6 seconds" }))

const removing =
  (store: SessionStoreShape, processes: HostProcessesShape): SessionStoreShape["remove"] => (sessionID) =>
    Effect.retry(Effect.andThen(processes.letGo(sessionID), store.remove(sessionID)), {
      schedule: untilClosed,
      while: (error) =>
        error._tag !== "SessionInUse"
          ? Effect.succeed(false)
          : Effect.map(
            processes.status,
            (hosts) => error.holder.pid === process.pid || hosts.some(({ pid }) => pid === error.holder.pid)
          )
    })

/** Where nobody keeps agents, there are none. */
const missingAgent = (name: string, agents: Effect.Effect<ReadonlyArray<Offered>, ServiceError>) =>
  agents.pipe(
    Effect.catch((error) => error.code === "unknown_service" ? Effect.succeed([]) : Effect.fail(error)),
    Effect.map((all) => {
      const wanted = JSON.stringify(name.slice(0, 80))
      if (all.some((agent) => agent.name === name)) return null
      return all.length === 0
        ? `There is no agent ${wanted} here; there are no agents at all`
        : `There is no agent ${wanted} here; there are ${all.map((agent) => agent.name).join(", ")}`
    })
  )

const make = ({ lists, roll }: FleetOptions) =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const files = yield* SessionStorage
    const placement = yield* Placement
    const processes = yield* HostProcesses
    const records: SessionStoreShape = { ...store, remove: removing(store, processes) }

    /** One client for each place, for whoever asks for its lists. */
    const clients = yield* makeKeyed({
      make: ({ directory, workspaceID }: { readonly directory: string; readonly workspaceID: string | null }) =>
        Effect.flatMap(placement.place(directory, workspaceID), (host) => host.connect({ label: "server" })),
      idleTime
    })
    const unavailable = (error: { readonly message: string }) =>
      error instanceof ServiceError ? error : new ServiceError({ code: "unavailable", message: error.message })

    const location: FleetShape["location"] = (directory, workspaceID = null) =>
      Effect.map(placement.place(directory, workspaceID), (host) => {
        const { location } = host
        const ask = <A, E>(question: (client: ConnectionShape) => Effect.Effect<A, E | ServiceError, Scope.Scope>) =>
          Effect.scoped(Effect.flatMap(Effect.mapError(clients.get(location), unavailable), question))
        const listed = (list: OfferedList | undefined) => list === undefined ? Effect.succeed([]) : ask(list)
        return {
          location,
          session: onRoll(host.session),
          tools: ask((client) => Effect.flatMap(client.use(Registries), (registries) => registries.tools())),
          models: ask((client) => Effect.flatMap(client.use(Registries), (registries) => registries.models())),
          plugins: host.plugins,
          agents: listed(lists.agents),
          commands: listed(lists.commands),
          skills: listed(lists.skills),
          missingModel: (ref) =>
            ask((client) => Effect.flatMap(client.use(Registries), (registries) => registries.missingModel(ref))),
          missingAgent: (name) =>
            lists.agents === undefined ? Effect.succeed(null) : missingAgent(name, listed(lists.agents))
        }
      })

    /** Whatever gives a session work enters it first. */
    const onRoll = (session: SessionApi): SessionApi => ({
      ...session,
      remove: records.remove,
      prompt: (options) => Effect.andThen(roll.enter(options.sessionID), session.prompt(options)),
      steer: (options) => Effect.andThen(roll.enter(options.sessionID), session.steer(options)),
      resume: (sessionID) => Effect.andThen(roll.enter(sessionID), session.resume(sessionID))
    })

    const placeOf = (sessionID: string) =>
      Effect.flatMap(store.get(sessionID), ({ location: { directory, workspaceID } }) =>
        placement.place(directory, workspaceID))

    return Fleet.of({
      records,
      files,
      processes,
      location,
      session: (sessionID) =>
        Effect.gen(function*() {
          const { session } = yield* placeOf(sessionID)
          return onRoll(session)
        }),
      attached: processes.attached,
      working: (sessionID) =>
        Effect.andThen(roll.enter(sessionID), processes.working(sessionID)),
      relay: (sessionID, transport, { name }) =>
        Effect.gen(function*() {
          const host = yield* placeOf(sessionID)
          yield* roll.enter(sessionID)
          yield* host.serve(transport, { sessionID, user: name })
        }).pipe(
          Effect.catch((error) =>
            transport.dismiss(
              error._tag === "UnknownSession"
                ? new ServiceError({ code: "invalid_arguments", message: error.message })
                : unavailable(error)
            )
          ),
          Effect.scoped
        )
    })
  })

export const fleetLayer = (options: FleetOptions) => Layer.effect(Fleet, make(options))
