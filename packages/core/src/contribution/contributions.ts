/**
 * A replay fold: many contributors, one result.
 *
 * Contributors register transforms. The result is made by replaying all of them over a fresh state, in manifest order, then
 * in registration order within a contributor. Nothing is ever undone by an inverse: when a transform goes, the rest is
 * replayed without it, so the same registrations always give the same result.
 *
 * A transform that throws takes only itself out: its half-made changes are dropped (the replay starts over without it), the
 * fault is reported, and the next rebuild tries it again. If finishing fails, the last good result stays. Rebuilds are lazy
 * and thereby coalesce: a hundred registrations followed by one read make one rebuild. Everything here is synchronous, so
 * that nobody can see a rebuild half done.
 */
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** Who contributes. `order` is its place in the manifest. */
export interface Contributor {
  readonly plugin: string
  readonly version: string
  readonly order: number
}

/** Why one transform, or with `plugin: null` the whole rebuild, was left out of the result. */
export interface ContributionFault {
  readonly plugin: string | null
  /** One plain sentence. */
  readonly message: string
  readonly error: unknown
}

/** One registered transform. */
export interface ContributionRegistration {
  /** Takes the transform out; idempotent. */
  readonly unregister: Effect.Effect<void>
}

/** How one kind of contribution is folded. */
export interface ContributionsOptions<State, Draft, Result> {
  /** What is contributed to, in a word for messages: `tools`, `providers`. */
  readonly name: string
  /** A fresh, mutable state for one rebuild. */
  readonly empty: () => State
  /** The face of the state for one transform of one contributor. It is revoked when the transform returns. */
  readonly draft: (state: State, contributor: Contributor) => Draft
  /** Validates and gives the immutable result. Throwing keeps the last good result. */
  readonly finish: (state: State, revision: number) => Result
  /** Told once for each new fault of a rebuild. */
  readonly onFault?: (fault: ContributionFault) => void
}

export interface Contributions<Draft, Result> {
  /** Adds a transform until the scope closes or `unregister` is called. */
  readonly transform: (
    contributor: Contributor,
    change: (draft: Draft) => void
  ) => Effect.Effect<ContributionRegistration, never, Scope.Scope>
  /**
   * Adds and takes out in one step: whoever reads sees all of it or nothing. For hosts, which make the registrations of many
   * contributors visible at once; the caller owns the removal.
   */
  readonly replace: (change: {
    readonly remove: ReadonlyArray<ContributionEntry<Draft>>
    readonly add: ReadonlyArray<ContributionEntry<Draft>>
  }) => Effect.Effect<void>
  /** Marks the result as out of date: what a transform reads from outside has changed. */
  readonly reload: Effect.Effect<void>
  /** The result, rebuilt first if it is out of date. */
  readonly current: Effect.Effect<Result>
  /** The same for synchronous code. */
  readonly currentUnsafe: () => Result
  /** How often the result was rebuilt; the same number means the same result, by identity. */
  readonly revision: Effect.Effect<number>
  /** What is left out of the current result, and why. */
  readonly faults: Effect.Effect<ReadonlyArray<ContributionFault>>
  /** The current result, then each later one. A slow reader skips results between, never the newest. */
  readonly changes: Stream.Stream<Result>
}

/** One transform and who contributes it. Identity is the object. */
export interface ContributionEntry<Draft> {
  readonly contributor: Contributor
  readonly change: (draft: Draft) => void
}

interface Outcome<State> {
  readonly state: State
  readonly faults: ReadonlyArray<ContributionFault>
}

const describe = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** A promise or an effect: work that would come after the draft is gone. */
const isDeferred = (value: unknown): boolean =>
  Effect.isEffect(value) ||
  (typeof value === "object" && value !== null && "then" in value && typeof value.then === "function")

/** A draft that refuses every use after its transform has returned, which plain objects would allow silently. */
const revocable = <Draft>(draft: Draft, name: string): { readonly draft: Draft; readonly revoke: () => void } => {
  if (typeof draft !== "object" || draft === null) return { draft, revoke: () => {} }
  let open = true
  const guard = () => {
    if (!open) throw new Error(`A draft of ${name} was used after its transform had returned. Call reload instead.`)
  }
  const proxy = new Proxy(draft, {
    get: (target, key) => {
      guard()
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== "function") return value
      return (...input: ReadonlyArray<unknown>): unknown => {
        guard()
        return Reflect.apply(value, target, input)
      }
    },
    set: (target, key, value) => {
      guard()
      return Reflect.set(target, key, value, target)
    }
  })
  return {
    draft: proxy,
    revoke: () => {
      open = false
    }
  }
}

