/**
 * Sends spans to the collector that the user's settings name. Loaded only where settings mention one: who traces nothing
 * neither loads an exporter nor makes spans.
 *
 * Spans carry names, times, ids and folders. What people and models write is not in them: of a failure only its type and its
 * frames are told, for its message may quote anything, and log messages are left out. A collector that cannot be reached changes
 * nothing but that its spans are lost, and at the end it is waited for two seconds at most.
 */
import { Settings } from "@bezel/core/settings"
import { TelemetrySetting } from "@bezel/plugins/settings"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpExporter from "effect/observability/OtlpExporter"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import type { Environment } from "../arguments/command.ts"
import { settingsLayer } from "./global.ts"

/** With the settings' collector, or without making spans. Settings that are wrong are told by whoever needs them. */
export const traced = <A, E, R>(effect: Effect.Effect<A, E, R>, environment: Environment): Effect.Effect<A, E, R> =>
  Effect.flatMap(Settings, ({ user }) => user).pipe(
    Effect.map((settings) => settings.get(TelemetrySetting).otlp),
    Effect.provide(settingsLayer({ environment, trust: false })),
    Effect.withTracerEnabled(false),
    Effect.orElseSucceed(() => undefined),
    Effect.flatMap((otlp) =>
      otlp === undefined ? Effect.withTracerEnabled(effect, false) : Effect.provide(
        effect,
        Layer.effect(
          Tracer.Tracer,
          Effect.map(
            OtlpTracer.make({
              url: new URL("v1/traces", otlp.endpoint.replace(/\/*$/, "/")).href,
              resource: { serviceName: "bezel", serviceVersion: environment.version },
              headers: Object.fromEntries(
                Object.entries(otlp.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])
              ),
              exportInterval: "2 seconds",
              shutdownTimeout: "2 seconds"
            }),
            withoutMessages
          )
        ).pipe(
          Layer.provide(OtlpExporter.layerFlusher),
          Layer.provide(OtlpSerialization.layerJson),
          Layer.provide(FetchHttpClient.layer)
        )
      )
    )
  )

/** The same tracer, whose spans do not tell what an error or a log line says. */
const withoutMessages = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    ...(tracer.context === undefined ? {} : { context: tracer.context }),
    span: (options) => {
      const span = tracer.span(options)
      const end = span.end.bind(span)
      span.end = (time, exit) => end(time, Exit.isFailure(exit) ? Exit.failCause(withoutMessage(exit.cause)) : exit)
      span.event = () => {}
      return span
    }
  })

/** A cause with the types of its errors and where they are from. */
const withoutMessage = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> => {
  if (Cause.hasInterruptsOnly(cause)) return cause
  const [first] = Cause.prettyErrors(cause)
  const told = new Error("(not told)")
  told.name = first?.name ?? "Error"
  // Behind the message, up to the first line that is no frame: a message, or that of a cause, may look like one.
  const { message = "", stack = "" } = first ?? {}
  const behind = stack.slice(stack.indexOf(message) + message.length).split("\n").slice(1)
  const end = behind.findIndex((line) => !/^\s+at /.test(line))
  const frames = end === -1 ? behind : behind.slice(0, end)
  told.stack = [told.name, ...frames].join("\n")
  return Cause.fail(told)
}
