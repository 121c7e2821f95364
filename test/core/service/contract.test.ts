import type { Effect } from "effect"
import { Schema } from "effect"
import { describe, expect, expectTypeOf, it } from "vitest"
import type { ServiceError } from "../../../packages/core/src/service/index.ts"
import {
  type Facade,
  type Implementation,
  Interaction,
  LocalService,
  RemoteService,
  type RemoteState,
  type Replica
} from "../../../packages/core/src/service/index.ts"

class UnknownModel extends Schema.TaggedError<UnknownModel>()("UnknownModel", { model: Schema.String }) {}

class Models extends RemoteService.make("test.models")({
  state: { state: Schema.Struct({ current: Schema.NullOr(Schema.String) }) },
  events: { changed: Schema.Struct({ type: Schema.Literal("changed"), model: Schema.String }) },
  methods: {
    select: { payload: Schema.Struct({ model: Schema.String }), error: UnknownModel },
    count: { success: Schema.NumberFromString },
    refresh: {}
  }
}) {}

describe("RemoteService", () => {
  it("gives implementations and facades their types from the token", () => {
    expect(Models.id).toBe("test.models")
    type I = Implementation<typeof Models>
    expectTypeOf<I["state"]>().toEqualTypeOf<RemoteState<{ readonly current: string | null }>>()
    expectTypeOf<I["select"]>().toEqualTypeOf<
      (payload: { readonly model: string }) => Effect.Effect<void, UnknownModel>
    >()
    expectTypeOf<I["count"]>().toEqualTypeOf<() => Effect.Effect<number>>()
    type F = Facade<Models>
    expectTypeOf<F>().toEqualTypeOf<Facade<typeof Models>>()
    expectTypeOf<F["state"]>().toEqualTypeOf<Replica<{ readonly current: string | null }>>()
    expectTypeOf<F["select"]>().toEqualTypeOf<
      (payload: { readonly model: string }) => Effect.Effect<void, UnknownModel | ServiceError>
    >()
    expectTypeOf<F["refresh"]>().toEqualTypeOf<() => Effect.Effect<void, ServiceError>>()
    const provide = <S extends RemoteService.Any>(_token: S, _implementation: Implementation<S>) => {}
    const typed = (implementation: Implementation<Models>) => provide(Models, implementation)
    expect(typed).toBeTypeOf("function")
  })

  it("refuses a member that is declared twice or takes a facade's own name", () => {
    expect(() => RemoteService.make("test.twice")({ methods: { a: {} }, state: { a: Schema.String } })).toThrow(
      /"a" is declared twice/
    )
    expect(() => RemoteService.make("test.reserved")({ methods: { ready: {} } })).toThrow(/"ready" cannot be a member/)
  })
})

describe("LocalService", () => {
  it("keeps the type of what it carries", () => {
    const Table = LocalService.make<ReadonlyMap<string, () => void>>("test.table")
    const use = <A>(_token: LocalService<A>): A | null => null
    expectTypeOf(use(Table)).toEqualTypeOf<ReadonlyMap<string, () => void> | null>()
    expect(Table.id).toBe("test.table")
  })
})

describe("Interaction", () => {
  it("holds a confirmation for a no unless the answer is a valid yes", () => {
    const Confirm = Interaction.make("test.confirm")({
      request: Schema.String,
      response: Schema.Boolean,
      unattended: "deny",
      confirm: true
    })
    expect(Interaction.isConfirmed(Confirm, { type: "answered", response: true, client: "a" })).toBe(true)
    expect(Interaction.isConfirmed(Confirm, { type: "answered", response: false, client: "a" })).toBe(false)
    for (const outcome of [{ type: "declined", client: "a" }, { type: "expired" }, { type: "unattended" }] as const) {
      expect(Interaction.isConfirmed(Confirm, outcome)).toBe(false)
    }
    const Question = Interaction.make("test.question")({
      request: Schema.String,
      response: Schema.Boolean,
      unattended: "wait"
    })
    expect(Interaction.isConfirmed(Question, { type: "answered", response: true, client: "a" })).toBe(false)
  })
})
