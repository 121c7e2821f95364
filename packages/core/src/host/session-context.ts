/**
 * The session host's context: builds, for one facet, the interface of `context.ts` over its scope.
 *
 * Every method registers through the facet, so that what it registers is staged, becomes visible with everything else, and
 * goes with it. Nothing here is held by anybody but the facet.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Contributor } from "../contribution/index.ts"
import type {
  HarnessExtensions,
  HookedKind,
  HookKind,
  HookOptions,
  JobSpec,
  Namespace,
  Registration,
  TaskExtensions,
  TaskKind
} from "../harness/index.ts"
import type { FacetScope, KernelShape } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import type { ProviderDraft, ProviderRegistryService } from "../model/index.ts"
import type {
  ClientIdentity,
  Implementation,
  InteractionBrokerShape,
  RemoteService,
  ServiceDirectoryShape
} from "../service/index.ts"
import { MutableRemoteEvents, MutableRemoteState } from "../service/index.ts"
import type { OpenSession, Saying, SessionApi, SessionDeclaration, SessionRuntimeHost } from "../session/index.ts"
import { declareHooks, declareNamespace, declareSection, declareSession, declareTask } from "../session/index.ts"
import type { SettingsReader } from "../settings/index.ts"
import type { ToolDraft, ToolRegistryService } from "../tool/index.ts"
import type { ClientRoster } from "./clients.ts"
import type { Contribution, DefinitionContribution, ListedProvider, SessionContext } from "./context.ts"
import type { DefinitionDraft, DefinitionRegistries, DefinitionRegistry } from "./definitions.ts"
import { type Generations, readBy } from "./generation.ts"
import { guarded } from "./guard.ts"
import { makePluginLog } from "./log.ts"
import { granted } from "./powers.ts"
import { providing } from "./providing.ts"
import type { SessionRegistration } from "./registrations.ts"
import type { UpstreamOfHost } from "./upstream.ts"
import { upstreamOf } from "./upstream.ts"

/** What the context of every facet of one location is made of. */
export interface SessionHostParts {
  readonly location: LocationRef
  readonly settings: SettingsReader
  readonly session: SessionApi
  readonly runtime: SessionRuntimeHost
  readonly directory: ServiceDirectoryShape
  readonly broker: InteractionBrokerShape
  readonly tools: ToolRegistryService
  readonly providers: ProviderRegistryService
  readonly job: TaskKind<JobSpec>
  readonly definitions: DefinitionRegistries
  readonly generations: Generations
  readonly upstream: UpstreamOfHost
  readonly filesystem: SessionContext["filesystem"]
  readonly process: SessionContext["process"]
  readonly roster: ClientRoster<ClientIdentity>
}

type SessionFacet = FacetScope<SessionRegistration>

const registering = (facet: SessionFacet) => {
  const contributor: Contributor = {
    plugin: facet.entry.id,
    version: facet.entry.version ?? "0.0.0",
    order: facet.order
  }
  const register = (item: SessionRegistration): Effect.Effect<Registration> =>
    Effect.map(facet.register(item), (unregister) => ({ unregister }))
  /** Also ends with the scope that it is called in, which may be shorter than the facet's. */
  const scoped = (item: SessionRegistration): Effect.Effect<Registration, never, Scope.Scope> =>
    Effect.acquireRelease(register(item), ({ unregister }) => unregister)
  return { contributor, register, scoped }
}

const contribution = <Draft, Item>(
  contribute: (change: (draft: Draft) => void) => Effect.Effect<Registration>,
  reload: Effect.Effect<void>,
  list: Effect.Effect<ReadonlyArray<Item>>
): Contribution<Draft, Item> => ({ transform: contribute, reload, list })

const defined = <D>(
  registry: DefinitionRegistry<D>,
  contribute: (change: (draft: DefinitionDraft<D>) => void) => Effect.Effect<Registration>
): DefinitionContribution<D> => ({
  ...contribution(contribute, registry.reload, registry.current),
  changes: registry.changes
})

const saying = <A>({ order, plugin }: Contributor, value: A): Saying<A> => ({ plugin, order, value })

const harnessExtensions = (facet: SessionFacet, parts: SessionHostParts): HarnessExtensions & TaskExtensions => {
  const { contributor, scoped } = registering(facet)
  const declare = (declaration: SessionDeclaration) => scoped({ kind: "declaration", declaration })
  return {
    namespace: (id, shape, options) =>
      Effect.gen(function*() {
        const { bindUnregister, declaration, token } = declareNamespace(contributor, parts.runtime, id, shape, options)
        const { unregister } = yield* declare(declaration)
        bindUnregister(unregister)
        return token
      }),
    hooks: (namespace: Namespace, kind: HookKind | HookedKind, handlers: object, options?: HookOptions) =>
      declare(declareHooks(contributor, namespace, kind, handlers, options, parts.runtime.code)),
    section: (section) => declare(declareSection(contributor, section, parts.runtime.code)),
    task: (kind) => declare(declareTask(contributor, kind.name, (harness) => harness.task(kind)))
  }
}

