/**
 * The rule of the two tiers is a type: the lines below that must not compile say so, and the type check of the repository
 * fails if one of them ever does.
 */
import type { GlobalLayer } from "@bezel/core/host"
import { LocationMap } from "@bezel/core/host"
import { Location } from "@bezel/core/location"
import { ProviderRegistry } from "@bezel/core/model"
import { InteractionBroker, ServiceDirectory } from "@bezel/core/service"
import { SessionRuntime, SessionStore } from "@bezel/core/session"
import { ToolRegistry } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"

class Report extends Context.Service<Report, { readonly lines: ReadonlyArray<string> }>()("test/Report") {}

const reportFrom = <A, E, R>(needs: Effect.Effect<A, E, R>) => Layer.effect(Report, Effect.as(needs, { lines: [] }))

describe("tiers", () => {
  it("lets a global layer use global services", () => {
    const fromStore: GlobalLayer<Report> = reportFrom(SessionStore)
    const map: GlobalLayer<LocationMap> = LocationMap.layer
    expect([fromStore, map]).toHaveLength(2)
  })

  it("does not compile a global layer that uses a service of a location", () => {
    // @ts-expect-error a location's runtime is not there for a global service
    const fromRuntime: GlobalLayer<Report> = reportFrom(SessionRuntime)
    // @ts-expect-error nor are its tools
    const fromTools: GlobalLayer<Report> = reportFrom(ToolRegistry)
    // @ts-expect-error nor is the place itself
    const fromLocation: GlobalLayer<Report> = reportFrom(Location)
    // @ts-expect-error a layer of a location cannot pass for a global one
    const runtime: GlobalLayer<SessionRuntime> = SessionRuntime.layer
    // @ts-expect-error nor those of its registries, which need nothing of the place
    const registries: GlobalLayer<ProviderRegistry | ServiceDirectory | InteractionBroker> = Layer.mergeAll(
      ProviderRegistry.layer,
      ServiceDirectory.layer,
      InteractionBroker.layer
    )
    expect([fromRuntime, fromTools, fromLocation, runtime, registries]).toHaveLength(5)
  })
})
