/** Every span that an effect makes, for tests of traces. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

export interface Spans {
  /** In the order in which they began. */
  readonly all: ReadonlyArray<Tracer.Span>
  /** The first of that name; throws, with the names that there are, if none was made. */
  readonly named: (name: string) => Tracer.Span
  /** Names from the outermost span to this one, as far as they were made here. */
  readonly path: (span: Tracer.Span) => ReadonlyArray<string>
  /** Runs an effect whose spans are recorded; hosts that it makes, and what they do for others, included. */
  readonly traced: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const recordSpans = (): Spans => {
  const all: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      all.push(span)
      return span
    }
  })
  const path = (span: Tracer.Span): ReadonlyArray<string> => {
    const parent = parentOf(span)
    const above = parent === undefined ? undefined : all.find(({ spanId }) => spanId === parent)
    return [...(above === undefined ? [] : path(above)), span.name]
  }
  return {
    all,
    named: (name) => {
      const span = all.find((candidate) => candidate.name === name)
      if (span === undefined) throw new Error(`no span "${name}", there are ${all.map((one) => one.name).join(", ")}`)
      return span
    },
    path,
    traced: (effect) => Effect.provideService(effect, Tracer.Tracer, tracer)
  }
}

/** Id of the span that it is under, also across a connection. */
export const parentOf = (span: Tracer.Span): string | undefined => Option.getOrUndefined(span.parent)?.spanId
