/**
 * The kernel: boots the facets of one host in manifest order, reloads them, and closes them in reverse.
 *
 *     load → setup → bind → activate → (ready: the host's own step)
 *       └───────┴───────┴───────┴──→ failed: taken out, or, when required, everything is closed again
 *
 * It knows scopes, order and failure. What a facet registers is opaque to it: the host says through `bind` whether a set of
 * registrations holds together and makes a set visible, in one step. Nothing staged is visible before, a plugin that failed
 * is never half visible, and closing runs every finalizer, whatever fails on the way.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Facet, FacetScope, Limits, Registered, RunningFacet } from "./facet.ts"
import { makeFacet, SetupOf } from "./facet.ts"
import { makeLine } from "./line.ts"
import { entryFault, type ManifestEntry } from "./manifest.ts"
import { reloadSlots, type Slot } from "./reload.ts"
import type { PluginFailure, PluginPhase, PluginStatus } from "./status.ts"
import { causeMessage, HostFailed, type ReloadFailed } from "./status.ts"

/** Code of a plugin that was loaded anew. */
export interface LoadedPlugin<Context> {
  /** With the version of the new code. */
  readonly entry: ManifestEntry
  /** `undefined` if the plugin has no facet for this host (any more). */
  readonly facet: Facet<Context> | undefined
}

/** Where one plugin's facet for this host comes from. */
export interface PluginSource<Context> {
  readonly entry: ManifestEntry
  /** Gives the facet, or `undefined` if the plugin has none for this host. A failure or defect fails this plugin only. */
  readonly load: Effect.Effect<Facet<Context> | undefined, unknown>
  /** The same from fresh code, for a reload. Without it the facet of `load` is set up again. */
  readonly reload?: Effect.Effect<LoadedPlugin<Context>, unknown>
}

/** Why a set of registrations does not hold together, and whose fault it is. */
export interface BindFault {
  readonly plugin: string
  /** One plain sentence that names who is concerned and what would work. */
  readonly message: string
}

/** A change of what is visible, in manifest order. */
export interface BindChange<Item> {
  readonly current: ReadonlyArray<Registered<Item>>
  readonly added: ReadonlyArray<Registered<Item>>
  readonly removed: ReadonlyArray<Registered<Item>>
}

/** How a host gives meaning to registrations. */
export interface Binding<Item> {
  /** Reports all faults of a set together. `plugins` are those that take part, in manifest order. */
  readonly check: (
    current: ReadonlyArray<Registered<Item>>,
    plugins: ReadonlyArray<string>
  ) => ReadonlyArray<BindFault>
  /** Makes a checked change visible in one step. Must not register anything itself. */
  readonly apply: (change: BindChange<Item>) => Effect.Effect<void>
  /** Plugins that hold what one of `plugins` has registered, so that they must be reloaded with it. Default: none. */
  readonly dependents?: (
    current: ReadonlyArray<Registered<Item>>,
    plugins: ReadonlyArray<string>
  ) => ReadonlyArray<string>
  /**
   * Runs around the exchange of old facets for new ones, their activation included: work that runs through the plugins'
   * code is brought to rest before and taken up again after. It must run `exchange` exactly once.
   */
  readonly around?: <A, E>(
    plugins: ReadonlyArray<string>,
    exchange: Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
}

export interface KernelOptions<Context, Item> {
  /** Name of the host, for messages: `session`, `tui`. */
  readonly host: string
  /** The plugins in manifest order. */
  readonly plugins: ReadonlyArray<PluginSource<Context>>
  readonly makeContext: (facet: FacetScope<Item>, kernel: Kernel) => Context
  readonly bind: Binding<Item>
  /**
   * Names of the powers that an entry may grant. What they are is known to the host alone; one that has none leaves `grants`
   * to the hosts that it shares the manifest with.
   */
  readonly powers?: ReadonlyArray<string>
  /** Time limit of each phase of each plugin; default 10 seconds. */
  readonly limits?: { readonly [phase in PluginPhase]?: Duration.Input }
  /** Told of each failure that does not fail the host, while booting and while closing. Default: a warning in the log. */
  readonly report?: (failure: PluginFailure) => Effect.Effect<void>
}

/** What a reload is asked for. */
export interface ReloadOptions {
  /** Ids of plugins; all if left out. Those that use their services are reloaded with them. */
  readonly plugins?: ReadonlyArray<string>
  /** Set the code up again that is there, without loading anything: for a change of what it reads. Default: false. */
  readonly keepCode?: boolean
  /** Runs before old code is set up again after all, so that it finds what it was set up with. */
  readonly restoring?: Effect.Effect<void>
}

export interface Kernel {
  /** All plugins of the manifest, in order, with the state of each. */
  readonly plugins: Effect.Effect<ReadonlyArray<PluginStatus>>
  /**
   * Replaces the code of plugins, never state, and gives the ids of those that run new code now. The candidates are loaded
   * and set up beside the old facets; if one fails, nothing has happened. If one fails when activated, the old code is set
   * up and activated again. One reload at a time; interrupting who asked for it does not stop it.
   */
  readonly reload: (options?: ReloadOptions) => Effect.Effect<ReadonlyArray<string>, ReloadFailed>
  /** Ids of the plugins whose code can be loaded anew, in order; the others are parts of the program. */
  readonly reloadable: Effect.Effect<ReadonlyArray<string>>
}

const defaultLimit = Duration.seconds(10)
const phases: ReadonlyArray<PluginPhase> = ["load", "setup", "bind", "activate", "dispose"]

const log = (failure: PluginFailure) => Effect.logWarning(failure.message, failure.cause)

/**
 * Boots the plugins up to and including activation. Fails, with everything closed again, if a required plugin fails; closes
 * them when the scope closes.
 */
export const make = <Context, Item>(
  options: KernelOptions<Context, Item>
): Effect.Effect<Kernel, HostFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const limits: Limits = new Map(
      phases.map((phase) => [phase, Duration.fromInputUnsafe(options.limits?.[phase] ?? defaultLimit)])
    )
    const report = options.report ?? log
    // One change of what is visible at a time, so that checks see what changes are applied to.
    const line = makeLine()
    const reloading = yield* Semaphore.make(1)
    const scope = yield* Effect.scope
    const base = yield* Effect.context<never>()
    let closing = false
    let taking: ReadonlyArray<RunningFacet<Item>> = []

