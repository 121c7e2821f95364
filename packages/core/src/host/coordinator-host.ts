/**
 * The coordinator host: the same kernel, services and boundary as a session host has, one level up.
 *
 * Its facets get the fleet; its clients are session hosts. Each connection is served with the identity that the transport
 * found, so that every method can check it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { FacetScope, HostFailed, KernelOptions, KernelShape, PluginSource } from "../kernel/index.ts"
import { Kernel } from "../kernel/index.ts"
import { Endpoint } from "../rpc/index.ts"
import type { Transport } from "../rpc/index.ts"
import type { ServiceDirectoryShape } from "../service/index.ts"
import { InteractionBroker, MutableRemoteEvents, MutableRemoteState, ServiceDirectory } from "../service/index.ts"
import type { SettingsReader } from "../settings/index.ts"
import { makeClientRoster } from "./clients.ts"
import type { CoordinatorContext, Fleet } from "./coordinator-context.ts"
import { HostIdentity } from "./coordinator-identity.ts"
import { guarded } from "./guard.ts"
import { makePluginLog } from "./log.ts"
import { versionsOf } from "./plugins.ts"
import { providing } from "./providing.ts"
import { makeServiceBinding, type ServiceRegistration } from "./registrations.ts"

export interface CoordinatorOptions {
  /** The coordinator facets, in manifest order. */
  readonly plugins: ReadonlyArray<PluginSource<CoordinatorContext>>
  readonly fleet: Fleet
  readonly settings: SettingsReader
  readonly limits?: KernelOptions<never, never>["limits"]
}

export interface CoordinatorShape extends KernelShape {
  readonly directory: ServiceDirectoryShape
  /** Serves one session host until the connection closes. Whoever calls this has authenticated it. */
  readonly serve: (transport: Transport, identity: HostIdentity) => Effect.Effect<void>
  /** The session hosts that are connected. */
  readonly clients: Effect.Effect<ReadonlyArray<HostIdentity>>
}

interface Parts extends CoordinatorOptions {
  readonly directory: ServiceDirectoryShape
  readonly clients: CoordinatorContext["clients"]
}

const makeContext = (
  facet: FacetScope<ServiceRegistration>,
  kernel: Pick<KernelShape, "plugins">,
  parts: Parts
): CoordinatorContext => {
  const context: CoordinatorContext = {
    plugin: facet.entry.id,
    options: facet.entry.options ?? null,
    onActivate: facet.onActivate,
    onDispose: facet.onDispose,
    own: facet.own,
    plugins: kernel.plugins,
    log: makePluginLog(facet.entry.id, "coordinator"),
    ...providing(facet, parts.directory),
    state: (schema, initial) => MutableRemoteState.make(schema, initial),
    events: (schema) => MutableRemoteEvents.make(schema),
    fleet: parts.fleet,
    settings: parts.settings,
    clients: parts.clients
  }
  return guarded(context, facet, ["plugin", "options", "settings"])
}

const make = (options: CoordinatorOptions): Effect.Effect<CoordinatorShape, HostFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const directory = yield* ServiceDirectory.make
    const broker = yield* InteractionBroker.make
    const { clients, connected, disconnected } = yield* makeClientRoster<HostIdentity>()
    const binding = makeServiceBinding(directory)
    const kernel = yield* Kernel.make<CoordinatorContext, ServiceRegistration>({
      host: "coordinator",
      plugins: options.plugins,
      makeContext: (facet, running) => makeContext(facet, running, { ...options, directory, clients }),
      bind: {
        check: binding.check,
        dependents: binding.dependents,
        apply: (change) => binding.apply(change, Effect.void)
      },
      ...(options.limits === undefined ? {} : { limits: options.limits })
    })
    const context = yield* Effect.context<never>()
    return {
      ...kernel,
      directory,
      clients: clients.list,
      serve: (transport, identity) =>
        Effect.gen(function*() {
          // An endpoint for each connection: calls run in the context that it was made in, and the identity is of that.
          const endpoint = yield* Endpoint.make({ manifest: Effect.map(kernel.plugins, versionsOf) })
          yield* Effect.acquireUseRelease(
            Effect.sync(() => connected(transport, identity)),
            () => endpoint.serve(transport),
            () => Effect.sync(() => disconnected(transport))
          )
        }).pipe(
          Effect.provideContext(
            context.pipe(
              Context.add(ServiceDirectory, directory),
              Context.add(InteractionBroker, broker),
              Context.add(HostIdentity, identity)
            )
          )
        )
    }
  })

/** The coordinator of a deployment. Global. */
export class Coordinator extends Context.Service<Coordinator, CoordinatorShape>()("@bezel/core/host/Coordinator") {
  static readonly make = make
  static readonly layer = (options: CoordinatorOptions): Layer.Layer<Coordinator, HostFailed> =>
    Layer.effect(Coordinator, make(options))
}
