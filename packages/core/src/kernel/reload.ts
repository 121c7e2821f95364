/**
 * Reload: new code for some plugins of a running host.
 *
 *     load, set up beside the old ─▶ check ─▶ exchange in one step ─▶ close the old ─▶ activate
 *        └──────── fails: refused ─────┘                                                  │ fails
 *                  without a trace                        the old code, set up anew ◀─────┘
 *
 * Whatever goes wrong, each plugin runs either its new code or its old, whole. A plugin that had failed before has nothing
 * to lose: if its candidate fails too, the others go on without it, as when booting.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { Facet, RunningFacet } from "./facet.ts"
import type { BindFault, Binding, PluginSource, ReloadOptions } from "./kernel.ts"
import type { ManifestEntry } from "./manifest.ts"
import type { HostFailed, PluginFailure } from "./status.ts"
import { causeMessage, ReloadFailed } from "./status.ts"

/** One place of the manifest: the facet that stands there now and the code that it was set up from. */
export interface Slot<Context, Item> {
  readonly source: PluginSource<Context>
  facet: RunningFacet<Item>
  code: Facet<Context> | undefined
}

/** What a reload does its work with; the kernel's own. */
export interface ReloadParts<Context, Item> {
  readonly host: string
  readonly slots: ReadonlyArray<Slot<Context, Item>>
  readonly bind: Binding<Item>
  readonly facetOf: (entry: ManifestEntry, order: number) => RunningFacet<Item>
  readonly setUp: (facet: RunningFacet<Item>, code: Facet<Context>) => Effect.Effect<void, PluginFailure>
  readonly check: (facets: ReadonlyArray<RunningFacet<Item>>) => ReadonlyArray<BindFault>
  readonly exchange: (
    leaving: ReadonlyArray<RunningFacet<Item>>,
    entering: ReadonlyArray<RunningFacet<Item>>
  ) => Effect.Effect<void>
  readonly dispose: (facets: ReadonlyArray<RunningFacet<Item>>) => Effect.Effect<void>
  readonly taking: () => ReadonlyArray<RunningFacet<Item>>
  readonly fail: (failures: ReadonlyArray<PluginFailure>) => Effect.Effect<Result.Result<void, HostFailed>>
  readonly report: (failure: PluginFailure) => Effect.Effect<void>
  readonly isClosing: () => boolean
}

/** One plugin on its way from old code to new. */
interface Candidate<Context, Item> {
  readonly slot: Slot<Context, Item>
  /** The facet that runs now; `null` if the plugin is not there. */
  readonly old: RunningFacet<Item> | null
  readonly oldCode: Facet<Context> | undefined
  readonly facet: RunningFacet<Item>
  code: Facet<Context> | undefined
}

const refusal = (host: string, failures: ReadonlyArray<PluginFailure>, consequence: string) =>
  new ReloadFailed({
    host,
    message: `${failures.map(({ message }) => message).join("; ")}; ${consequence}`,
    failures: failures.map(({ message, phase, plugin }) => ({ message, phase, plugin }))
  })

const nothingChanged = "nothing was changed"