const services = (facet: SessionFacet, { directory }: SessionHostParts) => {
  const { contributor, register } = registering(facet)
  const owner = contributor.plugin

  const providePerSession = <S extends RemoteService.Any>(
    token: S,
    make: (session: OpenSession) => Effect.Effect<Implementation<S>, unknown, Scope.Scope>
  ) =>
    Effect.gen(function*() {
      yield* register({
        kind: "provide",
        service: token.id,
        publish: directory.declare(token, { perSession: true })
      })
      yield* register({
        kind: "declaration",
        declaration: declareSession(contributor, (session) =>
          Effect.flatMap(make(session), (implementation) =>
            Effect.asVoid(directory.provide(token, implementation, { owner, session: session.identity.sessionID }))))
      })
    }).pipe(Effect.withSpan("ctx.providePerSession", { attributes: { service: token.id } }))

  return {
    ...providing(facet, directory),
    providePerSession,
    onSession: (effect: Parameters<SessionContext["onSession"]>[0]) =>
      Effect.asVoid(register({ kind: "declaration", declaration: declareSession(contributor, effect) }))
  }
}

/** The context of one session facet. */
export const makeSessionContext = (
  facet: SessionFacet,
  kernel: Pick<KernelShape, "plugins">,
  parts: SessionHostParts
): SessionContext => {
  const generation = parts.generations.add(facet)
  const { contributor, register } = registering(facet)
  const context: SessionContext = {
    plugin: facet.entry.id,
    options: facet.entry.options ?? null,
    onActivate: facet.onActivate,
    onDispose: facet.onDispose,
    own: facet.own,
    plugins: kernel.plugins,
    log: makePluginLog(facet.entry.id, "session", { location: parts.location.directory }),
    location: parts.location,
    settings: readBy(generation, parts.settings),
    filesystem: parts.filesystem,
    process: parts.process,
    clients: parts.roster.clients,
    ...services(facet, parts),
    state: (schema, initial) => MutableRemoteState.make(schema, initial),
    events: (schema) => MutableRemoteEvents.make(schema),
    upstream: upstreamOf(facet, parts.upstream),
    session: parts.session,
    tool: contribution<
      ToolDraft,
      { readonly name: string; readonly plugin: string; readonly description: string; readonly namesAccess: boolean }
    >(
      (change) =>
        register({ kind: "tool", entry: { contributor, change: parts.generations.tools(generation, change) } }),
      parts.tools.reload,
      parts.tools.list
    ),
    provider: contribution<ProviderDraft, ListedProvider>(
      (change) =>
        register({ kind: "provider", entry: { contributor, change: parts.generations.providers(generation, change) } }),
      parts.providers.contributions.reload,
      Effect.map(
        parts.providers.table,
        ({ plugins, providers }) =>
          [...providers.values()].map(({ availability, discover, id, key, name }) => ({
            id,
            plugin: plugins.get(id) ?? "the host",
            name,
            availability,
            takesKey: key !== undefined,
            keySource: key?.source ?? null,
            discover: discover ?? null
          }))
      )
    ),
    models: { resolve: parts.providers.resolve },
    agent: defined(parts.definitions.agent, (change) => register({ kind: "agent", entry: { contributor, change } })),
    command: defined(
      parts.definitions.command,
      (change) => register({ kind: "command", entry: { contributor, change } })
    ),
    skill: defined(parts.definitions.skill, (change) => register({ kind: "skill", entry: { contributor, change } })),
    interactions: {
      request: parts.broker.request,
      relay: ({ from, to }) => parts.broker.relay(from, to),
      unattended: (sessionID, policy) =>
        Effect.acquireRelease(
          parts.broker.unattended(sessionID, policy),
          () => parts.broker.unattended(sessionID, null)
        )
    },
    turns: {
      configure: (options) =>
        granted(facet, "turns", Effect.asVoid(register({ kind: "decision", saying: saying(contributor, options) })))
    },
    intake: (intake) => Effect.asVoid(register({ kind: "intake", saying: saying(contributor, intake) })),
    reverting: (by) =>
      granted(facet, "reverting", Effect.asVoid(register({ kind: "reverter", saying: saying(contributor, by) }))),
    job: parts.job,
    ...harnessExtensions(facet, parts)
  }
  return guarded(context, facet, ["plugin", "options", "location", "settings", "job"])
}
