/** Who hands what is asked on to people elsewhere, and answers for them. */
import { loopback, type RequestPort } from "@bezel/core/rpc"
import { Interaction, type Offer } from "@bezel/core/service"
import { makeServiceHost, type ServiceHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Scope } from "effect"
import { connected, eventually } from "../../matrix/harness.ts"

const Ask = Interaction.make("test.ask")({ request: Schema.String, response: Schema.String, unattended: "deny" })

const port = () => {
  const offers: Array<Offer> = []
  const told: Array<string> = []
  const it: RequestPort = {
    offered: (offer) => offers.push(offer),
    closed: (_, reason) => told.push(reason),
    lost: () => told.push("lost")
  }
  return { it, offers, told }
}

const ask = (host: ServiceHost) =>
  Effect.forkChild(host.broker.request(Ask, "why", { sessionID: "s" }), { startImmediately: true })

const waiting = (host: ServiceHost) => host.broker.unattended("s", "wait")

describe("a port for requests", () => {
  it.effect("is offered what is open by the time that it is there, and answers it", () =>
    Effect.gen(function*() {
      const host = yield* makeServiceHost()
      yield* waiting(host)
      const asking = yield* ask(host)
      const client = yield* host.connect({ retry: { first: 0, longest: 0 } })
      yield* connected(client)
      yield* client.select("s")
      const { it, offers } = port()
      const answers = yield* client.interactions.handOn(it)
      expect(offers[0]).toMatchObject({ interaction: "test.ask", session: "s", request: "why" })
      yield* answers.answer(offers[0]?.id ?? "", { type: "answered", response: "so" })
      expect(yield* Fiber.join(asking)).toMatchObject({ type: "answered", response: "so" })
    }))

  it.effect("is told when the connection is lost, is offered again what is open, and speaks to no other host of it", () =>
    Effect.gen(function*() {
      const [before, after] = [yield* makeServiceHost(), yield* makeServiceHost()]
      yield* Effect.forEach([before, after], waiting)
      const host = { now: before }
      const client = yield* before.connect({
        connect: Effect.suspend(() => loopback(host.now.endpoint)),
        retry: { first: 0, longest: 0 }
      })
      yield* connected(client)
      yield* client.select("s")
      const { it, offers, told } = port()
      const answers = yield* client.interactions.handOn(it)
      yield* ask(before)
      yield* eventually(() => offers.length > 0)
      const [first] = offers
      offers.length = 0
      yield* client.drop
      yield* eventually(() => offers.length > 0)
      expect([told, offers[0]?.id]).toEqual([["lost"], first?.id])
      const other = yield* ask(after)
      host.now = after
      offers.length = 0
      yield* client.drop
      yield* eventually(() => offers.length > 0)
      const late = yield* Effect.flip(answers.answer(first?.id ?? "", { type: "declined" }))
      expect(late).toMatchObject({ code: "stale_reference" })
      expect(other.pollUnsafe()).toBeUndefined()
      yield* answers.answer(offers[0]?.id ?? "", { type: "declined" })
      expect(yield* Fiber.join(other)).toMatchObject({ type: "declined" })
    }))

  it.effect("that is there no more is nobody to ask", () =>
    Effect.gen(function*() {
      const host = yield* makeServiceHost()
      const client = yield* host.connect()
      yield* connected(client)
      yield* client.select("s")
      const scope = yield* Scope.make()
      const { it, offers } = port()
      yield* Scope.provide(client.interactions.handOn(it), scope)
      const asking = yield* ask(host)
      yield* eventually(() => offers.length > 0)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(asking)).toEqual({ type: "unattended" })
    }))
})
