/**
 * The program of a session host's process: takes its order from the inherited descriptor, boots its location, listens for
 * clients, and ends when it is told to, when nobody needs it, or when its coordinator is gone.
 */
import {
  endpointOptions,
  type GlobalServices,
  LocationMap,
  PluginKernel,
  SessionHost,
  Upstream,
  type UpstreamShape
} from "@bezel/core/host"
import { Connection, connectUnix, Endpoint, listenUnix } from "@bezel/core/rpc"
import { InteractionBroker, ServiceDirectory, ServiceError } from "@bezel/core/service"
import { SessionRuntime, SessionStore } from "@bezel/core/session"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { Socket } from "node:net"
import { presenting } from "./admission.ts"
import { introduced } from "./introduction.ts"
import { type FromHost, type HostOrder, lineReader, readToHost, type ToHost, writeLine } from "./order.ts"
import { rootOf } from "./root-session.ts"

const lifelineDescriptor = 3

/** The process could not do what it was started for. */
const cannot = (message: string) => new ServiceError({ code: "unavailable", message })

/** What a started process has of its coordinator. */
export interface Lifeline {
  readonly order: HostOrder
  readonly say: (message: FromHost) => void
  /** Asks for another secret. */
  readonly renew: Effect.Effect<string>
  /** Completes when it is told to end, or when its coordinator is gone. */
  readonly over: Effect.Effect<void>
}

/** For the length of the scope. Fails where this process was started by somebody else. */
export const openLifeline: Effect.Effect<Lifeline, ServiceError, Scope.Scope> = Effect.gen(function*() {
  const order = Deferred.makeUnsafe<HostOrder, ServiceError>()
  const over = Deferred.makeUnsafe<void>()
  const secrets = yield* Queue.unbounded<string>()
  const socket = yield* Effect.acquireRelease(
    Effect.try({
      try: () => new Socket({ fd: lifelineDescriptor, readable: true, writable: true }),
      catch: () => cannot("This command is for Bezel itself: a coordinator starts it, with an order on descriptor 3.")
    }),
    (line) => Effect.sync(() => line.destroy())
  )
  const say = (message: FromHost) => {
    socket.write(writeLine(message))
  }
  const gone = () => {
    Deferred.doneUnsafe(order, Effect.fail(cannot("The coordinator was gone before it gave an order.")))
    Deferred.doneUnsafe(over, Effect.void)
  }
  const take = (message: ToHost | null) => {
    if (message?.type === "order") Deferred.doneUnsafe(order, Effect.succeed(message.order))
    if (message?.type === "secret") Queue.offerUnsafe(secrets, message.secret)
    if (message?.type === "ping") say({ type: "pong" })
    if (message?.type === "stop") Deferred.doneUnsafe(over, Effect.void)
  }
  socket.on("data", lineReader((line) => take(readToHost(line)))).on("error", gone).on("end", gone).on("close", gone)
  const renew = Effect.suspend(() => {
    say({ type: "spent" })
    return Queue.take(secrets)
  })
  return { order: yield* Deferred.await(order), say, renew, over: Deferred.await(over) }
})

/** The connection to the coordinator, as whoever the order's secret says. */
const upstreamOf = ({ order, renew }: Lifeline): UpstreamShape => ({
  connect: (_, manifest) =>
    Connection.make({
      label: `the session host of ${order.host}`,
      peer: "the coordinator",
      manifest,
      connect: presenting(connectUnix(order.coordinator), order.secret, renew)
    })
})

const boot = (order: HostOrder) =>
  Effect.gen(function*() {
    const locations = yield* LocationMap
    const services = yield* locations.get(order.location.directory, order.location.workspaceID)
    const host = Context.get(services, SessionHost)
    const store = yield* SessionStore
    const isOurs = (sessionID: string) =>
      order.sessionID === null || order.sessionID === sessionID
        ? Effect.succeed(true)
        : rootOf(store, sessionID).pipe(
          Effect.map(({ id }) => id === order.sessionID),
          Effect.orElseSucceed(() => false)
        )
    const endpoint = yield* Endpoint.make({
      ...endpointOptions(host),
      attach: (sessionID, client, options) =>
        Effect.flatMap(isOurs(sessionID), (ours) =>
          ours
            ? host.attach(sessionID, client, options)
            : Effect.fail(
              new ServiceError({
                code: "invalid_arguments",
                message: `This host is for the session ${order.sessionID}, not for ${sessionID.slice(0, 80)}.`
              })
            ))
    }).pipe(
      Effect.provideService(ServiceDirectory, Context.get(services, ServiceDirectory)),
      Effect.provideService(InteractionBroker, Context.get(services, InteractionBroker))
    )
    yield* Effect.logInfo(`Session host of ${order.host}: ready.`)
    yield* Effect.forEach(
      (yield* Context.get(services, PluginKernel).plugins).filter(({ state }) => state === "failed"),
      ({ error, id }) => Effect.logWarning(`Plugin ${id}: ${error}`)
    )
    return { endpoint, host, runtime: Context.get(services, SessionRuntime) }
  })

/** Serves until it is over. */
export const serveSessionHost = (lifeline: Lifeline): Effect.Effect<void, ServiceError, GlobalServices> => {
  const { order, over, say } = lifeline
  return Effect.gen(function*() {
    const { endpoint, host, runtime } = yield* Effect.mapError(boot(order), (error) => cannot(error.message))
    yield* Effect.mapError(
      listenUnix({ path: order.socket, serve: (transport) => introduced(transport, endpoint.serve) }),
      (error) => cannot(error.message)
    )
    say({ type: "ready" })
    const isIdle = Effect.gen(function*() {
      if ((yield* endpoint.clients).length > 0 || (yield* host.session.active).length > 0) return false
      // What goes on in the background of a session is told when it ends, and for that somebody must be here.
      return Option.isSome(yield* Effect.timeoutOption(runtime.atRest, "10 millis"))
    })
    const idle = Effect.gen(function*() {
      // Twice in a row: a client that was here in between was here.
      for (let was = false;;) {
        yield* Effect.sleep(order.idleMillis / 2)
        const is = yield* isIdle
        if (was && is) return say({ type: "idle" })
        was = is
      }
    })
    yield* Effect.raceFirst(over, idle)
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.provide(LocationMap.layer, Layer.succeed(Upstream, upstreamOf(lifeline)))),
    Effect.tapError((error) => Effect.sync(() => say({ type: "failed", message: error.message.replace(/\.$/, "") })))
  )
}
