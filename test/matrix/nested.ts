/** References whose methods return references, as one text for every transport. */
import { MutableRemoteState, RemoteReference, RemoteService } from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Schema, Scope } from "effect"
import { eventually, makeHost, type TransportUnderTest, until } from "./harness.ts"

class Page extends RemoteService.make("test.page")({
  state: { text: Schema.String },
  methods: { read: { success: Schema.String } }
}) {}

class Book extends RemoteService.make("test.book")({
  state: { title: Schema.String },
  methods: {
    open: { payload: Schema.Int, success: RemoteReference.of(Page) },
    /** Never gives one. */
    wait: { success: RemoteReference.of(Page) }
  }
}) {}

class Library extends RemoteService.make("test.library")({
  methods: { find: { payload: Schema.String, success: RemoteReference.of(Book) } }
}) {}

const library = (transport: TransportUnderTest) =>
  Effect.gen(function*() {
    const host = yield* makeHost(transport)
    const given = { books: 0, pages: 0 }
    const waiting = yield* Deferred.make<void>()
    const counted = (what: keyof typeof given) => ({
      released: Effect.sync(() => {
        given[what]--
      })
    })
    const scope = yield* Scope.make()
    yield* host.directory.provide(Library, {
      find: (title) =>
        Effect.gen(function*() {
          given.books++
          return yield* RemoteReference.make(Book, {
            title: yield* MutableRemoteState.make(Schema.String, title),
            open: (number) =>
              Effect.gen(function*() {
                given.pages++
                const text = `page ${number} of ${title}`
                return yield* RemoteReference.make(Page, {
                  text: yield* MutableRemoteState.make(Schema.String, text),
                  read: () => Effect.succeed(text)
                }, counted("pages"))
              }),
            wait: () => Effect.andThen(Deferred.succeed(waiting, undefined), Effect.never)
          }, counted("books"))
        })
    }).pipe(Scope.provide(scope))
    const client = yield* host.client
    const book = yield* (yield* client.use(Library)).find("Bezels")
    return { host, client, book, given, waiting: Deferred.await(waiting), close: Scope.close(scope, Exit.void) }
  })

export const nested = (transport: TransportUnderTest) => {
  it.effect("a reference returns another one, which works and is counted like any", () =>
    Effect.gen(function*() {
      const { book, given } = yield* library(transport)
      const [first, second] = [yield* book.open(1), yield* book.open(2)]
      yield* until(second.text, (text) => text === "page 2 of Bezels")
      expect([yield* first.read(), yield* second.read()]).toEqual(["page 1 of Bezels", "page 2 of Bezels"])
      yield* first.release
      yield* eventually(() => given.pages === 1)
      expect(yield* Effect.flip(first.read())).toMatchObject({ code: "stale_reference" })
      expect(yield* second.read()).toBe("page 2 of Bezels")
    }))

  it.effect("giving back the outer one leaves the inner one, and the other way round", () =>
    Effect.gen(function*() {
      const { book, client, given, host } = yield* library(transport)
      const page = yield* book.open(1)
      yield* book.release
      yield* eventually(() => given.books === 0)
      // Whatever else comes and goes at the host ends nothing of it.
      yield* Effect.scoped(host.directory.provide(Page, {
        text: yield* MutableRemoteState.make(Schema.String, "another"),
        read: () => Effect.succeed("another")
      }))
      expect(yield* page.read()).toBe("page 1 of Bezels")
      const again = yield* (yield* client.use(Library)).find("Stones")
      const inner = yield* again.open(3)
      yield* inner.release
      expect(yield* (yield* again.open(4)).read()).toBe("page 4 of Stones")
    }))

  it.effect("both end with the provider, and with the connection", () =>
    Effect.gen(function*() {
      const { book, client, close, given } = yield* library(transport)
      const page = yield* book.open(1)
      const another = yield* (yield* client.use(Library)).find("Stones")
      yield* another.open(2)
      expect(given).toEqual({ books: 2, pages: 2 })
      yield* close
      yield* eventually(() => given.books === 0 && given.pages === 0)
      expect(yield* Effect.flip(page.read())).toMatchObject({ code: "stale_reference" })
      expect(yield* Effect.flip(book.open(1))).toMatchObject({ code: "stale_reference" })
    }))

  it.effect("a disconnect gives back all of them", () =>
    Effect.gen(function*() {
      const { book, client, given } = yield* library(transport)
      const page = yield* book.open(1)
      yield* client.drop
      yield* eventually(() => given.books === 0 && given.pages === 0)
      expect(yield* Effect.flip(page.read())).toMatchObject({ code: "stale_reference" })
    }))

  it.effect("a caller that is interrupted while it waits for an inner one leaves nothing held", () =>
    Effect.gen(function*() {
      const { book, given, waiting } = yield* library(transport)
      const call = yield* Effect.forkChild(book.wait())
      yield* waiting
      yield* Fiber.interrupt(call)
      yield* book.release
      yield* eventually(() => given.books === 0)
      expect(given.pages).toBe(0)
    }))
}