/** Starts an empty fold. */
export const make = <State, Draft, Result>(
  options: ContributionsOptions<State, Draft, Result>
): Effect.Effect<Contributions<Draft, Result>> =>
  Effect.gen(function*() {
    const signals = yield* PubSub.sliding<void>(1)
    // Kept in the order of replay. Sorting by `order` is stable, so registration order decides within a contributor.
    let entries: ReadonlyArray<ContributionEntry<Draft>> = []
    let dirty = true
    let revision = 0
    let faults: ReadonlyArray<ContributionFault> = []
    let result: { readonly value: Result } | null = null

    const touch = () => {
      dirty = true
      PubSub.publishUnsafe(signals, undefined)
    }

    const apply = (entry: ContributionEntry<Draft>, state: State): ContributionFault | null => {
      const { draft, revoke } = revocable(options.draft(state, entry.contributor), options.name)
      try {
        const returned: unknown = entry.change(draft)
        if (isDeferred(returned)) {
          throw new Error("it is asynchronous; a transform changes its draft while it is called")
        }
        return null
      } catch (error) {
        return {
          plugin: entry.contributor.plugin,
          message: `A transform of ${options.name} by plugin ${entry.contributor.plugin} failed and is left out: ${
            describe(error)
          }`,
          error
        }
      } finally {
        revoke()
      }
    }

    const replay = (): Outcome<State> => {
      const failed = new Map<ContributionEntry<Draft>, ContributionFault>()
      for (;;) {
        const state = options.empty()
        let again = false
        for (const entry of entries) {
          if (failed.has(entry)) continue
          const fault = apply(entry, state)
          if (fault === null) continue
          failed.set(entry, fault)
          again = true
          break
        }
        if (!again) return { state, faults: [...failed.values()] }
      }
    }

    const report = (next: ReadonlyArray<ContributionFault>) => {
      const known = new Set(faults.map((fault) => fault.message))
      faults = next
      for (const fault of next) {
        if (!known.has(fault.message)) options.onFault?.(fault)
      }
    }

    const rebuild = (): Result => {
      dirty = false
      const outcome = replay()
      try {
        const value = options.finish(outcome.state, revision + 1)
        revision++
        result = { value }
        report(outcome.faults)
        return value
      } catch (error) {
        // Without an earlier result there is nothing to keep: an empty fold that does not finish is the host's own fault.
        if (result === null) throw error
        report([...outcome.faults, {
          plugin: null,
          message: `The ${options.name} could not be rebuilt, so the last good ones stay: ${describe(error)}`,
          error
        }])
        return result.value
      }
    }

    const currentUnsafe = (): Result => dirty || result === null ? rebuild() : result.value

    const replace: Contributions<Draft, Result>["replace"] = (change) =>
      Effect.sync(() => {
        const removed = new Set(change.remove)
        const kept = removed.size === 0 ? entries : entries.filter((entry) => !removed.has(entry))
        if (kept.length === entries.length && change.add.length === 0) return
        entries = [...kept, ...change.add].sort((left, right) => left.contributor.order - right.contributor.order)
        touch()
      })

    return {
      transform: (contributor, change) =>
        Effect.gen(function*() {
          const entry: ContributionEntry<Draft> = { contributor, change }
          const unregister = replace({ remove: [entry], add: [] })
          yield* Effect.acquireRelease(replace({ remove: [], add: [entry] }), () => unregister)
          return { unregister }
        }),
      replace,
      reload: Effect.sync(touch),
      current: Effect.sync(currentUnsafe),
      currentUnsafe,
      revision: Effect.sync(() => {
        currentUnsafe()
        return revision
      }),
      faults: Effect.sync(() => {
        currentUnsafe()
        return faults
      }),
      // Subscribed before the first value is read, so that no change falls between the two.
      changes: Stream.unwrap(Effect.map(PubSub.subscribe(signals), (subscription) => {
        let seen = -1
        return Stream.succeed(undefined).pipe(
          Stream.concat(Stream.fromSubscription(subscription)),
          Stream.map(() => ({ value: currentUnsafe(), revision })),
          Stream.filter((next) => next.revision !== seen),
          Stream.map((next) => {
            seen = next.revision
            return next.value
          })
        )
      }))
    }
  })
