/**
 * What session facets register, and how the session host gives it meaning.
 *
 * The kernel keeps registrations without knowing them. Here a set of them is checked as a whole, and a checked change is made
 * visible: services first, then contributions, then what every session gets.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { ContributionEntry } from "../contribution/index.ts"
import type { BindChange, BindFault, Binding, Registered } from "../kernel/index.ts"
import type { ProviderDraft, ProviderRegistryService } from "../model/index.ts"
import type { RegistrationError, ServiceDirectoryShape, ServiceError } from "../service/index.ts"
import type {
  PromptIntake,
  Saying,
  SessionDeclaration,
  SessionRevert,
  SessionRuntimeHost,
  TurnDecisions
} from "../session/index.ts"
import type { ToolDraft, ToolRegistryService } from "../tool/index.ts"
import type {
  AgentDefinition,
  CommandDefinition,
  DefinitionDraft,
  DefinitionRegistries,
  SkillDefinition
} from "./definitions.ts"
import { type Need, workingOrder } from "./order.ts"

/** What facets of every host that provides services register. */
export type ServiceRegistration =
  | {
    readonly kind: "provide"
    readonly service: string
    /** One of many: its facet sees to it that each is there once. */
    readonly isInstance?: boolean
    readonly publish: Effect.Effect<void, RegistrationError, Scope.Scope>
  }
  /** `resolve` hands the implementation to whoever asked for it during setup; one that is `late` has it already. */
  | {
    readonly kind: "use"
    readonly service: string
    readonly late: boolean
    readonly resolve: Effect.Effect<void, ServiceError>
  }

/** One registration of a session facet. */
export type SessionRegistration =
  | ServiceRegistration
  | { readonly kind: "tool"; readonly entry: ContributionEntry<ToolDraft> }
  | { readonly kind: "provider"; readonly entry: ContributionEntry<ProviderDraft> }
  | { readonly kind: "agent"; readonly entry: ContributionEntry<DefinitionDraft<AgentDefinition>> }
  | { readonly kind: "command"; readonly entry: ContributionEntry<DefinitionDraft<CommandDefinition>> }
  | { readonly kind: "skill"; readonly entry: ContributionEntry<DefinitionDraft<SkillDefinition>> }
  | { readonly kind: "decision"; readonly saying: Saying<TurnDecisions> }
  | { readonly kind: "intake"; readonly saying: Saying<PromptIntake> }
  | { readonly kind: "reverter"; readonly saying: Saying<SessionRevert> }
  | { readonly kind: "declaration"; readonly declaration: SessionDeclaration }

type Registrations = ReadonlyArray<Registered<SessionRegistration>>

const duplicateFaults = (current: Registrations, hosted: ReadonlySet<string>): ReadonlyArray<BindFault> => {
  const owners = new Map<string, string>()
  return current.flatMap(({ item, plugin }) => {
    const unique = item.kind === "provide"
      ? item.isInstance === true ? null : `service "${item.service}"`
      : item.kind === "declaration"
      ? item.declaration.unique
      : null
    if (unique === null) return []
    if (item.kind === "provide" && hosted.has(item.service)) {
      return [{ plugin, message: `${unique} is one of the host's own; give yours another id` }]
    }
    const owner = owners.get(unique)
    if (owner === undefined) {
      owners.set(unique, plugin)
      return []
    }
    return [{
      plugin,
      message: `${unique} is there already, from plugin ${owner}; remove one of them from the manifest`
    }]
  })
}

const needFaults = (current: Registrations, plugins: ReadonlyArray<string>, hosted: ReadonlySet<string>) => {
  const providers = new Map<string, string>()
  for (const { item, plugin } of current) {
    if (item.kind === "provide" && !providers.has(item.service)) providers.set(item.service, plugin)
  }
  const uses = current.flatMap(({ item, plugin }) =>
    item.kind === "use" && !item.late && !hosted.has(item.service) ? [{ user: plugin, service: item.service }] : []
  )
  const needs = uses.flatMap(({ service, user }): ReadonlyArray<Need & { readonly service: string }> => {
    const provider = providers.get(service)
    return provider === undefined || provider === user ? [] : [{ user, provider, service }]
  })
  const order = workingOrder(plugins, needs)
  const advice = order === null
    ? "and they need each other in a circle"
    : `an order that works is ${order.join(", ")}`
  const missing = uses.filter(({ service }) => !providers.has(service)).map(({ service, user }): BindFault => ({
    plugin: user,
    message: `it uses service "${service}", which no loaded plugin provides`
  }))
  const early = needs.filter(({ provider, user }) => plugins.indexOf(user) < plugins.indexOf(provider))
    .map(({ provider, service, user }): BindFault => ({
      plugin: user,
      message: `it uses service "${service}" of plugin ${provider}, which stands after it in the manifest; ${advice}`
    }))
  return [...missing, ...early]
}

