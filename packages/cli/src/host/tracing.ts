/**
 * Sends spans to the collector that the user's settings name. Loaded only where settings mention one: who traces nothing
 * neither loads an exporter nor makes spans.
 *
 * Spans carry names, times and ids; what people and models write is not in them. A collector that cannot be reached changes
 * nothing but that its spans are lost, and at the end it is waited for two seconds at most.
 */
import { Settings } from "@bezel/core/settings"
import { TelemetrySetting } from "@bezel/plugins/settings"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Redacted from "effect/Redacted"
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
        OtlpTracer.layer({
          url: new URL("v1/traces", otlp.endpoint.replace(/\/*$/, "/")).href,
          resource: { serviceName: "bezel", serviceVersion: environment.version },
          headers: Object.fromEntries(
            Object.entries(otlp.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])
          ),
          exportInterval: "2 seconds",
          shutdownTimeout: "2 seconds"
        }).pipe(Layer.provide(OtlpSerialization.layerJson), Layer.provide(FetchHttpClient.layer))
      )
    )
  )
