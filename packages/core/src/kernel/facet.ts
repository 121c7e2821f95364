/**
 * One facet: a scope, what it has registered, and its way through the phases.
 *
 * Everything that runs on behalf of a facet runs here, under a time limit, and everything it registers is owned here. After
 * closing has begun, nothing can be registered any more, also when the facet was asleep at that moment.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { ManifestEntry } from "./manifest.ts"
import type { PluginFailure, PluginPhase, PluginStatus } from "./status.ts"
import { causeMessage, FacetClosed } from "./status.ts"

/** A facet as its author writes it: a setup effect over its host's context. */
export type Facet<Context> = (context: Context) => Effect.Effect<void, unknown, Scope.Scope>

/** One thing that a facet has registered. What it means is the host's business; identity is the object. */
export interface Registered<Item> {
  readonly plugin: string
  readonly version: string | null
  /** Place of the plugin in the manifest. */
  readonly order: number
  readonly item: Item
}

/** What a host builds one facet's context from. */
export interface FacetScope<Item> {
  readonly entry: ManifestEntry
  readonly order: number
  readonly scope: Scope.Scope
  /** True from the moment in which what was staged has become visible. */
  readonly bound: () => boolean
  /** True once the facet has been closed completely: what it still holds of its host is stale. */
  readonly closed: () => boolean
  /**
   * Registers something: during setup it is staged until bind, later it is visible at once. Gives the effect that takes it
   * back, idempotent; it is taken back at the latest when the facet closes. Dies with `FacetClosed` once closing has begun.
   */
  readonly register: (item: Item) => Effect.Effect<Effect.Effect<void>>
  /** Runs after everything is bound, or at once if that has happened; a failure is one of the facet. */
  readonly onActivate: (effect: Effect.Effect<void, unknown, Scope.Scope>) => Effect.Effect<void>
  readonly onDispose: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Acquires something into this facet's scope, from wherever it is called. */
  readonly own: <A, E, R>(resource: Effect.Effect<A, E, R>) => Effect.Effect<A, E, Exclude<R, Scope.Scope>>
}

/**
 * The facet whose setup a fiber comes from. What may be used from activation on only looks here whether it is too early;
 * `null` in fibers that come from no setup.
 */
export const SetupOf = Context.Reference<Pick<FacetScope<never>, "bound" | "entry"> | null>(
  "bezel/kernel/SetupOf",
  { defaultValue: () => null }
)

/** How long a plugin may take before others are told that it is waited for. */
const patience = Duration.seconds(1)

/** Time limit of each phase. */
export type Limits = ReadonlyMap<PluginPhase, Duration.Duration>

/** What the kernel does for a facet that registers or unregisters after bind. */
export interface FacetHooks<Item> {
  readonly added: (registered: Registered<Item>) => Effect.Effect<void>
  readonly removed: (registered: Registered<Item>) => Effect.Effect<void>
}

/** A facet as the kernel drives it. */
export interface RunningFacet<Item> extends FacetScope<Item> {
  readonly id: string
  /** Takes the entry that its code turned out to have, before it is set up. */
  readonly adopt: (entry: ManifestEntry) => void
  readonly registered: () => ReadonlyArray<Registered<Item>>
  readonly status: () => PluginStatus
  readonly enter: (phase: PluginPhase, state?: PluginStatus["state"]) => void
  readonly markBound: () => void
  readonly failure: (phase: PluginPhase, what: string, cause: Cause.Cause<unknown>) => PluginFailure
  readonly fail: (failure: PluginFailure) => void
  /** Runs work of the facet in its scope, for as long as the limit of the phase. */
  readonly run: <A>(phase: PluginPhase, work: Effect.Effect<A, unknown, Scope.Scope>) => Effect.Effect<A, PluginFailure>
  readonly activate: Effect.Effect<void, PluginFailure>
  /** Refuses what comes from now on and gives what must be taken out of sight. */
  readonly seal: () => ReadonlyArray<Registered<Item>>
  /** Interrupts what runs and closes the scope. Never fails; gives what went wrong. */
  readonly dispose: Effect.Effect<PluginFailure | null>
}