    const visible = (facets: ReadonlyArray<RunningFacet<Item>>) =>
      facets.filter((facet) => facet.bound()).flatMap((facet) => facet.registered())

    const apply = (change: Omit<BindChange<Item>, "current">) =>
      change.added.length === 0 && change.removed.length === 0
        ? Effect.void
        : options.bind.apply({ ...change, current: visible(taking) })

    const check = (facets: ReadonlyArray<RunningFacet<Item>>) => {
      const ids = facets.map((facet) => facet.id)
      return options.bind.check(facets.flatMap((facet) => facet.registered()), ids)
        .filter((fault) => ids.includes(fault.plugin))
    }

    const late = (added: Registered<Item>) =>
      Effect.suspend(() => {
        const fault = check(taking).find((candidate) => candidate.plugin === added.plugin)
        return fault === undefined ? apply({ added: [added], removed: [] }) : Effect.die(new Error(fault.message))
      }).pipe(line, Effect.uninterruptible)

    const facetOf = (entry: ManifestEntry, order: number) =>
      makeFacet<Item>({
        host: options.host,
        entry,
        order,
        limits,
        hooks: {
          added: late,
          removed: (removed) =>
            Effect.suspend(() => apply({ added: [], removed: [removed] })).pipe(line, Effect.uninterruptible)
        }
      })

    const slots = options.plugins.map((source, order): Slot<Context, Item> => ({
      source,
      facet: facetOf(source.entry, order),
      code: undefined
    }))
    const statuses = Effect.sync(() => slots.map(({ facet }) => facet.status()))

    const setUp = (facet: RunningFacet<Item>, code: Facet<Context>) =>
      Effect.suspend(() => {
        facet.enter("setup")
        const context = Effect.sync(() => options.makeContext(facet, kernel))
        return facet.run("setup", Effect.provideService(Effect.flatMap(context, (made) => code(made)), SetupOf, facet))
      })

    /** Takes some out of sight and makes others visible, in one step. */
    const exchange = (leaving: ReadonlyArray<RunningFacet<Item>>, entering: ReadonlyArray<RunningFacet<Item>>) =>
      Effect.suspend(() => {
        const removed = leaving.flatMap((facet) => facet.seal())
        taking = [...taking.filter((facet) => !leaving.includes(facet) && !entering.includes(facet)), ...entering]
          .sort((left, right) => left.order - right.order)
        for (const facet of entering) {
          facet.enter("bind")
          facet.markBound()
        }
        return apply({ added: visible(entering), removed })
      }).pipe(line, Effect.uninterruptible)

    /** Closes what nobody sees any more, in reverse order. */
    const dispose = (facets: ReadonlyArray<RunningFacet<Item>>) =>
      Effect.forEach(facets.toReversed(), (facet) =>
        Effect.flatMap(facet.dispose, (failed) => failed === null ? Effect.void : report(failed)), { discard: true })

    const takeOut = (facets: ReadonlyArray<RunningFacet<Item>>) =>
      Effect.andThen(exchange(facets, []), dispose(facets)).pipe(Effect.uninterruptible)

