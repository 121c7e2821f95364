/** Facades in the hands of a facet that is being set up: they may be kept, and are of no use before activation. */
import { Plugin } from "@bezel/core/host"
import { type Facade, RemoteService } from "@bezel/core/service"
import { testCoordinator, testPresentation, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"

class Clock extends RemoteService.make("test.clock")({
  state: { hour: Schema.Finite },
  methods: { strike: { success: Schema.String } }
}) {}

const clock = Plugin.define({
  id: "test.clock",
  session: (ctx) =>
    Effect.gen(function*() {
      const hour = yield* ctx.state(Schema.Finite, 12)
      yield* ctx.provide(Clock, { hour, strike: () => Effect.succeed("bong") })
    }),
  coordinator: (ctx) =>
    Effect.gen(function*() {
      const hour = yield* ctx.state(Schema.Finite, 12)
      yield* ctx.provide(Clock, { hour, strike: () => Effect.succeed("bong from above") })
    })
})

const early =
  'Plugin eager used service "test.clock" during setup. Services can be used from activation on: see ctx.onActivate.'

const uses: ReadonlyArray<readonly [string, (facade: Facade<typeof Clock>) => Effect.Effect<unknown, unknown>]> = [
  ["calling a method", (facade) => facade.strike()],
  ["waiting for its states", (facade) => facade.ready],
  ["reading a state", (facade) => Effect.sync(() => facade.hour.value)]
]

describe("a facade that a facet uses during its setup", () => {
  it.live.each(uses)("of a presentation says so: %s", ([, use]) =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([clock])
      const failed = yield* Effect.flip(
        testPresentation(host, { eager: (ctx) => Effect.asVoid(Effect.flatMap(ctx.use(Clock), use)) })
      )
      expect(failed.message).toContain(early)
    }).pipe(Effect.scoped))

  it.live.each(uses)(
    "from upstream says so, and the plugin alone is taken out: %s",
    ([, use]) =>
      Effect.gen(function*() {
        const coordinator = yield* testCoordinator([clock])
        const eager = Plugin.define({
          id: "eager",
          session: (ctx) => Effect.asVoid(Effect.flatMap(ctx.upstream.use(Clock), use))
        })
        const host = yield* testSessionHost([eager], { coordinator })
        const status = (yield* host.plugins).find(({ id }) => id === "eager")
        expect([status?.state, status?.error]).toEqual(["failed", expect.stringContaining(early)])
      }).pipe(Effect.scoped)
  )

  it.live("may be kept, and works from activation on, also in work that the setup has begun", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([clock])
      const struck = yield* Deferred.make<string>()
      const later = yield* Deferred.make<string>()
      yield* testPresentation(host, {
        patient: (ctx) =>
          Effect.gen(function*() {
            const facade = yield* ctx.use(Clock)
            const active = yield* Deferred.make<void>()
            yield* Effect.forkScoped(
              Deferred.await(active).pipe(
                Effect.andThen(facade.strike()),
                Effect.flatMap((said) => Deferred.succeed(later, said))
              )
            )
            yield* ctx.onActivate(Effect.gen(function*() {
              yield* facade.ready
              expect(facade.hour.value).toBe(12)
              yield* Deferred.succeed(struck, yield* facade.strike())
              yield* Deferred.succeed(active, undefined)
            }))
          })
      })
      expect(yield* Deferred.await(struck)).toBe("bong")
      expect(yield* Deferred.await(later)).toBe("bong")
    }).pipe(Effect.scoped))

  it.live("from upstream works from activation on", () =>
    Effect.gen(function*() {
      const coordinator = yield* testCoordinator([clock])
      const struck = yield* Deferred.make<string>()
      const patient = Plugin.define({
        id: "patient",
        session: (ctx) =>
          Effect.gen(function*() {
            const facade = yield* ctx.upstream.use(Clock)
            yield* ctx.onActivate(Effect.gen(function*() {
              yield* facade.ready
              yield* Deferred.succeed(struck, yield* facade.strike())
            }))
          })
      })
      yield* testSessionHost([patient], { coordinator })
      expect(yield* Deferred.await(struck)).toBe("bong from above")
    }).pipe(Effect.scoped))
})
