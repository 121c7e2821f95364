/** The host asks a person, as one text for every transport. */
import type { ConnectionShape } from "@bezel/core/rpc"
import { AskedRequest, type CloseReason, Interaction } from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Confirm, Question, Secret } from "./contract.ts"
import { eventually, makeHost, recordSpans, type TransportUnderTest } from "./harness.ts"

const ask = { sessionID: "one" }

/** A person who was asked and answers when the test says so. */
const person = (client: ConnectionShape, session = "one") =>
  Effect.gen(function*() {
    const reply = yield* Deferred.make<{ readonly answer: string } | "declined", Error>()
    let asked = 0
    /** What is told of each dialog that was closed; null where the connection was lost. */
    const closed: Array<CloseReason | null> = []
    yield* client.interactions.handle(Question, () =>
      Effect.suspend(() => {
        asked++
        return Deferred.await(reply)
      }).pipe(Effect.onInterrupt(() =>
        Effect.map(AskedRequest, (request) => {
          closed.push(request.closed)
        })
      )))
    yield* client.select(session)
    return { reply, asked: () => asked, closed: () => closed.length, reasons: () => closed }
  })

export const interactions = (transport: TransportUnderTest) => {
  it.effect("a request is answered by a client of its session", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      yield* client.interactions.handle(Question, ({ question }) => Effect.succeed({ answer: `${question}!` }))
      yield* client.select("one")
      const outcome = yield* host.broker.request(Question, { question: "why" }, ask)
      const [identity] = yield* host.endpoint.clients
      expect(outcome).toEqual({ type: "answered", response: { answer: "why!" }, client: identity?.id })
    }))

  it.effect("the first valid answer wins and the others are told to close", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const [one, two] = [yield* person(yield* host.client), yield* person(yield* host.client)]
      const outcome = yield* Effect.forkChild(host.broker.request(Question, { question: "which" }, ask))
      yield* eventually(() => one.asked() === 1 && two.asked() === 1)
      yield* Deferred.succeed(two.reply, { answer: "two" })
      expect(yield* Fiber.join(outcome)).toMatchObject({ type: "answered", response: { answer: "two" } })
      yield* eventually(() => one.closed() === 1)
      expect(one.reasons()).toEqual(["answered"])
      expect(yield* host.broker.open("one")).toEqual([])
    }))

  it.effect("a client that disconnects or fails hands the request on, and one that comes late sees it open", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { connection: leaving } = yield* host.connectWith({ retry: { first: "1 hour", longest: "1 hour" } })
      const gone = yield* person(leaving)
      const failing = yield* person(yield* host.client)
      const outcome = yield* Effect.forkChild(host.broker.request(Question, { question: "anybody" }, ask))
      yield* eventually(() => gone.asked() === 1 && failing.asked() === 1)
      yield* leaving.drop
      yield* eventually(() => gone.closed() === 1)
      yield* Deferred.fail(failing.reply, new Error("the dialog broke"))
      const late = yield* person(yield* host.client)
      yield* eventually(() => late.asked() === 1)
      yield* Deferred.succeed(late.reply, { answer: "late" })
      expect(yield* Fiber.join(outcome)).toMatchObject({ type: "answered", response: { answer: "late" } })
      expect(failing.asked()).toBe(1)
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("a client whose handler failed is not asked the same request again", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      yield* client.select("one")
      let failures = 0
      yield* client.interactions.handle(Question, () => {
        failures++
        return Effect.die("broken")
      })
      const outcome = yield* Effect.forkChild(host.broker.request(Question, { question: "one" }, ask))
      yield* eventually(() => failures === 1)
      let asked = 0
      yield* client.interactions.handle(Question, () => {
        asked++
        return Effect.succeed({ answer: "two" })
      })
      expect(yield* host.broker.request(Question, { question: "two" }, ask)).toMatchObject({
        response: { answer: "two" }
      })
      expect([failures, asked]).toEqual([1, 1])
      expect(outcome.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(outcome)
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("a handler that goes away while its dialog is open closes it and hands the request on", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      yield* client.select("one")
      let open = 0
      const scope = yield* Scope.make()
      yield* Scope.provide(
        client.interactions.handle(Confirm, () => {
          open++
          return Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              open--
            }))
        }),
        scope
      )
      const outcome = yield* Effect.forkChild(host.broker.request(Confirm, { action: "rm" }, ask))
      yield* eventually(() => open === 1)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(outcome)).toEqual({ type: "unattended" })
      yield* eventually(() => open === 0)
    }))

  it.effect("another handler that comes or goes leaves open dialogs alone", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      const somebody = yield* person(client)
      const outcome = yield* Effect.forkChild(host.broker.request(Question, { question: "still" }, ask))
      yield* eventually(() => somebody.asked() === 1)
      yield* Effect.scoped(client.interactions.handle(Confirm, () => Effect.succeed("no")))
      yield* Deferred.succeed(somebody.reply, { answer: "here" })
      expect(yield* Fiber.join(outcome)).toMatchObject({ response: { answer: "here" } })
      expect([somebody.asked(), somebody.closed()]).toEqual([1, 0])
    }))

  it.effect("a person who refuses settles the request as declined", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const somebody = yield* person(yield* host.client)
      yield* Deferred.succeed(somebody.reply, "declined")
      expect(yield* host.broker.request(Question, { question: "now" }, ask)).toMatchObject({ type: "declined" })
    }))

  it.effect("a request whose time runs out settles as expired, and its dialogs close", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const somebody = yield* person(yield* host.client)
      const outcome = yield* Effect.forkChild(
        host.broker.request(Question, { question: "soon" }, { ...ask, timeLimit: "1 minute" })
      )
      yield* eventually(() => somebody.asked() === 1)
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(outcome)).toEqual({ type: "expired" })
      yield* eventually(() => somebody.closed() === 1)
      expect(somebody.reasons()).toEqual(["expired"])
    }))

  it.effect("with nobody there the session's policy decides, over what the interaction would like", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      expect(yield* host.broker.request(Confirm, { action: "rm" }, ask)).toEqual({ type: "unattended" })
      const waiting = yield* Effect.forkChild(host.broker.request(Question, { question: "later" }, ask))
      yield* eventually(() => true)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* host.broker.unattended("one", "deny")
      expect(yield* Fiber.join(waiting)).toEqual({ type: "unattended" })
      expect(yield* host.broker.request(Question, { question: "now" }, ask)).toEqual({ type: "unattended" })
      yield* host.broker.unattended("one", "wait")
      const patient = yield* Effect.forkChild(host.broker.request(Confirm, { action: "rm" }, ask))
      yield* Effect.yieldNow
      expect(yield* host.broker.open("one")).toHaveLength(1)
      yield* Fiber.interrupt(patient)
    }))

  it.effect("when the last client leaves, a request that may not wait settles as unattended", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { connection } = yield* host.connectWith({ retry: { first: "1 hour", longest: "1 hour" } })
      yield* connection.interactions.handle(Confirm, () => Effect.never)
      yield* connection.select("one")
      const outcome = yield* Effect.forkChild(host.broker.request(Confirm, { action: "rm" }, ask))
      yield* eventually(() => Effect.runSync(host.broker.open("one")).length === 1)
      yield* connection.drop
      expect(yield* Fiber.join(outcome)).toEqual({ type: "unattended" })
    }))

  it.effect("a confirmation fails closed: malformed, failing, refused, late and absent are all a no", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      yield* client.select("one")
      const confirm = (handler: () => Effect.Effect<"yes" | "no" | "declined", unknown>) =>
        Effect.scoped(Effect.andThen(
          client.interactions.handle(Confirm, handler),
          Effect.map(
            host.broker.request(Confirm, { action: "rm" }, ask),
            (outcome) => Interaction.isConfirmed(Confirm, outcome)
          )
        ))
      expect(yield* confirm(() => Effect.succeed("yes"))).toBe(true)
      expect(yield* confirm(() => Effect.succeed("no"))).toBe(false)
      expect(yield* confirm(() => Effect.succeed("declined"))).toBe(false)
      expect(yield* confirm(() => Effect.fail("broken"))).toBe(false)
      expect(yield* confirm(() => Effect.die("broken"))).toBe(false)
      // @ts-expect-error: an answer that is none of the contract's.
      expect(yield* confirm(() => Effect.succeed("yes, sure"))).toBe(false)
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("a malformed answer on the wire is a no for a confirmation, and refused for a question", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const frames: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => frames.push(frame))))
      const send = (id: string, tag: string, payload: unknown) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] }))
      yield* send("1", "control", { type: "handles", interactions: [Confirm.id, Question.id] })
      yield* send("2", "control", { type: "select", session: "one" })
      yield* eventually(() => frames.length === 2)
      const confirm = yield* Effect.forkChild(host.broker.request(Confirm, { action: "rm" }, ask))
      const question = yield* Effect.forkChild(host.broker.request(Question, { question: "q" }, ask))
      yield* eventually(() => Effect.runSync(host.broker.open("one")).length === 2)
      yield* send("3", "control", { type: "answer", id: "1", answer: { type: "answered", response: "YES" } })
      expect(yield* Fiber.join(confirm)).toMatchObject({ type: "declined" })
      yield* send("4", "control", { type: "answer", id: "2", answer: { type: "answered", response: { answer: 7 } } })
      yield* eventually(() => frames.length === 4)
      expect(frames[3]).toContain("invalid_arguments")
      expect(question.pollUnsafe()).toBeUndefined()
      yield* send("5", "control", { type: "answer", id: "2", answer: { type: "answered", response: { answer: "ok" } } })
      expect(yield* Fiber.join(question)).toMatchObject({ type: "answered", response: { answer: "ok" } })
      yield* send("6", "control", { type: "answer", id: "2", answer: { type: "declined" } })
      yield* eventually(() => frames.length === 6)
      expect(frames[5]).toContain("stale_reference")
    }))

  it.effect("a client of another session, or one that does not handle it, is not asked and cannot answer", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const stranger = yield* person(yield* host.client, "two")
      const { connection: mute, frames: heard } = yield* host.connectWith()
      yield* mute.select("one")
      const outcome = yield* Effect.forkChild(host.broker.request(Question, { question: "mine" }, ask))
      yield* eventually(() => Effect.runSync(host.broker.open("one")).length === 1)
      const raw = yield* host.raw
      const frames: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => frames.push(frame))))
      yield* raw.send(JSON.stringify({
        _tag: "Request",
        id: "1",
        tag: "control",
        payload: { type: "answer", id: "1", answer: { type: "answered", response: { answer: "forged" } } },
        headers: []
      }))
      yield* eventually(() => frames.length === 1)
      expect(frames[0]).toContain("stale_reference")
      expect(stranger.asked()).toBe(0)
      expect(heard.received.join("\n")).not.toContain("offer")
      expect(outcome.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(outcome)
    }))

  it.effect("a client that never reads what it is asked is given up, and the requests go to others", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const received: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => received.push(frame))))
      const send = (id: number, tag: string, payload: object) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] }))
      yield* send(1, "control", { type: "handles", interactions: [Question.id] })
      yield* send(2, "control", { type: "select", session: "one" })
      yield* send(3, "watch", { type: "interactions" })
      yield* eventually(() => received.length === 2)
      for (let round = 0; round < 600; round++) {
        const asking = yield* Effect.forkChild(host.broker.request(Question, { question: "?" }, ask), {
          startImmediately: true
        })
        yield* Fiber.interrupt(asking)
      }
      yield* raw.closed
      expect(received.at(-1)).toContain(`"_tag":"Goodbye","code":"overloaded"`)
      yield* eventually(() => Effect.runSync(host.endpoint.clients).length === 0)
    }))

  it.effect("interrupting the one who asked settles nothing and closes the dialogs", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const somebody = yield* person(yield* host.client)
      const outcome = yield* Effect.forkChild(host.broker.request(Question, { question: "never mind" }, ask))
      yield* eventually(() => somebody.asked() === 1)
      yield* Fiber.interrupt(outcome)
      yield* eventually(() => somebody.closed() === 1)
      expect(somebody.reasons()).toEqual(["withdrawn"])
      expect(Exit.hasInterrupts(yield* Fiber.await(outcome))).toBe(true)
      expect(yield* host.broker.open("one")).toEqual([])
    }))

  it.effect("what a sensitive interaction asks and is answered is in no log, span or error", () =>
    Effect.gen(function*() {
      const canary = "canary-7f3a"
      const logged: Array<string> = []
      const logger = Logger.make((entry) => {
        logged.push(JSON.stringify(Logger.formatStructured.log(entry)))
      })
      const spans = recordSpans()
      const errors: Array<unknown> = []
      yield* spans.traced(Effect.gen(function*() {
        const host = yield* makeHost(transport)
        const client = yield* host.client
        yield* client.select("one")
        const request = host.broker.request(Secret, { hint: canary }, ask)
        const answer = yield* Effect.scoped(Effect.andThen(
          client.interactions.handle(Secret, () => Effect.succeed({ secret: canary })),
          request
        ))
        expect(answer).toMatchObject({ response: { secret: canary } })
        // A handler that breaks with the secret in its hands, and an answer that its contract refuses.
        yield* Effect.scoped(Effect.gen(function*() {
          yield* host.broker.unattended("one", "deny")
          yield* client.interactions.handle(Secret, ({ hint }) => Effect.die(new Error(hint)))
          errors.push(yield* request)
          yield* client.interactions.handle(Secret, () => Effect.succeed({ secret: canary.slice(0, 3) }))
          errors.push(yield* request)
        }))
      })).pipe(Effect.provide(Logger.layer([logger])))
      expect(logged.length).toBeGreaterThan(0)
      const spoken = JSON.stringify([
        logged,
        errors,
        spans.all.map((span) => [span.name, [...span.attributes], span.status])
      ])
      expect(spoken).not.toContain(canary)
    }))
}
