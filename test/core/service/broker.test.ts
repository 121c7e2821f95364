import { type CloseReason, Interaction, InteractionBroker, type Offer } from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Scope } from "effect"

const Ask = Interaction.make("test.ask")({ request: Schema.String, response: Schema.String, unattended: "wait" })

/** A client that notes what it is shown. */
const client = (broker: InteractionBroker["Service"], id: string, ...sessions: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const offers: Array<Offer> = []
    const closed: Array<CloseReason> = []
    const seat = yield* broker.connect({
      id,
      offer: (offer) => offers.push(offer),
      close: (_, reason) => closed.push(reason)
    })
    yield* seat.handles([Ask.id])
    for (const session of sessions) yield* seat.attach(session)
    return { offers, closed, seat }
  })

const within = <A>(use: (scope: Scope.Closeable) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.flatMap(Scope.make(), (scope) => use(scope))

describe("a session that works for another one", () => {
  it.effect("asks the other's people beside its own, from the first of a chain to the last", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const top = yield* client(broker, "top", "parent")
      const own = yield* client(broker, "own", "deep")
      const other = yield* client(broker, "other", "stranger")
      yield* broker.relay("child", "parent")
      yield* broker.relay("deep", "child")
      const asking = yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "deep" }), {
        startImmediately: true
      })
      expect([top, own, other].map(({ offers }) => offers.map(({ session }) => session))).toEqual([
        ["deep"],
        ["deep"],
        []
      ])
      expect(yield* broker.open("parent")).toHaveLength(1)
      expect(yield* broker.open("stranger")).toHaveLength(0)
      yield* top.seat.answer(top.offers[0]?.id ?? "", { type: "answered", response: "yes" })
      expect(yield* Fiber.join(asking)).toMatchObject({ type: "answered", response: "yes", client: "top" })
      expect(own.closed).toEqual(["answered"])
    }).pipe(Effect.scoped))

  it.effect("is denied where the other is, also what it has asked before, unless it has a policy of its own", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const early = yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "child" }), {
        startImmediately: true
      })
      yield* broker.relay("child", "parent")
      yield* broker.unattended("parent", "deny")
      expect(yield* Fiber.join(early)).toEqual({ type: "unattended" })
      expect(yield* broker.request(Ask, "?", { sessionID: "child" })).toEqual({ type: "unattended" })
      yield* broker.unattended("child", "wait")
      const waiting = yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "child" }), {
        startImmediately: true
      })
      expect(yield* broker.open("child")).toHaveLength(1)
      yield* broker.unattended("child", null)
      expect(yield* Fiber.join(waiting)).toEqual({ type: "unattended" })
    }).pipe(Effect.scoped))

  it.effect("shows what is open to the other's people when it begins, and takes it away when it ends", () =>
    within((scope) =>
      Effect.gen(function*() {
        const broker = yield* InteractionBroker.make
        const top = yield* client(broker, "top", "parent")
        yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "child" }), { startImmediately: true })
        expect(top.offers).toHaveLength(0)
        yield* Scope.provide(broker.relay("child", "parent"), scope)
        expect(top.offers).toHaveLength(1)
        yield* Scope.close(scope, Exit.void)
        expect(top.closed).toEqual(["withdrawn"])
        expect(yield* broker.open("child")).toHaveLength(1)
      })
    ).pipe(Effect.scoped))

  it.effect("that works for itself in a circle asks each once", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const top = yield* client(broker, "top", "a", "b")
      yield* broker.relay("a", "b")
      yield* broker.relay("b", "a")
      yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "a" }), { startImmediately: true })
      expect(top.offers).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.effect("asks nobody any more who has left both", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const top = yield* client(broker, "top", "parent", "child")
      yield* broker.relay("child", "parent")
      yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "child" }), { startImmediately: true })
      yield* top.seat.detach("child")
      expect(top.closed).toEqual([])
      yield* top.seat.detach("parent")
      expect(top.closed).toEqual(["withdrawn"])
    }).pipe(Effect.scoped))

  it.effect("works for the one that it was given last, whatever ends before", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const [one, two] = [yield* client(broker, "one", "one"), yield* client(broker, "two", "two")]
      const first = yield* Scope.make()
      yield* Scope.provide(broker.relay("child", "one"), first)
      yield* broker.relay("child", "two")
      yield* Scope.close(first, Exit.void)
      yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "child" }), { startImmediately: true })
      expect([one.offers.length, two.offers.length]).toEqual([0, 1])
    }).pipe(Effect.scoped))
})

describe("a request", () => {
  it.effect("is put before the client that sent the current input first", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const order: Array<string> = []
      for (const id of ["first", "second"]) {
        const seat = yield* broker.connect({ id, offer: () => order.push(id), close: () => {} })
        yield* seat.handles([Ask.id])
        yield* seat.attach("one")
      }
      yield* broker.prefer("one", "second")
      yield* Effect.forkChild(broker.request(Ask, "who", { sessionID: "one" }), { startImmediately: true })
      expect(order).toEqual(["second", "first"])
    }).pipe(Effect.scoped))

  it.effect("is closed for all who have it but the one who has answered or refused it", () =>
    Effect.gen(function*() {
      const broker = yield* InteractionBroker.make
      const [one, other] = [yield* client(broker, "one", "s"), yield* client(broker, "other", "s")]
      for (const answer of [{ type: "answered", response: "yes" }, { type: "declined" }] as const) {
        const asking = yield* Effect.forkChild(broker.request(Ask, "?", { sessionID: "s" }), { startImmediately: true })
        yield* one.seat.answer(one.offers.at(-1)?.id ?? "", answer)
        expect(yield* Fiber.join(asking)).toMatchObject({ type: answer.type, client: "one" })
        expect(other.closed.at(-1)).toBe(answer.type)
      }
      expect([one.closed, other.closed.length]).toEqual([[], 2])
    }).pipe(Effect.scoped))
})
