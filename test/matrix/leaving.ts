/** What is left behind by those who go, as one text for every transport: nothing, whatever they do and whoever fails. */
import {
  ClientIdentity,
  durableLog,
  eventFeed,
  isStateCell,
  MutableDurableEvents,
  MutableRemoteEvents,
  MutableRemoteState,
  RemoteReference,
  RemoteService,
  type ServiceDirectoryShape
} from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Latch, Logger, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { drained } from "../eventually.ts"
import { Question } from "./contract.ts"
import { connected, eventually, makeHost, type TransportUnderTest, until, untilStatus } from "./harness.ts"

const Said = Schema.Struct({ type: Schema.Literal("said"), text: Schema.String })

class Ticket extends RemoteService.make("test.ticket")({
  state: { left: Schema.Int },
  events: { said: Said },
  methods: { read: { success: Schema.Int }, wait: {} }
}) {}

class Receipt extends RemoteService.make("test.receipt")({ methods: { read: { success: Schema.Int } } }) {}

class Desk extends RemoteService.make("test.desk")({
  state: { open: Schema.Boolean },
  events: { said: Said, kept: { schema: Said, durable: true } },
  methods: {
    take: { success: RemoteReference.of(Ticket) },
    other: { success: RemoteReference.of(Ticket) },
    fail: { success: RemoteReference.of(Ticket), error: Schema.Literal("none left") },
    later: { success: RemoteReference.of(Ticket) },
    label: { success: Schema.NullOr(Schema.String) }
  }
}) {}

/** As an author writes it who likes classes. */
class TicketOf {
  readonly left: MutableRemoteState<number>
  readonly said: MutableRemoteEvents<typeof Said.Type>
  readonly #number = 7

  constructor(left: MutableRemoteState<number>, said: MutableRemoteEvents<typeof Said.Type>) {
    this.left = left
    this.said = said
  }

  read() {
    return Effect.succeed(this.#number)
  }

  wait() {
    return Effect.never
  }
}

const provideDesk = (directory: ServiceDirectoryShape, released: Effect.Effect<void> = Effect.void) =>
  Effect.gen(function*() {
    const open = yield* MutableRemoteState.make(Schema.Boolean, true)
    const said = yield* MutableRemoteEvents.make(Said)
    const kept = yield* MutableDurableEvents.make(Said)
    const goOn = yield* Deferred.make<void>()
    const tickets: Array<object> = []
    let waiting = 0
    const make = Effect.gen(function*() {
      const left = yield* MutableRemoteState.make(Schema.Int, 1)
      const spoken = yield* MutableRemoteEvents.make(Said)
      const ticket = yield* RemoteReference.make(Ticket, new TicketOf(left, spoken), { grace: 0, released })
      tickets.push(ticket)
      return ticket
    })
    yield* directory.provide(Desk, {
      open,
      said,
      kept,
      take: () => make,
      // @ts-expect-error: a provider that breaks its contract at run time.
      other: () => RemoteReference.make(Receipt, { read: () => Effect.succeed(1) }),
      fail: () => Effect.fail("none left"),
      later: () => {
        waiting++
        return Effect.andThen(Deferred.await(goOn), make)
      },
      label: () => Effect.map(ClientIdentity, (client) => client?.label ?? null)
    })
    return {
      open,
      said,
      kept,
      waiting: () => waiting,
      goOn: Deferred.succeed(goOn, undefined),
      completeAll: Effect.suspend(() => Effect.forEach(tickets, RemoteReference.complete)),
      held: () => tickets.filter((ticket) => RemoteReference.holders(ticket) > 0).length
    }
  })

const control = (id: string | number, payload: unknown, tag = "control") =>
  JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] })

