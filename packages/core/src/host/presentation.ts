/**
 * The half of a presentation host that is the same for every surface: facades over one connection, the session that is shown,
 * and interactions.
 *
 * A surface (the terminal, a web page) adds its own facilities to the context and its own registrations to the binding, and
 * boots its facets with the kernel. What a facet observes or handles begins at bind and ends with the facet. This module
 * reaches nothing of a session host.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { BindFault, FacetScope, KernelShape, Registered } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import type { ConnectionShape } from "../rpc/index.ts"
import type { LocalService, RemoteService } from "../service/index.ts"
import { ServiceDirectory } from "../service/index.ts"
import type { SessionIdentity } from "../session/identity.ts"
import type { PresentationContext } from "./context.ts"
import { guarded } from "./guard.ts"
import { makePluginLog } from "./log.ts"
import { providing } from "./providing.ts"
import { makeServiceBinding, type ServiceRegistration } from "./registrations.ts"

/** Something that a facet wants running while it is bound, or what it has to do with services of this host's own. */
export type PresentationItem =
  | { readonly presentation: Effect.Effect<void, never, Scope.Scope> }
  | { readonly service: ServiceRegistration }

/** What a surface composes with its own half. */
export interface PresentationHalf<Item = PresentationItem> {
  readonly makeContext: (facet: FacetScope<Item>, kernel: KernelShape) => PresentationContext
  readonly check: (current: ReadonlyArray<Registered<Item>>, plugins: ReadonlyArray<string>) => ReadonlyArray<BindFault>
  readonly dependents?: (
    current: ReadonlyArray<Registered<Item>>,
    plugins: ReadonlyArray<string>
  ) => ReadonlyArray<string>
  readonly apply: (change: {
    readonly current: ReadonlyArray<Registered<Item>>
    readonly added: ReadonlyArray<Registered<Item>>
    readonly removed: ReadonlyArray<Registered<Item>>
  }) => Effect.Effect<void>
}

export interface PresentationOptions {
  readonly connection: ConnectionShape
  /** Of the host, for the log; default `tui`. */
  readonly surface?: string
  /** The place whose sessions the connection leads to. */
  readonly location: LocationRef
}

const servicesIn = (
  items: ReadonlyArray<Registered<PresentationItem>>
): ReadonlyArray<Registered<ServiceRegistration>> =>
  items.flatMap((registered) => "service" in registered.item ? [{ ...registered, item: registered.item.service }] : [])

/** Over one connection. What still runs at the end of the scope is ended with it. */
export const makePresentation = (
  { connection, location, surface = "tui" }: PresentationOptions
): Effect.Effect<PresentationHalf, never, Scope.Scope> =>
  Effect.gen(function*() {
    const host = yield* Effect.scope
    const directory = yield* ServiceDirectory.make
    const locals = makeServiceBinding(directory)
    const running = new Map<Registered<PresentationItem>, Scope.Closeable>()

    const identity = (sessionID: string | null): SessionIdentity | null =>
      sessionID === null ? null : { sessionID, location }

    const stop = (item: Registered<PresentationItem>) =>
      Effect.suspend(() => {
        const scope = running.get(item)
        running.delete(item)
        return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
      })

    const start = (item: Registered<PresentationItem>) =>
      Effect.gen(function*() {
        if (!("presentation" in item.item)) return
        const scope = yield* Scope.fork(host)
        running.set(item, scope)
        yield* Scope.provide(item.item.presentation, scope)
      })

    return {
      makeContext: (facet, kernel) => {
        const register = (presentation: Effect.Effect<void, never, Scope.Scope>) =>
          Effect.asVoid(facet.register({ presentation }))
        const local = providing({ ...facet, register: (service) => facet.register({ service }) }, directory)
        const use = (token: RemoteService.Any | LocalService<unknown>): Effect.Effect<unknown> =>
          "contract" in token ? facet.own(connection.use(token)) : local.use(token)
        const context: PresentationContext = {
          plugin: facet.entry.id,
          options: facet.entry.options ?? null,
          onActivate: facet.onActivate,
          onDispose: facet.onDispose,
          own: facet.own,
          plugins: kernel.plugins,
          reload: (plugins) =>
            Effect.flatMap(
              plugins === undefined ? kernel.reloadable : Effect.succeed(plugins),
              (wanted) => wanted.length === 0 ? Effect.succeed([]) : kernel.reload({ plugins: wanted })
            ),
          log: makePluginLog(facet.entry.id, surface),
          // The overloads of the contract: the token's type decides what it gives.
          use: use as PresentationContext["use"],
          provide: local.provide,
          observe: (token, effect) => register(connection.observe(token, effect)),
          interactions: {
            handle: (interaction, handler) => register(connection.interactions.handle(interaction, handler))
          },
          connection: connection.state,
          session: {
            current: Effect.sync(() => identity(connection.session.value)),
            changes: Stream.map(connection.session.changes, identity),
            select: (sessionID) => connection.select(sessionID)
          }
        }
        return guarded(context, facet, ["plugin", "options", "connection"])
      },
      check: (current, plugins) => locals.check(servicesIn(current), plugins),
      dependents: (current, plugins) => locals.dependents(servicesIn(current), plugins),
      apply: ({ added, removed }) =>
        locals.apply(
          { added: servicesIn(added), removed: servicesIn(removed) },
          Effect.andThen(
            Effect.forEach(removed.toReversed(), stop, { discard: true }),
            Effect.forEach(added, start, { discard: true })
          )
        )
    }
  })
