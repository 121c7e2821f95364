/**
 * The service directory of a host: who provides what, for the whole host, for one session, or per key.
 *
 * In this process `use` gives the implementation itself. An endpoint reads the same directory for its connections and
 * reaches only what a remote token names; local services stand here too, so that ids are unique, and have no remote form.
 * The directory knows nothing of plugins: owners are names for error messages.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Location } from "../location/index.ts"
import { isDurable } from "./contract.ts"
import type { Implementation, LocalService, RemoteService } from "./contract.ts"
import { durableLog } from "./durable.ts"
import { ServiceError } from "./error.ts"
import { eventFeed } from "./events.ts"
import { isStateCell } from "./state.ts"

/** A registration was refused. The message names both owners, or the member that does not fit. */
export class RegistrationError extends Schema.TaggedError<RegistrationError>()("RegistrationError", {
  reason: Schema.Literals(["duplicate", "incomplete"]),
  service: Schema.String,
  message: Schema.String
}) {}

/** Where an instance lives, and what it is called there. */
export interface Placement {
  /** Who provides it, for error messages: a plugin's id. */
  readonly owner?: string
  /** The session it belongs to; of the whole host if left out. */
  readonly session?: string
  /** For services with many instances. */
  readonly key?: string
  /** What stands behind it outlives the registration: calls under way go on when it is handed over to a successor. */
  readonly isEnduring?: boolean
}

/** One live registration of a remote service. */
export interface Instance {
  readonly token: RemoteService.Any
  readonly owner: string
  readonly session: string | null
  readonly key: string | null
  /** Unique in the directory. A closed key that is used again is another generation. */
  readonly generation: number
  /** Opens when the registration ends. */
  readonly closed: Latch.Latch
  /** Erased: the token says what its members are. */
  readonly implementation: object
}

/** Where an endpoint looks: a host-wide instance first, else the one of `session`. */
export interface Lookup {
  readonly service: string
  readonly key: string | null
  readonly session: string | null
  /** Only the instance of this number. */
  readonly generation?: number | undefined
}

export interface ServiceDirectoryShape {
  /** Changes when the authority restarts. */
  readonly epoch: string
  /** Registers an implementation for the length of the scope. */
  readonly provide: <S extends RemoteService.Any>(
    token: S,
    implementation: Implementation<S>,
    placement?: Placement
  ) => Effect.Effect<Instance, RegistrationError, Scope.Scope>
  /**
   * Instances that `concerns` says yes to and whose registration ends while the effect runs stay in their places until a
   * successor takes them, at the latest until the effect has ended: nobody sees such a service missing in between.
   */
  readonly handOver: <A, E, R>(
    concerns: (instance: Instance) => boolean,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  readonly provideLocal: <A>(
    token: LocalService<A>,
    implementation: A,
    placement?: Pick<Placement, "owner">
  ) => Effect.Effect<void, RegistrationError, Scope.Scope>
  /** Says that a service is one of this host's, before anybody provides it or while no session is attached. */
  readonly declare: (token: RemoteService.Any, options: { readonly perSession: boolean }) => Effect.Effect<void>
  /** The implementation itself; `unavailable` while nobody provides it. */
  readonly use: <S extends RemoteService.Any>(
    token: S,
    placement?: Pick<Placement, "session" | "key">
  ) => Effect.Effect<Implementation<S>, ServiceError>
  readonly useLocal: <A>(token: LocalService<A>) => Effect.Effect<A, ServiceError>

  /** For endpoints: the declared remote token of an id. Local and unknown ids are both absent. */
  readonly declared: (
    service: string
  ) => { readonly token: RemoteService.Any; readonly perSession: boolean } | undefined
  readonly lookup: (at: Lookup) => Instance | undefined
  /** Live keyed instances of a service that a connection attached to `session` may see. */
  readonly keyed: (service: string, session: string | null) => ReadonlyArray<Instance>
  /** Live keyed instances of a service, those of all sessions included: for this process itself. */
  readonly everyKeyed: (service: string) => ReadonlyArray<Instance>
  readonly catalogue: () => ReadonlyArray<string>
  /** Version of each declared contract by service id. */
  readonly contracts: () => { readonly [service: string]: number }
  /** Called after each change; must not throw or wait. */
  readonly watch: (listener: () => void) => () => void
}

export class ServiceDirectory extends Context.Service<ServiceDirectory, ServiceDirectoryShape>()(
  "bezel/service/ServiceDirectory"
) {
  static readonly make: Effect.Effect<ServiceDirectoryShape> = Effect.sync(() => new Directory())
  static readonly layer: Layer.Layer<ServiceDirectory, never, Location> = Layer.effect(
    ServiceDirectory,
    Effect.andThen(Location, ServiceDirectory.make)
  )
}

/** The owner of what no plugin provides. */
const theHost = "the host"

const place = (service: string, session: string | null, key: string | null): string =>
  JSON.stringify([service, session, key])

const quoted = (owner: string): string => owner === theHost ? owner : `plugin "${owner}"`

class Directory implements ServiceDirectoryShape {
  readonly epoch = crypto.randomUUID()
  private readonly instances = new Map<string, Instance>()
  private readonly locals = new Map<string, { readonly owner: string; readonly implementation: unknown }>()
  private readonly tokens = new Map<string, { readonly token: RemoteService.Any; readonly perSession: boolean }>()
  private readonly listeners = new Set<() => void>()
  private readonly handOvers = new Set<(instance: Instance) => boolean>()
  /** Ended, and still in their places. */
  private readonly leaving = new Set<Instance>()
  private generations = 0

