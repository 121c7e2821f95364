import { Plugin, PluginKernel, type SessionContext } from "@bezel/core/host"
import { RemoteService } from "@bezel/core/service"
import type { scriptedModel } from "@bezel/core/testing"
import { type TestSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { Context, Deferred, Effect, Schema, type Scope } from "effect"

export type Facet = (ctx: SessionContext) => Effect.Effect<void, unknown, Scope.Scope>

/** A plugin whose code is another one after each reload: the first facet, then the second, and so on. */
export const generations = (id: string, ...facets: ReadonlyArray<Facet>): Plugin => {
  let next = 0
  return Plugin.define({
    id,
    session: (ctx) => Effect.suspend(() => (facets[Math.min(next++, facets.length - 1)] ?? (() => Effect.void))(ctx))
  })
}

export const reload = (host: TestSessionHost, ...plugins: ReadonlyArray<string>) =>
  Context.get(host.services, PluginKernel).reload({ plugins })

export const offers =
  (name: string, execute: () => Effect.Effect<string>, replay: "safe" | "never" = "never"): Facet => (ctx) =>
    Effect.asVoid(
      ctx.tool.transform((draft) =>
        draft.set(name, tool({ description: `Does ${name}`, input: Schema.Struct({}), replay, execute }))
      )
    )

export const says = (name: string, text: string): Facet => offers(name, () => Effect.succeed(text))

/** Results of calls as the model was told them with its last request. */
export const results = (model: ReturnType<typeof scriptedModel>) => {
  const last = model.requests.at(-1)?.messages.at(-1)
  return last?.role === "tool" ? last.content.map(({ result }) => result) : []
}

export const barrier = Effect.gen(function*() {
  const reached = yield* Deferred.make<void>()
  const open = yield* Deferred.make<void>()
  return {
    reached: Deferred.await(reached),
    open: Effect.asVoid(Deferred.succeed(open, undefined)),
    pass: Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(open))
  }
})

export class Counter extends RemoteService.make("test.counter")({
  state: { count: Schema.Struct({ value: Schema.Finite }) },
  methods: { add: { payload: Schema.Finite } }
}) {}

export class Scratch extends RemoteService.make("test.scratch")({ methods: { tell: {} } }) {}

export const counter = (start: number): Facet => (ctx) =>
  Effect.gen(function*() {
    const count = yield* ctx.state(Schema.Struct({ value: Schema.Finite }), { value: start })
    yield* ctx.provide(Counter, {
      count,
      add: (by) =>
        count.update((draft) => {
          draft.value += by
        })
    })
  })
