/** Services of sessions and services with many instances, as one text for every transport. */
import { MutableRemoteState, type ServiceDirectoryShape, ServiceError } from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Logger, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { drained } from "../eventually.ts"
import { Job, Models, Question } from "./contract.ts"
import { connected, eventually, makeHost, type TransportUnderTest, until, untilStatus } from "./harness.ts"
import { provideModels } from "./provide.ts"

const spawnJob = (directory: ServiceDirectoryShape, key: string, title: string, session?: string) =>
  Effect.gen(function*() {
    const progress = yield* MutableRemoteState.make(Schema.Int, 0)
    yield* directory.provide(
      Job,
      { progress, title: yield* MutableRemoteState.make(Schema.String, title), name: () => Effect.succeed(title) },
      { key, ...(session === undefined ? {} : { session }) }
    )
    return progress
  })

export const sessions = (transport: TransportUnderTest) => {
  it.effect("a facade of a session's service is detached until a session is selected, then shows that session's", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory, { session: "one", first: "of one" })
      yield* provideModels(host.directory, { session: "two", first: "of two" })
      const client = yield* host.client
      const models = yield* client.use(Models)
      yield* untilStatus(models.state, "detached")
      expect(models.state.value).toBeUndefined()
      expect(yield* Effect.flip(models.who())).toMatchObject({ code: "unavailable" })
      yield* client.select("one")
      yield* models.ready
      expect(models.state.value?.current).toBe("of one")
      expect(yield* models.who()).toBe("of one")
    }))

  it.effect("another selection never shows the last session's value, not even for a moment", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const one = yield* provideModels(host.directory, { session: "one", first: "of one" })
      yield* provideModels(host.directory, { session: "two", first: "of two" })
      const client = yield* host.client
      const models = yield* client.use(Models)
      yield* client.select("one")
      yield* models.ready
      const after: Array<string | null> = []
      for (let round = 0; round < 5; round++) {
        yield* one.state.update((draft) => {
          draft.revision++
        })
      }
      yield* client.select("two")
      expect([undefined, "of two"]).toContain(models.state.value?.current)
      yield* Effect.forkScoped(
        Stream.runForEach(models.state.changes, (value) => Effect.sync(() => after.push(value.current)))
      )
      yield* models.ready
      yield* one.state.update((draft) => {
        draft.revision = 100
      })
      yield* eventually(() => after.length > 0)
      expect(new Set(after)).toEqual(new Set(["of two"]))
      expect(yield* models.who()).toBe("of two")
      yield* client.select(null)
      expect(models.state.value).toBeUndefined()
      expect(models.state.status).toBe("detached")
    }))

  it.effect("a connection sees the host's instances and those of the session it is attached to, nothing else", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, {
        attach: (session) =>
          session === "mine"
            ? Effect.void
            : Effect.fail(new ServiceError({ code: "unauthorized", message: `Session "${session}" is not yours.` }))
      })
      yield* provideModels(host.directory, { session: "mine", first: "of mine" })
      yield* provideModels(host.directory, { session: "theirs", first: "of theirs" })
      const client = yield* host.client
      const models = yield* client.use(Models)
      yield* client.select("mine")
      yield* models.ready
      expect(yield* Effect.flip(client.select("theirs"))).toMatchObject({
        code: "unauthorized",
        message: `Session "theirs" is not yours.`
      })
      expect(client.session.value).toBe("mine")
      expect(models.state.value?.current).toBe("of mine")
      expect(yield* models.who()).toBe("of mine")
    }))

  it.effect("a call that names a session is refused unless the connection is attached to it", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory, { session: "theirs", first: "of theirs" })
      const answers: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const call = (id: string) =>
        raw.send(JSON.stringify({
          _tag: "Request",
          id,
          tag: "call",
          payload: { service: "test.models", session: "theirs", member: "who", payload: null },
          headers: []
        }))
      yield* call("1")
      yield* eventually(() => answers.length === 1)
      expect(answers[0]).toContain("unauthorized")
      yield* raw.send(JSON.stringify({
        _tag: "Request",
        id: "2",
        tag: "control",
        payload: { type: "select", session: "theirs" },
        headers: []
      }))
      yield* eventually(() => answers.length === 2)
      yield* call("3")
      yield* eventually(() => answers.length === 3)
      expect(answers[2]).toContain("of theirs")
    }))

  it.effect("a selection where nobody provides a service says so, and the service may come later", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* host.directory.declare(Models, { perSession: true })
      const client = yield* host.client
      const models = yield* client.use(Models)
      yield* client.select("empty")
      yield* untilStatus(models.state, "detached")
      yield* client.select("also empty")
      yield* untilStatus(models.state, "detached")
      yield* provideModels(host.directory, { session: "also empty", first: "here now" })
      yield* models.ready
      expect(models.state.value?.current).toBe("here now")
    }))

  it.effect("a reconnect selects the same session again", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory, { session: "one", first: "of one" })
      const client = yield* host.client
      const models = yield* client.use(Models)
      yield* client.select("one")
      yield* models.ready
      yield* client.drop
      yield* untilStatus(models.state, "stale")
      yield* connected(client)
      yield* state.update((draft) => {
        draft.revision = 5
      })
      yield* until(models.state, (value) => value.revision === 5)
      expect(client.session.value).toBe("one")
    }))

  it.effect("selections of one client are made one after another, and each attach has its detach", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        attach: (session) =>
          Effect.sync(() => log.push(`+${session}`)).pipe(
            Effect.andThen(
              session === "slow" ? Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow) : Effect.void
            ),
            Effect.asVoid
          ),
        detach: (session) => Effect.sync(() => log.push(`-${session}`))
      })
      const raw = yield* host.raw
      const answers: Array<string> = []
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      for (const session of ["slow", "quick"]) {
        yield* raw.send(JSON.stringify({
          _tag: "Request",
          id: session,
          tag: "control",
          payload: { type: "select", session },
          headers: []
        }))
      }
      yield* eventually(() => answers.length === 2)
      yield* raw.close
      yield* eventually(() => log.length === 4)
      expect(log).toEqual(["+slow", "+quick", "-slow", "-quick"])
    }))

  it.effect("several sessions are followed at once, beside the one that is shown", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const host = yield* makeHost(transport, {
        attach: (session) =>
          session === "theirs"
            ? Effect.fail(new ServiceError({ code: "unauthorized", message: "Not yours." }))
            : Effect.asVoid(Effect.sync(() => log.push(`+${session}`))),
        detach: (session) => Effect.asVoid(Effect.sync(() => log.push(`-${session}`)))
      })
      const one = yield* provideModels(host.directory, { session: "one", first: "of one" })
      yield* provideModels(host.directory, { session: "two", first: "of two" })
      yield* provideModels(host.directory, { session: "theirs", first: "of theirs" })
      const client = yield* host.client
      yield* client.select("two")
      const shown = yield* client.use(Models)
      const scope = yield* Scope.make()
      const beside = yield* Scope.provide(client.attach("one"), scope)
      const again = yield* Scope.provide(client.attach("one"), scope)
      const models = yield* beside.use(Models)
      expect(yield* again.use(Models)).toBe(models)
      yield* Effect.all([shown.ready, models.ready])
      expect([shown.state.value?.current, models.state.value?.current]).toEqual(["of two", "of one"])
      expect([yield* shown.who(), yield* models.who()]).toEqual(["of two", "of one"])
      expect(yield* Effect.flip(Effect.scoped(client.attach("theirs")))).toMatchObject({ code: "unauthorized" })
      // Shown and beside is one attachment.
      yield* client.select("one")
      yield* client.select(null)
      expect(models.state.status).toBe("live")
      yield* client.drop
      yield* untilStatus(models.state, "stale")
      yield* connected(client)
      yield* one.state.update((draft) => {
        draft.revision = 9
      })
      yield* until(models.state, (value) => value.revision === 9)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Effect.flip(models.who())).toMatchObject({ code: "unauthorized" })
      yield* eventually(() => models.state.status !== "live")
      expect(log).toEqual(["+two", "+one", "-two", "-one", "+one", "-one"])
    }))

  it.effect("a session that is attached without starting its work is started once somebody wants that", () =>
    Effect.gen(function*() {
      const attached: Array<string> = []
      const { connectWith } = yield* makeHost(transport, {
        attach: (session, _, { resume }) =>
          Effect.sync(() => {
            attached.push(`${session} ${resume ? "at work" : "at rest"}`)
          }),
        detach: (session) =>
          Effect.sync(() => {
            attached.push(`${session} left`)
          })
      })
      const { connection } = yield* connectWith()
      const scope = yield* Scope.make()
      yield* Scope.provide(connection.attach("s1", { resume: false }), scope)
      yield* Scope.provide(connection.attach("s1", { resume: false }), scope)
      yield* Scope.provide(connection.attach("s1"), scope)
      yield* Scope.provide(connection.attach("s1"), scope)
      yield* Scope.provide(connection.attach("s2", { resume: false }), scope)
      yield* connection.select("s2")
      yield* Scope.close(scope, Exit.void)
      expect(attached).toEqual(["s1 at rest", "s1 at work", "s2 at rest", "s2 at work", "s1 left"])
      yield* connection.drop
      yield* eventually(() => attached.includes("s2 left") && attached.at(-1) === "s2 at work")
    }))

  it.effect("what a session asks that is attached beside is asked of that client too", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      yield* client.interactions.handle(Question, ({ question }) => Effect.succeed({ answer: `${question}!` }))
      yield* client.select("two")
      yield* client.attach("one")
      const outcome = yield* host.broker.request(Question, { question: "why" }, { sessionID: "one" })
      expect(outcome).toMatchObject({ type: "answered", response: { answer: "why!" } })
    }))

  it.effect("a host is told when a client leaves a session", () =>
    Effect.gen(function*() {
      const left: Array<string> = []
      const host = yield* makeHost(transport, { detach: (session) => Effect.sync(() => left.push(session)) })
      const client = yield* host.client
      yield* client.select("one")
      yield* client.select("two")
      expect(left).toEqual(["one"])
      yield* client.drop
      yield* eventually(() => left.length === 2)
      expect(left).toEqual(["one", "two"])
    }))
}