/** Makes the facet of one plugin; nothing runs yet. */
export const makeFacet = <Item>(options: {
  readonly host: string
  readonly entry: ManifestEntry
  readonly order: number
  readonly limits: Limits
  readonly hooks: FacetHooks<Item>
}): RunningFacet<Item> => {
  const { host, hooks, limits, order } = options
  let entry = options.entry
  const scope = Scope.makeUnsafe()
  const activations: Array<Effect.Effect<void, unknown, Scope.Scope>> = []
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  let registered: ReadonlyArray<Registered<Item>> = []
  let bound = false
  let active = false
  let sealed = false
  let closed = false
  let status: PluginStatus = {
    id: entry.id,
    version: entry.version ?? null,
    state: "starting",
    phase: "load",
    required: entry.required === true,
    error: null
  }

  const limitOf = (phase: PluginPhase) => limits.get(phase) ?? Duration.infinity
  const seconds = (phase: PluginPhase) => `${Duration.toSeconds(limitOf(phase))} s`

  const failure: RunningFacet<Item>["failure"] = (phase, what, cause) => ({
    plugin: entry.id,
    phase,
    message: `Plugin ${entry.id} failed in the ${host} host during ${phase}: ${what}`,
    cause
  })

  const refuse = Effect.suspend(() =>
    Effect.die(
      new FacetClosed({ plugin: entry.id, message: `Plugin ${entry.id} used its context after it had been closed.` })
    )
  )

  /** How the work ended, if it did within its limit. What takes a while is told, so that nobody wonders what is waited for. */
  const waitFor = <A>(fiber: Fiber.Fiber<A, unknown>, phase: PluginPhase) =>
    Effect.gen(function*() {
      const limit = limitOf(phase)
      const first = Duration.min(limit, patience)
      const soon = yield* Effect.timeoutOption(Fiber.await(fiber), first)
      if (Option.isSome(soon) || Duration.isLessThanOrEqualTo(limit, first)) return soon
      yield* Effect.logWarning(
        `Waiting for plugin ${entry.id} (${phase} in the ${host} host, at most ${seconds(phase)}).`
      )
      return yield* Effect.timeoutOption(Fiber.await(fiber), Duration.subtract(limit, first))
    })

  // Detached, so that code which does not let itself be interrupted holds up neither the boot nor the closing of the others.
  const run = <A>(phase: PluginPhase, work: Effect.Effect<A, unknown, Scope.Scope>) =>
    Effect.gen(function*() {
      const fiber = yield* work.pipe(
        Scope.provide(scope),
        Effect.annotateLogs({ plugin: entry.id, host }),
        Effect.withSpan(`plugin.${phase}`, { attributes: { plugin: entry.id, host } }),
        Effect.forkDetach
      )
      running.add(fiber)
      fiber.addObserver(() => running.delete(fiber))
      const settled = yield* waitFor(fiber, phase).pipe(
        Effect.onInterrupt(() => Effect.forkDetach(Fiber.interrupt(fiber)))
      )
      if (Option.isNone(settled)) {
        yield* Effect.forkDetach(Fiber.interrupt(fiber))
        return yield* Effect.fail(failure(phase, `it did not finish within ${seconds(phase)}`, Cause.empty))
      }
      return yield* Exit.isSuccess(settled.value)
        ? Effect.succeed(settled.value.value)
        : Effect.fail(failure(phase, causeMessage(settled.value.cause), settled.value.cause))
    })

  // Disposal cannot be interrupted, and what waits in such a region loses no race: so a timer settles it from beside.
  /** How the work ended, or `null` if it had not when its time was up; it is not waited for any longer. */
  const bounded = (work: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const settled = yield* Deferred.make<Exit.Exit<void> | null>()
      const fiber = yield* Effect.forkDetach(work)
      fiber.addObserver((exit) => Deferred.doneUnsafe(settled, Exit.succeed(exit)))
      const timer = yield* Effect.forkDetach(
        Effect.andThen(Effect.sleep(limitOf("dispose")), Deferred.succeed(settled, null))
      )
      const exit = yield* Deferred.await(settled)
      yield* Fiber.interrupt(timer)
      return exit
    })

  const withdraw = (item: Registered<Item>) =>
    Effect.suspend(() => {
      if (!registered.includes(item)) return Effect.void
      registered = registered.filter((other) => other !== item)
      return bound ? hooks.removed(item) : Effect.void
    })

  return {
    get id() {
      return entry.id
    },
    get entry() {
      return entry
    },
    adopt: (next) => {
      entry = next
      status = {
        ...status,
        id: next.id,
        version: next.version ?? null,
        required: next.required === true
      }
    },
    order,
    scope,
    bound: () => bound,
    closed: () => closed,
    registered: () => registered,
    status: () => status,
    enter: (phase, state) => {
      status = { ...status, phase, state: state ?? status.state }
    },
    markBound: () => {
      bound = true
    },
    failure,
    fail: (failed) => {
      status = { ...status, state: "failed", phase: failed.phase, error: failed.message }
    },
    run,
    register: (item) =>
      Effect.suspend(() => {
        if (sealed) return refuse
        const added: Registered<Item> = { plugin: entry.id, version: entry.version ?? null, order, item }
        registered = [...registered, added]
        // What was refused must not count as registered at the next check.
        const drop = Effect.sync(() => {
          registered = registered.filter((other) => other !== added)
        })
        return Effect.as(bound ? Effect.onError(hooks.added(added), () => drop) : Effect.void, withdraw(added))
      }),
    onActivate: (effect) =>
      Effect.suspend(() => {
        if (sealed) return refuse
        if (!active) {
          activations.push(effect)
          return Effect.void
        }
        return run("activate", effect).pipe(Effect.catch((failed) => Effect.die(failed)))
      }),
    onDispose: (effect) => Effect.suspend(() => sealed ? refuse : Scope.addFinalizer(scope, effect)),
    own: (resource) => Effect.suspend(() => sealed ? refuse : Scope.provide(resource, scope)),
    activate: Effect.gen(function*() {
      // In order of registration, and also what an activation itself registers.
      for (let next = activations.shift(); next !== undefined; next = activations.shift()) yield* run("activate", next)
      active = true
    }),
    seal: () => {
      sealed = true
      const visible = bound ? registered : []
      registered = []
      return visible
    },
    dispose: Effect.gen(function*() {
      sealed = true
      // What does not let itself be interrupted keeps running, but what the facet owns is still given back.
      const stuck = yield* bounded(Fiber.interruptAll([...running]))
      const closed = yield* bounded(Scope.close(scope, Exit.void))
      if (closed === null) return failure("dispose", `it did not close within ${seconds("dispose")}`, Cause.empty)
      if (Exit.isFailure(closed)) return failure("dispose", causeMessage(closed.cause), closed.cause)
      return stuck === null
        ? failure("dispose", `work of it could not be interrupted within ${seconds("dispose")}`, Cause.empty)
        : null
    }).pipe(
      Effect.ensuring(Effect.sync(() => {
        closed = true
      })),
      Effect.uninterruptible
    )
  }
}
