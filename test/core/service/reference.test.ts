import { MutableRemoteState, RemoteReference, RemoteService } from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Schema } from "effect"

class Job extends RemoteService.make("test.job")({
  state: { done: Schema.Int },
  methods: { cancel: {} }
}) {}

describe("an object that a method returns", () => {
  it.effect("misses no member of its token, or dies where it is made, saying which", () =>
    Effect.gen(function*() {
      const done = yield* MutableRemoteState.make(Schema.Int, 0)
      // @ts-expect-error: what a plugin without types can give.
      const exit = yield* Effect.exit(RemoteReference.make(Job, { done }))
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain(
        `A reference to service "test.job" needs a method named "cancel"`
      )
    }))
})
