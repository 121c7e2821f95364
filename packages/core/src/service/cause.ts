/**
 * Carrying the span of a cause: from the write that changed a state, through the wire, to whoever handles the delivery.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"

/** A span by its identifiers, as it crosses the wire. */
export const SpanCarrier = Schema.Struct({ traceId: Schema.String, spanId: Schema.String, sampled: Schema.Boolean })
export type SpanCarrier = typeof SpanCarrier.Type

/** The span that this fiber runs under. */
export const currentCarrier: Effect.Effect<SpanCarrier | null> = Effect.withFiber((fiber) => {
  const span = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
  return Effect.succeed(span === undefined ? null : carrierOf(span))
})

export const carrierOf = (span: Tracer.AnySpan): SpanCarrier => ({
  traceId: span.traceId,
  spanId: span.spanId,
  sampled: span.sampled
})

/** Runs a delivery's handler in the trace of its cause; without one, in the fiber's own. */
export const underCause = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  name: string,
  cause: SpanCarrier | null
): Effect.Effect<A, E, R> => {
  if (cause === null) return effect
  const span = Tracer.externalSpan(cause)
  return Effect.withSpan(effect, name, { parent: span, links: [{ span, attributes: {} }], captureStackTrace: false })
}
