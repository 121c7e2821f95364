import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { both, here, inDirectory, there, titles, use, withDatabase } from "./store-fixture.ts"

describe("a catalogue", () => {
  both(
    "takes in what is created at once, each under its own id, and refuses the one whose id is taken",
    (store) =>
      Effect.gen(function*() {
        yield* store.create({ location: here, id: "ses_taken", title: "first" })
        const titled = Array.from({ length: 50 }, (_, index) => `${index}`)
        const created = yield* Effect.all(
          [
            ...titled.map((title) => store.create({ location: here, title })),
            Effect.flip(store.create({ location: there, id: "ses_taken", title: "second" })),
            store.create({ location: here, id: "ses_twice", title: "once" }),
            Effect.flip(store.create({ location: here, id: "ses_twice", title: "again" }))
          ],
          { concurrency: "unbounded" }
        )
        expect(created.slice(-3)).toMatchObject([{ _tag: "SessionExists" }, { title: "once" }, {
          _tag: "SessionExists"
        }])
        expect(titles(yield* store.list({ limit: 100 }))).toEqual(["once", ...titled.toReversed(), "first"])
      })
  )

  inDirectory(
    "whose file takes nothing tells each of those who create at once, and none of them is in",
    (at) =>
      use(at, (store) =>
        Effect.gen(function*() {
          withDatabase(at, (database) =>
            database.exec(
              "CREATE TRIGGER full BEFORE INSERT ON sessions WHEN new.search = '2' BEGIN SELECT RAISE(ABORT, 'no room'); END"
            ))
          const refused = yield* Effect.all(
            ["1", "2", "3"].map((title) => Effect.flip(store.create({ location: here, title }))),
            { concurrency: "unbounded" }
          )
          expect(refused.map(({ _tag, message }) => `${_tag}: ${message}`)).toEqual(
            Array.from({ length: 3 }, () => expect.stringMatching(/^StorageError: .*no room/))
          )
          expect(titles(yield* store.list())).toEqual([])
          yield* store.create({ location: here, title: "4" })
          expect(titles(yield* store.list())).toEqual(["4"])
        }))
  )
})