  readonly provide: ServiceDirectoryShape["provide"] = (token, implementation, placement = {}) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const before = this.instances.get(place(token.id, placement.session ?? null, placement.key ?? null))
        const inherits = before !== undefined && placement.isEnduring === true && this.leaving.has(before)
        const instance: Instance = {
          token,
          owner: placement.owner ?? theHost,
          session: placement.session ?? null,
          key: placement.key ?? null,
          generation: ++this.generations,
          closed: inherits ? before.closed : Latch.makeUnsafe(false),
          implementation
        }
        const refused = this.refusal(instance)
        if (refused !== undefined) return Effect.fail(refused)
        this.instances.set(place(token.id, instance.session, instance.key), instance)
        if (inherits) this.leaving.delete(before)
        else if (before !== undefined) this.leave(before)
        const known = this.tokens.get(token.id)
        this.tokens.set(token.id, { token, perSession: known?.perSession ?? instance.session !== null })
        this.changed()
        return Effect.succeed(instance)
      }),
      (instance) =>
        Effect.sync(() => {
          if (this.isHandedOver(instance)) this.leaving.add(instance)
          else if (this.leave(instance)) this.changed()
        })
    )

  readonly handOver: ServiceDirectoryShape["handOver"] = (concerns, effect) =>
    Effect.acquireUseRelease(
      Effect.sync(() => this.handOvers.add(concerns)),
      () => effect,
      () =>
        Effect.sync(() => {
          this.handOvers.delete(concerns)
          const ended = [...this.leaving].filter((instance) => !this.isHandedOver(instance))
          if (ended.map((instance) => this.leave(instance)).includes(true)) this.changed()
        })
    )

  readonly provideLocal: ServiceDirectoryShape["provideLocal"] = (token, implementation, placement = {}) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const owner = placement.owner ?? theHost
        const other = this.locals.get(token.id)?.owner ?? this.ownerOf(token.id)
        if (other !== undefined) return Effect.fail(duplicate(token.id, other, owner))
        const entry = { owner, implementation }
        this.locals.set(token.id, entry)
        return Effect.succeed(entry)
      }),
      (entry) =>
        Effect.sync(() => {
          if (this.locals.get(token.id) === entry) this.locals.delete(token.id)
        })
    ).pipe(Effect.asVoid)

  readonly declare: ServiceDirectoryShape["declare"] = (token, options) =>
    Effect.sync(() => {
      this.tokens.set(token.id, { token, perSession: options.perSession })
      this.changed()
    })

  readonly use: ServiceDirectoryShape["use"] = <S extends RemoteService.Any>(
    token: S,
    placement: Pick<Placement, "session" | "key"> = {}
  ) =>
    Effect.suspend(() => {
      const at = { service: token.id, session: placement.session ?? null, key: placement.key ?? null }
      const instance = this.lookup(at)
      // The erasure point of the directory: what was registered under a token has the token's type.
      return instance === undefined
        ? Effect.fail(unavailable(token.id))
        : Effect.succeed(instance.implementation as Implementation<S>)
    })

  readonly useLocal: ServiceDirectoryShape["useLocal"] = <A>(token: LocalService<A>) =>
    Effect.suspend(() => {
      const entry = this.locals.get(token.id)
      return entry === undefined ? Effect.fail(unavailable(token.id)) : Effect.succeed(entry.implementation as A)
    })

  readonly declared: ServiceDirectoryShape["declared"] = (service) => this.tokens.get(service)

  readonly lookup: ServiceDirectoryShape["lookup"] = (at) =>
    this.at(at, null) ?? (at.session === null ? undefined : this.at(at, at.session))

  private at({ generation, key, service }: Lookup, session: string | null): Instance | undefined {
    const found = this.instances.get(place(service, session, key))
    return generation === undefined || found?.generation === generation ? found : undefined
  }

  readonly keyed: ServiceDirectoryShape["keyed"] = (service, session) =>
    [...this.instances.values()].filter((instance) =>
      instance.token.id === service && instance.key !== null &&
      (instance.session === null || instance.session === session)
    )

  readonly everyKeyed: ServiceDirectoryShape["everyKeyed"] = (service) =>
    [...this.instances.values()].filter((instance) => instance.token.id === service && instance.key !== null)

  readonly catalogue: ServiceDirectoryShape["catalogue"] = () => [...this.tokens.keys()].sort()

  readonly contracts: ServiceDirectoryShape["contracts"] = () =>
    Object.fromEntries([...this.tokens].map(([id, { token }]) => [id, token.contract.version ?? 1]))

  readonly watch: ServiceDirectoryShape["watch"] = (listener) => {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  private refusal(instance: Instance): RegistrationError | undefined {
    const id = instance.token.id
    const local = this.locals.get(id)
    if (local !== undefined) return duplicate(id, local.owner, instance.owner)
    const other = this.instances.get(place(id, instance.session, instance.key))
    if (other !== undefined && !this.leaving.has(other)) {
      return duplicate(id, other.owner, instance.owner, instance.key)
    }
    return misfit(instance)
  }

  private remove(instance: Instance): boolean {
    const at = place(instance.token.id, instance.session, instance.key)
    return this.instances.get(at) === instance && this.instances.delete(at)
  }

  private isHandedOver(instance: Instance): boolean {
    return this.instances.get(place(instance.token.id, instance.session, instance.key)) === instance &&
      [...this.handOvers].some((concerns) => concerns(instance))
  }

  /** Ends an instance for good; true if it was still in its place. */
  private leave(instance: Instance): boolean {
    this.leaving.delete(instance)
    instance.closed.openUnsafe()
    return this.remove(instance)
  }

  private ownerOf(service: string): string | undefined {
    for (const instance of this.instances.values()) if (instance.token.id === service) return instance.owner
    return undefined
  }

  private changed(): void {
    for (const listener of this.listeners) listener()
  }
}