export const keyed = (transport: TransportUnderTest) => {
  it.effect("an observer runs once per live instance, those already open included, and ends with it", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* spawnJob(host.directory, "early", "Early")
      const client = yield* host.client
      const log: Array<string> = []
      yield* client.observe(Job, (job, key) =>
        Effect.gen(function*() {
          log.push(`+${key} ${yield* job.name().pipe(Effect.orDie)}`)
          yield* Effect.addFinalizer(() => Effect.sync(() => log.push(`-${key}`)))
          return yield* Effect.never
        }))
      yield* eventually(() => log.length === 1)
      const scope = yield* Scope.make()
      yield* Scope.provide(spawnJob(host.directory, "late", "Late"), scope)
      yield* eventually(() => log.length === 2)
      yield* Scope.close(scope, Exit.void)
      yield* eventually(() => log.length === 3)
      expect(log).toEqual(["+early Early", "+late Late", "-late"])
    }))

  it.effect("all who observe an instance have the same facade, with one subscription behind it, for as long as one of them does", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* spawnJob(host.directory, "a", "A")
      const { connection, frames } = yield* host.connectWith({ idle: 0 })
      const seen: Array<unknown> = []
      const observing = () =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const before = seen.length
          yield* Scope.provide(
            connection.observe(Job, (job) =>
              Effect.andThen(
                until(job.title, (title) => title === "A"),
                Effect.andThen(Effect.sync(() => seen.push(job)), Effect.never)
              )),
            scope
          )
          yield* eventually(() => seen.length > before)
          return Scope.close(scope, Exit.void)
        })
      const watches = () =>
        frames.sent.filter((frame) => frame.includes(`"tag":"watch"`) && frame.includes(Job.id)).length
      const leave = [yield* observing(), yield* observing(), yield* observing()]
      expect(new Set(seen).size).toBe(1)
      // The list and the states.
      expect(watches()).toBe(2)
      yield* leave[0] ?? Effect.void
      yield* leave[1] ?? Effect.void
      yield* TestClock.adjust(1)
      expect(frames.sent.filter((frame) => frame.includes(`"Interrupt"`))).toHaveLength(0)
      yield* leave[2] ?? Effect.void
      yield* TestClock.adjust(1)
      yield* eventually(() => frames.sent.filter((frame) => frame.includes(`"Interrupt"`)).length === 2)
      yield* observing()
      expect(new Set(seen).size).toBe(2)
    }))

  it.effect("a key that is used again is another generation, and a stale handle cannot call its successor", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const client = yield* host.client
      const handles: Array<{ readonly name: () => Effect.Effect<string, ServiceError> }> = []
      yield* client.observe(Job, (job) => Effect.sync(() => handles.push(job)))
      const first = yield* Scope.make()
      yield* Scope.provide(spawnJob(host.directory, "key", "First"), first)
      yield* eventually(() => handles.length === 1)
      yield* Scope.close(first, Exit.void)
      yield* spawnJob(host.directory, "key", "Second")
      yield* eventually(() => handles.length === 2)
      const names = handles.map((handle) => handle.name())
      expect(yield* names[1] ?? Effect.succeed("none")).toBe("Second")
      expect(yield* Effect.flip(names[0] ?? Effect.succeed("none"))).toMatchObject({ code: "stale_reference" })
    }))

  it.effect("an instance of the session is reached also where the host has one of the same key", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* spawnJob(host.directory, "a", "of the host")
      yield* spawnJob(host.directory, "a", "of the session", "s")
      const client = yield* host.client
      yield* client.select("s")
      const seen: Array<string> = []
      yield* client.observe(Job, (job) => Effect.flatMap(job.name(), (name) => Effect.sync(() => seen.push(name))))
      yield* eventually(() => seen.length === 2)
      expect(seen.toSorted()).toEqual(["of the host", "of the session"])
    }))

  it.effect("an observer that fails is told in the log and ends no other; one that begins without a connection waits for it", () => {
    const logged: Array<string> = []
    const logger = Logger.make((entry) => {
      logged.push(Logger.formatJson.log(entry))
    })
    return Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* spawnJob(host.directory, "a", "A")
      yield* spawnJob(host.directory, "b", "B")
      const { connection } = yield* host.connectWith({ retry: { first: "1 second", longest: "1 second" } })
      const seen: Array<string> = []
      const observe = (name: string) =>
        connection.observe(Job, (_, key) => {
          seen.push(`${name} ${key}`)
          return key === "a" ? Effect.die(new Error("no place for it")) : Effect.never
        })
      yield* observe("first")
      yield* eventually(() => seen.length === 2)
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* observe("second")
      yield* drained
      expect(seen).toEqual(["first a", "first b"])
      yield* TestClock.adjust("1 second")
      yield* eventually(() => seen.length === 4)
      expect(seen.slice(2)).toEqual(["second a", "second b"])
      expect(logged.join("\n")).toMatch(
        /An observer of service \\?"test.job\\?" failed for \\?"a\\?".*no place for it/s
      )
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("a facade by key shows that instance's states", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const progress = yield* spawnJob(host.directory, "a", "A")
      yield* spawnJob(host.directory, "b", "B")
      const client = yield* host.client
      const a = yield* client.use(Job, { key: "a" })
      const b = yield* client.use(Job, { key: "b" })
      yield* Effect.all([a.ready, b.ready])
      yield* progress.set(5)
      yield* until(a.progress, (value) => value === 5)
      expect([a.title.value, b.title.value, b.progress.value]).toEqual(["A", "B", 0])
    }))

  it.effect("instances of another session are not there", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* spawnJob(host.directory, "of-host", "H")
      yield* spawnJob(host.directory, "of-one", "1", "one")
      yield* spawnJob(host.directory, "of-two", "2", "two")
      const client = yield* host.client
      const live = new Set<string>()
      yield* client.observe(Job, (_, key) =>
        Effect.andThen(
          Effect.acquireRelease(Effect.sync(() => live.add(key)), () => Effect.sync(() => live.delete(key))),
          Effect.never
        ))
      yield* eventually(() => live.size === 1)
      expect([...live]).toEqual(["of-host"])
      yield* client.select("one")
      yield* eventually(() => live.size === 2)
      expect(live).toEqual(new Set(["of-host", "of-one"]))
      yield* client.select("two")
      yield* eventually(() => live.has("of-two"))
      yield* eventually(() => !live.has("of-one"))
      expect(live).toEqual(new Set(["of-host", "of-two"]))
    }))
}
