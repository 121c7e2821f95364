/** Records of sessions: what reads and writes the catalogue, and needs no host. */
import { exportSession, importSession, SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { failure } from "../failure.ts"
import type { SessionHandlers } from "../handler.ts"
import { checkNamed } from "../named.ts"
import type { ApiParts } from "../parts.ts"
import { sessionPage, toSession } from "../shapes.ts"

/** Longest title; what people read in a list. */
const titleLength = 500

const checkTitle = (title: string | undefined) =>
  title === undefined || title.length <= titleLength
    ? Effect.void
    : Effect.fail(
      failure("invalid_arguments", `The title is longer than ${titleLength} characters.`, { path: "title" })
    )

export const recordRoutes = ({ fleet, fleetEvents, hubs, places }: ApiParts): Pick<
  SessionHandlers,
  "list" | "create" | "active" | "import" | "get" | "update" | "remove" | "export" | "fork"
> => {
  const { records } = fleet
  const services = Context.make(SessionStore, SessionStore.of(records)).pipe(
    Context.add(SessionStorage, SessionStorage.of(fleet.files))
  )
  const created = (id: string) => Effect.ensuring(Effect.map(records.get(id), toSession), fleetEvents.poke)

  return {
    list: ({ query }) =>
      Effect.gen(function*() {
        const { archived, cursor, limit, location, parent, text } = query
        const page = yield* records.list({
          // One that is not there any more may still have sessions.
          ...(location === undefined ? {} : { location: yield* places.named(location) }),
          ...(parent === undefined ? {} : { parentID: parent === "none" ? null : parent }),
          ...(text === undefined ? {} : { text }),
          ...(archived === undefined ? {} : { archived }),
          ...(limit === undefined ? {} : { limit }),
          ...(cursor === undefined ? {} : { cursor })
        })
        return sessionPage(page)
      }),
    create: ({ payload }) =>
      Effect.gen(function*() {
        const { location, ...rest } = payload
        yield* checkTitle(payload.title)
        const place = yield* places.existing(location)
        yield* checkNamed(fleet, place, rest)
        const record = yield* records.create({ ...rest, location: place })
        yield* fleetEvents.poke
        return toSession(record)
      }),
    active: () =>
      Effect.gen(function*() {
        const active: Array<string> = []
        for (let cursor: string | null | undefined; cursor !== null;) {
          const page = yield* records.list({ limit: 1_000, ...(cursor === undefined ? {} : { cursor }) })
          for (const { id, status } of page.sessions) if (status === "active") active.push(id)
          cursor = page.cursor
        }
        return { items: active.sort() }
      }),
    import: ({ payload }) =>
      Effect.gen(function*() {
        const location = yield* places.existing(payload.location)
        const { id } = yield* Effect.provideContext(importSession(payload.session, { location }), services)
        return yield* created(id)
      }),
    get: ({ params }) => Effect.map(records.get(params.id), toSession),
    update: ({ params: { id }, payload }) =>
      Effect.gen(function*() {
        yield* checkTitle(payload.title)
        let record = yield* records.get(id)
        // All of it is looked at before any of it is changed.
        yield* checkNamed(fleet, record.location, payload)
        const { agent, archived, model, title } = payload
        if (title !== undefined) record = yield* records.rename(id, title)
        if (agent !== undefined) record = yield* records.switchAgent(id, agent)
        if (model !== undefined) record = yield* records.switchModel(id, model)
        if (archived !== undefined) record = yield* records.archive(id, archived)
        yield* fleetEvents.poke
        return toSession(record)
      }),
    remove: ({ params: { id } }) =>
      Effect.gen(function*() {
        yield* records.get(id)
        // Whoever follows it here would have it in use.
        yield* hubs.removing(id, records.remove(id))
        yield* fleetEvents.deleted(id)
      }),
    export: ({ params: { id } }) =>
      Effect.map(
        Effect.provideContext(exportSession(id), services),
        (exported) => JSON.parse(JSON.stringify(exported))
      ),
    fork: ({ params: { id }, payload: { at } }) =>
      Effect.gen(function*() {
        const exported = yield* Effect.provideContext(exportSession(id), services)
        const [main] = exported.conversations
        const own = exported.entries.filter(({ conversation }) => conversation === main?.id)
        const end = own.find((entry) => entry.id === at)
        if (end === undefined) {
          return yield* failure(
            "not_found",
            `The main conversation of session ${id} has no entry ${JSON.stringify(at.slice(0, 80))}.`
          )
        }
        const { record } = exported
        const forked = {
          ...exported,
          record: { ...record, title: record.title === "" ? "" : `${record.title} (fork)`.slice(0, titleLength) },
          conversations: main === undefined ? [] : [main],
          entries: own.filter(({ ordinal }) => ordinal <= end.ordinal)
        }
        const { id: copy } = yield* Effect.provideContext(
          importSession(forked, { location: record.location, forkedFrom: id }),
          services
        )
        return yield* created(copy)
      })
  }
}