const misfit = (instance: Instance): RegistrationError | undefined => {
  const missing = misfitOf(instance.token, instance.implementation)
  return missing === undefined ? undefined : new RegistrationError({
    reason: "incomplete",
    service: instance.token.id,
    message: `The implementation of service "${instance.token.id}" by ${quoted(instance.owner)} needs ${missing}.`
  })
}

/** What an implementation misses of its token. */
export const misfitOf = ({ contract }: RemoteService.Any, implementation: object): string | undefined => {
  for (const name of Object.keys(contract.state ?? {})) {
    if (!isStateCell(Reflect.get(implementation, name))) return `a state (from ctx.state) named "${name}"`
  }
  for (const [name, event] of Object.entries(contract.events ?? {})) {
    const source: unknown = Reflect.get(implementation, name)
    if (isDurable(event) && durableLog(source) === undefined) {
      return `a durable event source (from MutableDurableEvents.make) named "${name}"`
    }
    if (eventFeed(source) === undefined) {
      return `an event source (from ctx.events) named "${name}"`
    }
  }
  for (const name of Object.keys(contract.methods ?? {})) {
    if (typeof Reflect.get(implementation, name) !== "function") return `a method named "${name}"`
  }
  return undefined
}

const duplicate = (service: string, one: string, other: string, key: string | null = null): RegistrationError =>
  new RegistrationError({
    reason: "duplicate",
    service,
    message:
      `Service "${service}"${key === null ? "" : ` with key "${key}"`} is provided twice: by ${quoted(one)} and by ` +
      `${quoted(other)}. Remove one of them from the manifest.`
  })

export const unavailable = (service: string): ServiceError =>
  new ServiceError({ code: "unavailable", message: `Nobody provides service "${service}" at the moment.` })