    // Each by itself, so that a later facet still finds what earlier ones provide while it closes.
    const closeAll = Effect.gen(function*() {
      closing = true
      for (const facet of taking.toReversed()) {
        const exit = yield* Effect.exit(takeOut([facet]))
        if (Exit.isFailure(exit)) {
          yield* report(facet.failure("dispose", causeMessage(exit.cause), exit.cause))
        }
        if (facet.status().state === "starting" || facet.status().state === "loaded") {
          facet.enter("dispose", "closed")
        }
      }
    }).pipe(Effect.uninterruptible)

    const hostFailed = (failures: ReadonlyArray<PluginFailure>) =>
      Effect.gen(function*() {
        if (!closing) {
          yield* closeAll
        }
        return yield* new HostFailed({
          host: options.host,
          message: failures.length === 0
            ? `The ${options.host} host was closed while it started.`
            : failures.map((failed) =>
              failed.message
            ).join("\n"),
          failures: failures.map(({ message, phase, plugin }) => ({ message, phase, plugin }))
        })
      })

    /** With `cascade`, also takes out whoever does not hold together without the failed ones. */
    const fail = (first: ReadonlyArray<PluginFailure>, cascade: boolean) =>
      Effect.gen(function*() {
        if (closing) return yield* hostFailed([])
        const failures = [...first]
        const isOut = (facet: RunningFacet<Item>) => failures.some((failed) => failed.plugin === facet.id)
        for (let faults = cascade ? check(taking.filter((facet) => !isOut(facet))) : []; faults.length > 0;) {
          for (const fault of faults) {
            const facet = taking.find((candidate) => candidate.id === fault.plugin)
            if (facet !== undefined) failures.push(facet.failure("bind", fault.message, Cause.empty))
          }
          faults = check(taking.filter((facet) => !isOut(facet)))
        }
        const out = taking.filter(isOut)
        for (const failed of failures.toReversed()) out.find((facet) => facet.id === failed.plugin)?.fail(failed)
        if (out.some((facet) => facet.entry.required === true)) return yield* hostFailed(failures)
        for (const failed of failures) yield* report(failed)
        yield* takeOut(out)
      })

    const boot = Effect.gen(function*() {
      // Modules load side by side; everything after that is one by one, because order is meaning.
      const loaded = yield* Effect.forEach(
        slots,
        ({ facet, source }) => {
          const fault = options.powers === undefined ? null : entryFault(source.entry, options.powers)
          return Effect.result(facet.run("load", fault === null ? source.load : Effect.fail(new Error(fault))))
        },
        { concurrency: "unbounded" }
      )
      for (const [index, slot] of slots.entries()) {
        const { facet } = slot
        const result = loaded[index]
        if (closing) return yield* hostFailed([])
        if (result === undefined || Result.isSuccess(result) && result.success === undefined) {
          facet.enter("load", "absent")
          continue
        }
        taking = [...taking, facet]
        if (Result.isFailure(result)) {
          yield* fail([result.failure], false)
          continue
        }
        slot.code = result.success
        if (result.success === undefined) continue
        const setup = yield* Effect.result(setUp(facet, result.success))
        if (Result.isFailure(setup)) yield* fail([setup.failure], false)
      }

      yield* fail([], true)
      yield* exchange([], taking)
      for (const facet of taking) {
        // An earlier failure may have taken this one out meanwhile.
        if (!taking.includes(facet)) continue
        facet.enter("activate")
        const activated = yield* Effect.result(facet.activate)
        if (Result.isFailure(activated)) yield* fail([activated.failure], true)
        else facet.enter("activate", "loaded")
      }
      if (closing) yield* hostFailed([])
    })

    const reload: Kernel["reload"] = (wanted = {}) =>
      Effect.suspend(() =>
        reloadSlots({
          host: options.host,
          slots,
          bind: options.bind,
          facetOf,
          setUp,
          check,
          exchange,
          dispose,
          taking: () => taking,
          fail: (failures) => Effect.result(fail(failures, true)),
          report,
          isClosing: () => closing
        }, wanted)
      ).pipe(
        reloading.withPermit,
        Effect.withSpan("Kernel.reload", { attributes: { host: options.host } }),
        // In a fiber of the kernel, and with nothing of the caller's: it may itself be work that the reload brings to rest.
        Effect.setContext(base),
        Effect.forkIn(scope),
        Effect.flatMap(Fiber.join)
      )

    const kernel: Kernel = {
      plugins: statuses,
      reload,
      reloadable: Effect.sync(() => slots.flatMap(({ facet, source }) => source.reload === undefined ? [] : [facet.id]))
    }
    yield* Effect.addFinalizer(() => closing ? Effect.void : closeAll)
    yield* boot
    return kernel
  })