/** Those that hold an implementation of one of the plugins. What stands behind a facade needs nobody to be reloaded. */
const holders = (current: Registrations, plugins: ReadonlyArray<string>): ReadonlyArray<string> => {
  const provided = new Set(
    current.flatMap(({ item, plugin }) => item.kind === "provide" && plugins.includes(plugin) ? [item.service] : [])
  )
  return current.flatMap(({ item, plugin }) => item.kind === "use" && provided.has(item.service) ? [plugin] : [])
}

/** Services alone: what every host that provides some binds them with. Those that the host itself provides count as there. */
export const makeServiceBinding = (directory: Pick<ServiceDirectoryShape, "catalogue" | "handOver">) => {
  const published = new Map<SessionRegistration, Scope.Closeable>()
  const hosted = new Set(directory.catalogue())

  const publish = (item: SessionRegistration) =>
    Effect.gen(function*() {
      if (item.kind !== "provide") return
      const scope = yield* Scope.make()
      published.set(item, scope)
      // Checked before, so a refusal here is the host's own mistake.
      yield* Effect.orDie(Scope.provide(item.publish, scope))
    })

  const retract = (item: SessionRegistration) =>
    Effect.suspend(() => {
      const scope = published.get(item)
      published.delete(item)
      return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
    })

  return {
    check: (current: Registrations, plugins: ReadonlyArray<string>): ReadonlyArray<BindFault> => [
      ...duplicateFaults(current, hosted),
      ...needFaults(current, plugins, hosted)
    ],
    dependents: holders,
    /** Services change hands, then `more` happens, then who asked for one gets it: no order among the added ones matters. */
    apply: (
      { added, removed }: Pick<BindChange<SessionRegistration>, "added" | "removed">,
      more: Effect.Effect<void>
    ) => {
      const leaving = new Set(removed.map(({ plugin }) => plugin))
      return directory.handOver(
        ({ owner }) => leaving.has(owner),
        Effect.gen(function*() {
          yield* Effect.forEach(removed.toReversed(), ({ item }) => retract(item), { discard: true })
          yield* Effect.forEach(added, ({ item }) => publish(item), { discard: true })
          yield* more
          yield* Effect.forEach(only(added, "use"), ({ resolve }) => Effect.orDie(resolve), { discard: true })
        })
      )
    }
  }
}

const only = <K extends SessionRegistration["kind"]>(registrations: Registrations, kind: K) =>
  registrations.flatMap(({ item }) =>
    item.kind === kind ? [item as Extract<SessionRegistration, { readonly kind: K }>] : []
  )

export const makeBinding = (host: {
  readonly tools: Pick<ToolRegistryService, "replace" | "faults">
  readonly providers: Pick<ProviderRegistryService, "contributions">
  readonly definitions: DefinitionRegistries
  readonly runtime: Pick<SessionRuntimeHost, "decisions" | "declare" | "exchanging" | "intakes" | "reverters">
  readonly directory: Pick<ServiceDirectoryShape, "catalogue" | "handOver">
}): Binding<SessionRegistration> => {
  const services = makeServiceBinding(host.directory)
  return {
    check: services.check,
    dependents: services.dependents,
    // Views of sessions stay in their places until those are open again.
    around: (plugins, exchange) =>
      host.directory.handOver(({ session }) => session !== null, host.runtime.exchanging(plugins, exchange)),
    apply: (change) =>
      services.apply(
        change,
        Effect.gen(function*() {
          const { added, removed } = change
          yield* host.tools.replace({
            remove: only(removed, "tool").map(({ entry }) => entry),
            add: only(added, "tool").map(({ entry }) => entry)
          })
          yield* host.providers.contributions.replace({
            remove: only(removed, "provider").map(({ entry }) => entry),
            add: only(added, "provider").map(({ entry }) => entry)
          })
          const { agent, command, skill } = host.definitions
          yield* agent.replace({
            remove: only(removed, "agent").map(({ entry }) => entry),
            add: only(added, "agent").map(({ entry }) => entry)
          })
          yield* command.replace({
            remove: only(removed, "command").map(({ entry }) => entry),
            add: only(added, "command").map(({ entry }) => entry)
          })
          yield* skill.replace({
            remove: only(removed, "skill").map(({ entry }) => entry),
            add: only(added, "skill").map(({ entry }) => entry)
          })
          const { decisions, intakes, reverters } = host.runtime
          yield* decisions.replace({
            remove: only(removed, "decision").map(({ saying }) => saying),
            add: only(added, "decision").map(({ saying }) => saying)
          })
          yield* intakes.said.replace({
            remove: only(removed, "intake").map(({ saying }) => saying),
            add: only(added, "intake").map(({ saying }) => saying)
          })
          yield* reverters.replace({
            remove: only(removed, "reverter").map(({ saying }) => saying),
            add: only(added, "reverter").map(({ saying }) => saying)
          })
          yield* host.runtime.declare({
            remove: only(removed, "declaration").map(({ declaration }) => declaration),
            add: only(added, "declaration").map(({ declaration }) => declaration)
          })
        })
      )
  }
}
