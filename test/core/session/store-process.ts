/** A process that creates children of a session in a shared catalogue. Arguments: data directory, parent, how many. */
import { SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const [, , directory = "", parentID = "", count = "0"] = process.argv

await Effect.runPromise(
  Effect.gen(function*() {
    const store = yield* SessionStore
    for (let index = 0; index < Number(count); index++) {
      const { id } = yield* store.create({ location: { directory: "/work", workspaceID: null }, parentID })
      yield* store.report(id, { status: "active" })
      yield* store.rename(parentID, `${process.pid} ${index}`)
    }
  }).pipe(
    Effect.provide(
      SessionStore.layer({ directory, version: "test" }).pipe(Layer.provideMerge(SessionStorage.layer({ directory })))
    )
  )
)