export const reloadSlots = <Context, Item>(
  parts: ReloadParts<Context, Item>,
  { keepCode, plugins, restoring }: ReloadOptions
): Effect.Effect<ReadonlyArray<string>, ReloadFailed> => {
  const { check, dispose, exchange, host, slots, taking } = parts
  const idOf = (slot: Slot<Context, Item>) => slot.facet.id
  const isRunning = (slot: Slot<Context, Item>) => taking().includes(slot.facet)

  const simple = (message: string) => new ReloadFailed({ host, message, failures: [] })

  /** The slots to reload, in manifest order. */
  const select = (): ReadonlyArray<Slot<Context, Item>> | ReloadFailed => {
    const unknown = plugins?.find((id) => !slots.some((slot) => idOf(slot) === id))
    if (unknown !== undefined) {
      return simple(`There is no plugin "${unknown}" in the ${host} host; there are: ${slots.map(idOf).join(", ")}.`)
    }
    const wanted = new Set(plugins ?? slots.map(idOf))
    const current = taking().flatMap((facet) => facet.registered())
    for (let before = -1; before < wanted.size;) {
      before = wanted.size
      for (const id of parts.bind.dependents?.(current, [...wanted]) ?? []) wanted.add(id)
    }
    return slots.filter((slot) => wanted.has(idOf(slot)))
  }

  const begin = (slot: Slot<Context, Item>): Candidate<Context, Item> => ({
    slot,
    old: isRunning(slot) ? slot.facet : null,
    oldCode: slot.code,
    facet: parts.facetOf(slot.facet.entry, slot.facet.order),
    code: slot.code
  })

  const load = (candidate: Candidate<Context, Item>): Effect.Effect<void, PluginFailure> => {
    const { facet, slot } = candidate
    const isWanted = plugins === undefined || plugins.includes(facet.id)
    if (!isWanted || keepCode === true) return Effect.void
    const source = slot.source.reload ??
      Effect.map(slot.source.load, (loaded) => ({ entry: facet.entry, facet: loaded }))
    return Effect.flatMap(facet.run("load", source), (loaded) => {
      const taken = slots.some((other) => other !== slot && idOf(other) === loaded.entry.id)
      if (taken) {
        const what = `its id is "${loaded.entry.id}" now, which another plugin has`
        return Effect.fail(facet.failure("load", what, Cause.empty))
      }
      return Effect.sync(() => {
        facet.adopt(loaded.entry)
        candidate.code = loaded.facet
      })
    })
  }

  /** Everything up to the exchange. Gives those that hold together; fails when one with old code does not. */
  const prepare = (selected: ReadonlyArray<Slot<Context, Item>>) =>
    Effect.gen(function*() {
      let candidates: ReadonlyArray<Candidate<Context, Item>> = selected.map(begin)
      const failures: Array<PluginFailure> = []
      const abandon = Effect.suspend(() => dispose(candidates.map(({ facet }) => facet)))

      /** Gives the whole up if somebody would lose by the failure; else leaves the failed ones out. */
      const drop = (
        failed: ReadonlyArray<{ readonly candidate: Candidate<Context, Item> | null; failure: PluginFailure }>
      ) =>
        Effect.gen(function*() {
          if (failed.some(({ candidate }) => candidate === null || candidate.old !== null)) {
            yield* abandon
            return yield* refusal(host, failed.map(({ failure }) => failure), nothingChanged)
          }
          for (const { candidate, failure } of failed) {
            if (candidate === null || !candidates.includes(candidate)) continue
            candidates = candidates.filter((other) => other !== candidate)
            candidate.facet.fail(failure)
            candidate.slot.facet = candidate.facet
            failures.push(failure)
            yield* parts.report(failure)
            yield* dispose([candidate.facet])
          }
        })

      const next = () => {
        const replaced = candidates.map(({ old }) => old)
        return [
          ...taking().filter((facet) => !replaced.includes(facet)),
          ...candidates.filter(({ code }) => code !== undefined).map(({ facet }) => facet)
        ].sort((left, right) => left.order - right.order)
      }

      const attempt = (candidate: Candidate<Context, Item>, step: Effect.Effect<void, PluginFailure>) =>
        Effect.flatMap(Effect.result(step), (done) =>
          Result.isFailure(done) ? drop([{ candidate, failure: done.failure }]) : Effect.void)

      yield* Effect.gen(function*() {
        for (const candidate of candidates) {
          yield* attempt(candidate, load(candidate))
        }
        for (const candidate of candidates) {
          if (candidate.code !== undefined) {
            yield* attempt(candidate, parts.setUp(candidate.facet, candidate.code))
          }
        }
        for (let faults = check(next()); faults.length > 0; faults = check(next())) {
          yield* drop(faults.map(({ message, plugin }) => {
            const candidate = candidates.find(({ facet }) =>
              facet.id === plugin
            ) ?? null
            const facet = candidate?.facet ?? taking().find(({ id }) => id === plugin) ??
              parts.facetOf({ id: plugin }, 0)
            return { candidate, failure: facet.failure("bind", message, Cause.empty) }
          }))
        }
      }).pipe(Effect.onInterrupt(() => abandon))
      return { candidates, failures }
    })

  const activate = (facet: RunningFacet<Item>): Effect.Effect<void, PluginFailure> =>
    Effect.suspend(() => {
      facet.enter("activate")
      return Effect.andThen(facet.activate, Effect.sync(() => facet.enter("activate", "loaded")))
    })

  const exchangeAndClose = (leaving: ReadonlyArray<RunningFacet<Item>>, entering: ReadonlyArray<RunningFacet<Item>>) =>
    Effect.tap(Effect.exit(exchange(leaving, entering)), dispose(leaving))

  /** Puts the old code back after a candidate that could not be activated. */
  const restore = (candidates: ReadonlyArray<Candidate<Context, Item>>, failure: PluginFailure) =>
    Effect.gen(function*() {
      if (restoring !== undefined) yield* restoring
      const lost: Array<PluginFailure> = []
      const back: Array<RunningFacet<Item>> = []
      for (const { facet, old, oldCode, slot } of candidates) {
        if (old === null || oldCode === undefined) {
          facet.fail({ ...failure, plugin: facet.id })
          continue
        }
        const again = parts.facetOf(old.entry, old.order)
        slot.facet = again
        slot.code = oldCode
        back.push(again)
        const done = yield* Effect.result(parts.setUp(again, oldCode))
        if (Result.isSuccess(done)) continue
        // It enters with nothing, so that its failure is judged like any other's.
        again.seal()
        lost.push(done.failure)
      }
      yield* exchangeAndClose(candidates.map(({ facet }) => facet), back)
      let left = yield* parts.fail(lost)
      for (const again of back) {
        if (!taking().includes(again)) continue
        const done = yield* Effect.result(activate(again))
        if (Result.isSuccess(done)) continue
        lost.push(done.failure)
        left = yield* parts.fail([done.failure])
      }
      const consequence = Result.isFailure(left)
        ? "the old code could not be taken up again, and so the host was closed"
        : lost.length > 0
        ? "the old code could not be taken up again"
        : "the old code is active again"
      return yield* refusal(host, [failure, ...lost], consequence)
    })

  return Effect.uninterruptibleMask((interruptible) =>
    Effect.gen(function*() {
      if (parts.isClosing()) return yield* simple(`The ${host} host is closed.`)
      const selected = select()
      if (selected instanceof ReloadFailed) return yield* selected
      if (selected.length === 0) return []
      const { candidates, failures } = yield* interruptible(prepare(selected))
      const ids = candidates.map(({ facet }) => facet.id)
      const entering = candidates.filter(({ code }) => code !== undefined)
      if (candidates.length === 0 && failures.length > 0) return yield* refusal(host, failures, nothingChanged)
      const leaving = candidates.flatMap(({ old }) => old === null ? [] : [old])

      const exchangeAll = Effect.gen(function*() {
        for (const candidate of candidates) {
          candidate.slot.facet = candidate.facet
          candidate.slot.code = candidate.code
          if (candidate.code === undefined) candidate.facet.enter("load", "absent")
        }
        const exchanged = yield* exchangeAndClose(leaving, entering.map(({ facet }) => facet))
        const [first] = entering
        if (Exit.isFailure(exchanged) && first !== undefined) {
          const { cause } = exchanged
          return yield* restore(candidates, first.facet.failure("bind", causeMessage(cause), cause))
        }
        for (const { facet, old } of entering) {
          const done = yield* Effect.result(activate(facet))
          if (Result.isSuccess(done)) continue
          // One with nothing to lose, and whom nobody needs, fails alone.
          const isNeeded = check(taking().filter((other) => other !== facet)).length > 0
          if (old !== null || isNeeded) return yield* restore(candidates, done.failure)
          failures.push(done.failure)
          const left = yield* parts.fail([done.failure])
          if (Result.isFailure(left)) return yield* refusal(host, failures, "and so the host was closed")
        }
        const isOut = ({ facet }: Candidate<Context, Item>) => failures.some(({ plugin }) => plugin === facet.id)
        if (candidates.every(isOut)) return yield* refusal(host, failures, "it stays out")
      })
      yield* parts.bind.around === undefined ? exchangeAll : parts.bind.around(ids, exchangeAll)
      return candidates.map(({ facet }) => facet.id).filter((id) => !failures.some(({ plugin }) => plugin === id))
    })
  )
}