export const leaving = (transport: TransportUnderTest) => {
  it.effect("an object of a class is a reference like any", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideDesk(host.directory)
      const ticket = yield* (yield* (yield* host.client).use(Desk)).take()
      expect(yield* ticket.read()).toBe(7)
    }))

  it.effect("what a plugin runs when nobody holds its object any more holds up nobody, should it fail or never end", () => {
    const logged: Array<string> = []
    const logger = Logger.make((entry) => {
      logged.push(Logger.formatJson.log(entry))
    })
    return Effect.gen(function*() {
      for (const released of [Effect.die(new Error("no place for it")), Effect.never]) {
        const log: Array<string> = []
        const host = yield* makeHost(transport, { detach: (session) => Effect.sync(() => log.push(`-${session}`)) })
        yield* provideDesk(host.directory, released)
        const client = yield* host.client
        const desk = yield* client.use(Desk)
        yield* client.select("one")
        const first = yield* desk.take()
        yield* desk.take()
        yield* first.release
        expect(yield* desk.label()).toBe("test")
        yield* client.drop
        yield* eventually(() => log.length === 1)
      }
      expect(logged.join("\n")).toContain("no place for it")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("a session whose leaving fails keeps no other one from being left", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        detach: (session) =>
          session === "one" ? Effect.die("a fault of a plugin") : Effect.sync(() => log.push(`-${session}`))
      })
      const client = yield* host.client
      yield* client.select("one")
      yield* client.attach("two")
      yield* client.drop
      yield* eventually(() => log.includes("-two"))
      expect(log[0]).toBe("-two")
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("references that have ended cost their holder no subscription, however many", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { subscriptionLimit: 5, referenceLimit: 5 })
      const provider = yield* provideDesk(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const desk = yield* connection.use(Desk)
      for (let round = 0; round < 12; round++) {
        const ticket = yield* desk.take()
        yield* until(ticket.left, (left) => left === 1)
        const listening = yield* Effect.forkScoped(Stream.runDrain(ticket.said), { startImmediately: true })
        yield* provider.completeAll
        yield* TestClock.adjust(1)
        yield* untilStatus(ticket.left, "stale")
        expect(yield* Effect.flip(ticket.read())).toMatchObject({ code: "stale_reference" })
        expect(yield* Effect.flip(ticket.ready)).toMatchObject({ code: "stale_reference" })
        yield* eventually(() => provider.held() === 0)
        expect(listening.pollUnsafe()).toBeUndefined()
      }
      // There is no successor to ask for.
      const asked = frames.sent.length
      yield* TestClock.adjust("5 seconds")
      expect(frames.sent.length).toBe(asked)
    }))

  it.effect("calls that fail leave no reference held, and those that wait for one count", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { referenceLimit: 2 })
      const provider = yield* provideDesk(host.directory)
      const desk = yield* (yield* host.client).use(Desk)
      for (let round = 0; round < 4; round++) expect(yield* Effect.flip(desk.fail())).toBe("none left")
      expect(yield* Effect.flip(desk.other())).toMatchObject({ code: "invalid_result" })
      const waiting = yield* Effect.forEach([1, 2], () => Effect.forkChild(desk.later()))
      yield* eventually(() => provider.waiting() === 2)
      expect(yield* Effect.flip(desk.take())).toMatchObject({ code: "overloaded" })
      yield* provider.goOn
      yield* Effect.forEach(waiting, Fiber.join)
      expect(provider.held()).toBe(2)
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("a call whose provider goes away holds no place for its reference", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { referenceLimit: 1 })
      const client = yield* host.client
      const desk = yield* client.use(Desk)
      const scope = yield* Scope.make()
      const provider = yield* Scope.provide(provideDesk(host.directory), scope)
      yield* desk.ready
      const waiting = yield* Effect.forkChild(Effect.flip(desk.later()))
      yield* eventually(() => provider.waiting() === 1)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(waiting)).toMatchObject({ code: "unavailable" })
      yield* provideDesk(host.directory)
      expect(yield* (yield* desk.take()).read()).toBe(7)
    }))

  it.effect("a reference that is given back before its call has ended is never held", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const provider = yield* provideDesk(host.directory)
      const raw = yield* host.raw
      const answers: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      yield* raw.send(control(1, { service: "test.desk", member: "later", payload: null, hold: 1 }, "call"))
      yield* eventually(() => provider.waiting() === 1)
      yield* raw.send(control(2, { type: "release", reference: 1 }))
      yield* eventually(() => answers.length === 1)
      yield* provider.goOn
      yield* eventually(() => answers.length === 2)
      expect(provider.held()).toBe(0)
    }))

  it.effect("calls that wait on an object end when it is given back", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideDesk(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const ticket = yield* (yield* connection.use(Desk)).take()
      const waiting = yield* Effect.forkChild(Effect.flip(ticket.wait()))
      yield* eventually(() => frames.sent.some((frame) => frame.includes(`"member":"wait"`)))
      yield* ticket.release
      expect(yield* Fiber.join(waiting)).toMatchObject({ code: "unavailable" })
    }))

  it.effect("subscriptions that have ended make room for others", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { subscriptionLimit: 2 })
      yield* provideDesk(host.directory)
      const { connection } = yield* host.connectWith({ idle: 0 })
      for (let round = 0; round < 6; round++) {
        yield* Effect.scoped(Effect.flatMap(connection.use(Desk), (desk) => desk.ready))
        yield* TestClock.adjust(1)
      }
      const desk = yield* connection.use(Desk)
      yield* desk.ready
      expect(desk.open.value).toBe(true)
    }))

  it.effect("a client that is gone listens to nothing any more", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const provider = yield* provideDesk(host.directory)
      let watchers = 0
      const { watch } = host.directory
      Object.assign(host.directory, {
        watch: (listener: () => void) => {
          const unwatch = watch(listener)
          watchers++
          return () => {
            watchers--
            unwatch()
          }
        }
      })
      const listeners = () => [
        isStateCell(provider.open) ? provider.open.feed.size : -1,
        eventFeed(provider.said)?.size,
        durableLog(provider.kept)?.feed.size,
        watchers
      ]
      const scope = yield* Scope.make()
      const { connection } = yield* Scope.provide(host.connectWith(), scope)
      const desk = yield* Scope.provide(connection.use(Desk), scope)
      yield* desk.ready
      yield* Effect.forkScoped(Stream.runDrain(desk.said))
      yield* Effect.forkScoped(Stream.runDrain(desk.kept.after(null)))
      yield* eventually(() => listeners().every((count) => count === 1))
      yield* Scope.close(scope, Exit.void)
      yield* eventually(() => listeners().every((count) => count === 0))
      expect(listeners()).toEqual([0, 0, 0, 0])
    }))

  it.effect("a provider that is gone is followed by nobody", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const scope = yield* Scope.make()
      const before = yield* Scope.provide(provideDesk(host.directory), scope)
      const desk = yield* (yield* host.client).use(Desk)
      yield* desk.ready
      yield* Effect.forkScoped(Stream.runDrain(desk.said))
      yield* Effect.forkScoped(Stream.runDrain(desk.kept.after(null)))
      const listeners = ({ kept, open, said }: typeof before) => [
        isStateCell(open) ? open.feed.size : -1,
        eventFeed(said)?.size,
        durableLog(kept)?.feed.size
      ]
      yield* eventually(() => listeners(before).every((count) => count === 1))
      yield* Scope.close(scope, Exit.void)
      expect(listeners(before)).toEqual([0, 0, 0])
      const after = yield* provideDesk(host.directory)
      yield* eventually(() => listeners(after).every((count) => count === 1))
    }))

  it.effect("who goes from one session where nobody provides a service to another is told so there too", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* host.directory.declare(Desk, { perSession: true })
      const client = yield* host.client
      const desk = yield* client.use(Desk)
      const statuses: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(desk.open.statuses, (status) => Effect.sync(() => statuses.push(status)))
      )
      for (const session of ["one", "two"]) {
        yield* drained
        statuses.length = 0
        yield* client.select(session)
        yield* eventually(() => statuses.length === 2)
        expect(statuses).toEqual(["hydrating", "detached"])
      }
    }))

  it.effect("a client that has left a session is asked nothing of it any more", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      const asked: Array<string> = []
      yield* client.interactions.handle(Question, ({ question }) =>
        Effect.sync(() => {
          asked.push(question)
          return { answer: "yes" }
        }))
      const ask = (sessionID: string) => host.broker.request(Question, { question: `in ${sessionID}` }, { sessionID })
      yield* client.select("one")
      yield* client.select("two")
      yield* Effect.scoped(client.attach("three"))
      for (const session of ["one", "three"]) yield* Effect.forkScoped(ask(session))
      expect(yield* ask("two")).toMatchObject({ type: "answered" })
      yield* drained
      expect(asked).toEqual(["in two"])
    }))

  it.effect("a client may follow once what it is asked, and change so much at once and no more", () =>
    Effect.gen(function*() {
      const goOn = yield* Latch.make()
      const host = yield* makeHost(transport, { callLimit: 3, attach: () => goOn.await })
      const raw = yield* host.raw
      const answers: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const answered = (count: number) =>
        Effect.map(eventually(() => answers.length === count), () => answers.map((one) => one.includes("overloaded")))
      const asked = (id: string) => raw.send(control(id, { type: "interactions" }, "watch"))
      yield* asked("a")
      yield* asked("b")
      expect(yield* answered(1)).toEqual([true])
      yield* raw.send(JSON.stringify({ _tag: "Interrupt", requestId: "a" }))
      yield* answered(2)
      yield* asked("c")
      answers.length = 0
      for (let id = 0; id < 10; id++) yield* raw.send(control(id, { type: "select", session: "s" }))
      expect(yield* answered(7)).toEqual(Array.from({ length: 7 }, () => true))
      yield* goOn.open
      expect((yield* answered(10)).slice(7)).toEqual([false, false, false])
      yield* raw.send(control(10, { type: "catalogue" }))
      expect((yield* answered(11)).at(-1)).toBe(false)
    }))

  it.effect("a client that goes while a session is opened for it holds nothing up and leaves none", () =>
    Effect.gen(function*() {
      const goOn = yield* Latch.make()
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        attach: (session) =>
          session === "never"
            ? Effect.andThen(Effect.sync(() => log.push("asked")), Effect.never)
            : Effect.uninterruptible(
              Effect.andThen(Effect.andThen(Effect.sync(() => log.push("asked")), goOn.await), Effect.void)
            ),
        detach: (session) => Effect.sync(() => log.push(`-${session}`))
      })
      for (const session of ["never", "slow"]) {
        const scope = yield* Scope.make()
        const { connection } = yield* Scope.provide(host.connectWith(), scope)
        const selecting = yield* Effect.forkChild(Effect.exit(connection.select(session)))
        yield* eventually(() => log.length === (session === "never" ? 1 : 2))
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* drained
        yield* goOn.open
        yield* Fiber.join(closing)
        yield* Fiber.await(selecting)
        yield* eventually(() => Effect.runSync(host.endpoint.clients).length === 0)
      }
      yield* eventually(() => log.length === 3)
      expect(log).toEqual(["asked", "asked", "-slow"])
    }))

  it.effect("a session that is attached twice stays until both have left, and is another one when it is attached anew", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const host = yield* makeHost(transport, { detach: (session) => Effect.sync(() => log.push(`-${session}`)) })
      const client = yield* host.client
      const [one, two] = [yield* Scope.make(), yield* Scope.make()]
      const first = yield* Scope.provide(client.attach("one"), one)
      yield* Scope.provide(client.attach("one"), two)
      const before = yield* Scope.provide(first.use(Desk), one)
      yield* Scope.close(one, Exit.void)
      expect(log).toEqual([])
      yield* Scope.close(two, Exit.void)
      expect(log).toEqual(["-one"])
      expect(yield* (yield* client.attach("one")).use(Desk)).not.toBe(before)
    }))

  it.effect("a session that is left while the connection is made again is left there too", () =>
    Effect.gen(function*() {
      const goOn = yield* Latch.make(true)
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        attach: (session) =>
          Effect.andThen(Effect.sync(() => log.push(`+${session}`)), session === "shown" ? goOn.await : Effect.void),
        detach: (session) => Effect.sync(() => log.push(`-${session}`))
      })
      const client = yield* host.client
      const scope = yield* Scope.make()
      yield* Scope.provide(client.attach("beside"), scope)
      yield* client.select("shown")
      log.length = 0
      yield* goOn.close
      yield* client.drop
      yield* eventually(() => log.includes("+shown"))
      yield* Scope.close(scope, Exit.void)
      yield* goOn.open
      yield* connected(client)
      yield* eventually(() => log.filter((line) => line === "-beside").length === 2)
      expect(log.filter((line) => line.endsWith("beside"))).toEqual(["-beside", "+beside", "-beside"])
    }))

  it.effect("who has said what it is is told of once, with its end, and under that name; who has not, never", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        connected: (client) => log.push(`+${client.label}`),
        disconnected: (client) => log.push(`-${client.label}`)
      })
      yield* provideDesk(host.directory)
      const silent = yield* host.raw
      const raw = yield* host.raw
      const answers: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      yield* raw.send(control(1, { type: "hello", label: "first" }))
      yield* raw.send(control(2, { service: "test.desk", member: "label", payload: null }, "call"))
      yield* raw.send(control(3, { type: "hello", label: "second".repeat(100) }))
      yield* raw.send(control(4, { service: "test.desk", member: "label", payload: null }, "call"))
      yield* eventually(() => answers.length === 4)
      expect(answers.map((answer) => /"value":"(\w+)"/.exec(answer)?.[1]).filter((label) => label !== undefined))
        .toEqual(["first", "second".repeat(100).slice(0, 200)])
      yield* silent.close
      yield* raw.close
      yield* eventually(() => Effect.runSync(host.endpoint.clients).length === 0)
      expect(log).toEqual(["+first", `-${"second".repeat(100).slice(0, 200)}`])
    }))

  it.effect("a session that is refused when the connection is made again is shown no more, one at rest stays at rest", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        attach: (session, _, { resume }) =>
          Effect.sync(() => void log.push(`${session} ${resume ? "at work" : "at rest"}`))
      })
      const client = yield* host.client
      yield* client.select("one", { resume: false })
      yield* client.drop
      yield* eventually(() => log.length === 2)
      expect(log).toEqual(["one at rest", "one at rest"])
      yield* connected(client)
      expect(client.session.value).toBe("one")
    }))
}
