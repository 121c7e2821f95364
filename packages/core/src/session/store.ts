/**
 * All sessions of this machine: their records, and read models of what is in them. Global: it needs no location.
 *
 * Listing reads the catalogue only. What is in a session is read from its own storage, beside whoever writes it; a session
 * that was never written is empty. Nothing here writes into a session but the import that makes it: the rest goes
 * through its runtime.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import { deriveContext, loadTranscript, mainConversation } from "../harness/index.ts"
import type { LocationRef } from "../location/index.ts"
import { attemptOn, SessionStorage, StorageError } from "../storage/index.ts"
import type { EntryRecord, HistoryItem, SessionFiles, SessionInUse, StorageReader } from "../storage/index.ts"
import { Catalogue, type Rebuilt } from "./catalogue.ts"
import { batchOfExport, collectExport, decodeExport } from "./exported.ts"
import type { InvalidExport, SessionExport } from "./exported.ts"
import { makeInsert } from "./inserting.ts"
import { InvalidCursor, SessionExists, UnknownMessage, UnknownSession } from "./record.ts"
import type { SessionRecord } from "./record.ts"
import type { SessionMessage, SessionStoreShape } from "./store-shape.ts"
import { keptTitle } from "./title.ts"

export { InvalidExport, SessionExport } from "./exported.ts"
export * from "./store-shape.ts"

export interface SessionStoreOptions {
  /** The data directory, the same as that of `SessionStorage`. */
  readonly directory: string
  /** The version of this Bezel, kept with the sessions that it creates. */
  readonly version: string
}

const pageBytes = 1_048_576

const clamp = (limit: number | undefined, usual: number): number =>
  limit === undefined || !Number.isFinite(limit) ? usual : Math.min(Math.max(Math.trunc(limit), 1), 1_000)

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

/** A new session's id, for whoever must know it before the session is there. Ids sort by their time, in milliseconds. */
export const makeSessionID = (now: number): string => {
  let text = "ses_"
  for (let shift = 45; shift >= 0; shift -= 5) text += alphabet[Math.floor(now / 2 ** shift) % 32]
  for (const byte of randomBytes(14)) text += alphabet[byte % 32]
  return text
}

const cursorPattern = /^[0-9]{1,15}$/

const decodeCursor = (cursor: string | undefined): Effect.Effect<number | undefined, InvalidCursor> => {
  if (cursor === undefined) return Effect.succeed(undefined)
  if (cursorPattern.test(cursor)) return Effect.succeed(Number(cursor))
  return Effect.fail(
    new InvalidCursor({ message: `${JSON.stringify(cursor.slice(0, 80))} is not a cursor: pass one that a page gave` })
  )
}

const toMessage = (entry: EntryRecord): SessionMessage => ({
  id: entry.id,
  conversationID: entry.conversation,
  kind: entry.kind,
  data: entry.data,
  model: entry.model,
  createdAt: entry.createdAt
})

/** The active transcript of a conversation; nothing for one that the session does not have. */
const readTranscript = Effect.fnUntraced(function*(storage: StorageReader, conversationID: string) {
  const conversation = yield* storage.conversation(conversationID)
  return yield* loadTranscript(storage, conversation ?? { id: conversationID, parent: null, owner: null, createdAt: 0 })
})

/** A session's storage beside its writer, or `null` while nobody has written it. */
const readIfWritten = (
  files: SessionFiles,
  sessionID: string
): Effect.Effect<StorageReader | null, StorageError, Scope.Scope> =>
  files.read(sessionID).pipe(
    Effect.map((storage): StorageReader | null => storage),
    Effect.catch((error) => error.kind === "not_found" ? Effect.succeed(null) : Effect.fail(error))
  )

const make = (files: SessionFiles, catalogue: Catalogue, version: string): SessionStoreShape => {
  const unknown = (sessionID: string): UnknownSession =>
    new UnknownSession({
      sessionID,
      message: `there is no session ${
        JSON.stringify(sessionID.slice(0, 200))
      }; \`bezel session list\` shows those that there are`
    })

  const known = (
    sessionID: string,
    find: () => SessionRecord | null
  ): Effect.Effect<SessionRecord, UnknownSession | StorageError> =>
    Effect.flatMap(
      attemptOn(catalogue.path, find),
      (record) => record === null ? Effect.fail(unknown(sessionID)) : Effect.succeed(record)
    )

  const get: SessionStoreShape["get"] = (sessionID) => known(sessionID, () => catalogue.get(sessionID))

  const change = (
    sessionID: string,
    patch: Partial<SessionRecord>,
    active = false
  ): Effect.Effect<SessionRecord, UnknownSession | StorageError> =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        known(sessionID, () =>
          catalogue.update(
            sessionID,
            { active },
            (record) => ({ ...record, ...patch, updatedAt: Math.max(now, record.updatedAt) })
          ))
    )

  /** Reads beside the writer; `empty` for a session that nobody has written yet. */
  const reading = <A, E>(
    sessionID: string,
    empty: A,
    use: (storage: StorageReader) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | UnknownSession | StorageError> =>
    Effect.andThen(
      get(sessionID),
      Effect.scoped(
        Effect.flatMap(
          readIfWritten(files, sessionID),
          (storage): Effect.Effect<A, E> => storage === null ? Effect.succeed(empty) : use(storage)
        )
      )
    )

  const insert = makeInsert(catalogue)

  return {
    get,
    opened: (sessionID) => attemptOn(catalogue.path, () => catalogue.keep(sessionID)),
    create: Effect.fn("SessionStore.create")(function*(input) {
      if (input.parentID !== undefined && input.parentID !== null) yield* get(input.parentID)
      const now = yield* Clock.currentTimeMillis
      const record: SessionRecord = {
        id: input.id ?? makeSessionID(now),
        title: keptTitle(input.title ?? ""),
        location: { directory: input.location.directory, workspaceID: input.location.workspaceID },
        parentID: input.parentID ?? null,
        ...(input.forkedFrom === undefined ? {} : { forkedFrom: input.forkedFrom }),
        agent: input.agent ?? null,
        model: input.model ?? null,
        status: "starting",
        createdAt: now,
        updatedAt: now,
        usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        cost: 0,
        version,
        archived: false
      }
      if (yield* insert(record)) return record
      return yield* new SessionExists({ sessionID: record.id, message: `there is a session ${record.id} already` })
    }),
    list: Effect.fn("SessionStore.list")(function*(input = {}) {
      const before = yield* decodeCursor(input.cursor)
      const limit = clamp(input.limit, 50)
      const items = yield* attemptOn(catalogue.path, () =>
        catalogue.list({
          limit: limit + 1,
          ...(before === undefined ? {} : { before }),
          ...(input.location === undefined ? {} : { location: input.location }),
          ...(input.parentID === undefined ? {} : { parentID: input.parentID }),
          ...(input.text === undefined ? {} : { text: input.text }),
          ...(input.archived === undefined ? {} : { archived: input.archived })
        }))
      const shown = items.slice(0, limit)
      const sessions: Array<SessionRecord> = []
      for (const { record } of shown) {
        if (record instanceof StorageError) yield* Effect.logWarning(record.message)
        else sessions.push(record)
      }
      return { sessions, cursor: items.length > limit ? String(shown.at(-1)?.position) : null }
    }),
    messages: Effect.fn("SessionStore.messages")(function*(sessionID, input = {}) {
      const before = yield* decodeCursor(input.cursor)
      const limit = clamp(input.limit, 100)
      const conversation = input.conversationID ?? mainConversation
      return yield* reading(sessionID, { messages: [], cursor: null }, (storage) =>
        Effect.gen(function*() {
          const messages: Array<SessionMessage> = []
          let bound = before
          let bytes = 0
          // A few at a time, so that a page of large entries reads no more than it gives.
          while (messages.length < limit && bytes < pageBytes) {
            const step = Math.min(20, limit - messages.length)
            const entries = yield* storage.entries({
              conversation,
              newestFirst: true,
              limit: step,
              ...(bound === undefined ? {} : { before: bound })
            })
            for (const entry of entries) {
              if (bytes >= pageBytes) break
              messages.push(toMessage(entry))
              bound = entry.ordinal
              bytes += JSON.stringify(entry).length
            }
            if (entries.length < step) break
          }
          const earlier = bound === undefined
            ? []
            : yield* storage.entries({ conversation, newestFirst: true, limit: 1, before: bound })
          return { messages: messages.toReversed(), cursor: earlier.length === 0 ? null : String(bound) }
        }))
    }),
    message: Effect.fn("SessionStore.message")(function*(sessionID, messageID) {
      const entry = yield* reading<EntryRecord | null, StorageError>(
        sessionID,
        null,
        (storage) => storage.entry(messageID)
      )
      if (entry !== null) return toMessage(entry)
      return yield* new UnknownMessage({
        sessionID,
        messageID,
        message: `session ${sessionID} has no message ${JSON.stringify(messageID.slice(0, 200))}`
      })
    }),
    context: Effect.fn("SessionStore.context")(function*(sessionID, conversationID = mainConversation) {
      const entries = yield* reading<ReadonlyArray<EntryRecord>, StorageError>(
        sessionID,
        [],
        (storage) => readTranscript(storage, conversationID)
      )
      return deriveContext(entries)
    }),
    history: Effect.fn("SessionStore.history")(function*(sessionID, after, limit) {
      return yield* reading<ReadonlyArray<HistoryItem>, StorageError>(
        sessionID,
        [],
        (storage) => storage.history(after, clamp(limit, 100))
      )
    }),
    rename: (sessionID, title) => change(sessionID, { title: keptTitle(title) }),
    switchAgent: (sessionID, agent) => change(sessionID, { agent }),
    switchModel: (sessionID, model) =>
      change(sessionID, { model: model === null ? null : { provider: model.provider, model: model.model } }),
    archive: (sessionID, archived = true) => change(sessionID, { archived }),
    report: (sessionID, report) =>
      change(
        sessionID,
        {
          ...(report.status === undefined ? {} : { status: report.status }),
          ...(report.usage === undefined ? {} : { usage: report.usage }),
          ...(report.cost === undefined ? {} : { cost: report.cost })
        },
        true
      ),
    remove: Effect.fn("SessionStore.remove")(function*(sessionID) {
      if (!(yield* attemptOn(catalogue.path, () => catalogue.has(sessionID)))) return yield* unknown(sessionID)
      // Parents before children in this list; removed from its end, so that a failure leaves no orphans.
      const family = [sessionID]
      for (let index = 0; index < family.length; index++) {
        const parentID = family[index] ?? sessionID
        const children = yield* attemptOn(catalogue.path, () => catalogue.list({ parentID, limit: -1 }))
        for (const child of children) if (!family.includes(child.id)) family.push(child.id)
      }
      for (const id of family.toReversed()) {
        yield* files.remove(id).pipe(
          Effect.catchTag("StorageError", (error) => error.kind === "not_found" ? Effect.void : Effect.fail(error))
        )
        yield* attemptOn(catalogue.path, () => catalogue.delete(id))
      }
    })
  }
}

const rebuiltMessage = (path: string, { sessions, setAside, without }: Rebuilt): string =>
  `${path} was ${setAside === null ? "not there" : `damaged and is kept as ${setAside}`}; ` +
  `it was made anew from the sessions' folders (found: ${sessions}` +
  (without.length === 0 ? ")" : `; without a record: ${without.slice(0, 20).join(", ")})`)

const openCatalogue = (directory: string | null) =>
  Effect.flatMap(Effect.context<never>(), (context) =>
    Effect.acquireRelease(
      attemptOn(directory ?? "memory", () =>
        new Catalogue(directory, (rebuilt) => {
          if (rebuilt.setAside === null && rebuilt.sessions + rebuilt.without.length === 0) return
          const path = `${directory}/catalogue.db`
          Effect.runForkWith(context)(Effect.logWarning(rebuiltMessage(path, rebuilt)))
        })),
      (catalogue) => Effect.sync(() => catalogue.close())
    ))

/** The records and read models of all sessions. */
export class SessionStore extends Context.Service<SessionStore, SessionStoreShape>()("@bezel/core/SessionStore") {
  /** With its catalogue in `catalogue.db` of the data directory, which many processes may share. */
  static readonly layer = (options: SessionStoreOptions): Layer.Layer<SessionStore, StorageError, SessionStorage> =>
    Layer.effect(
      SessionStore,
      Effect.gen(function*() {
        const files = yield* SessionStorage
        return make(files, yield* openCatalogue(options.directory), options.version)
      })
    )

  /** With its catalogue in memory. */
  static readonly layerMemory: Layer.Layer<SessionStore, never, SessionStorage> = Layer.effect(
    SessionStore,
    Effect.gen(function*() {
      const files = yield* SessionStorage
      return make(files, yield* Effect.orDie(openCatalogue(null)), "test")
    })
  )
}

/** A session as one JSON document; what that holds, and what not, is said in `exported.ts`. Works beside its writer. */
export const exportSession: (
  sessionID: string
) => Effect.Effect<SessionExport, UnknownSession | StorageError, SessionStore | SessionStorage> = Effect.fn(
  "SessionStore.export"
)(function*(sessionID) {
  const store = yield* SessionStore
  const files = yield* SessionStorage
  const record = yield* store.get(sessionID)
  return yield* Effect.scoped(Effect.gen(function*() {
    return yield* collectExport(record, yield* readIfWritten(files, sessionID))
  }))
})

/** Where an imported session belongs; it gets a new id unless one is named. */
export interface ImportSession {
  readonly location: LocationRef
  readonly id?: string
  /** The session that it is a copy of, if that is one of these. */
  readonly forkedFrom?: string
}

/** Makes a session of an exported one. All of it is checked first; if it cannot be stored, nothing of it stays. */
export const importSession: (
  exported: unknown,
  into: ImportSession
) => Effect.Effect<
  SessionRecord,
  InvalidExport | SessionExists | UnknownSession | SessionInUse | StorageError,
  SessionStore | SessionStorage
> = Effect.fn("SessionStore.import")(function*(exported, into) {
  const store = yield* SessionStore
  const files = yield* SessionStorage
  const session = yield* decodeExport(exported)
  const { agent, archived, cost, model, title, usage } = session.record
  // A folder that no record knows may hold what somebody still wants: it is never written to, nor removed.
  const kept = into.id === undefined ? null : yield* Effect.scoped(readIfWritten(files, into.id))
  if (kept !== null && into.id !== undefined) {
    return yield* new SessionExists({ sessionID: into.id, message: `there is a session ${into.id} already` })
  }
  const { id } = yield* store.create({ ...into, title, agent, model })
  const fill = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const storage = yield* files.write(id)
    yield* store.opened(id)
    if (session.conversations.length > 0) yield* storage.commit(batchOfExport(session, now))
    yield* store.report(id, { status: "idle", usage, cost })
    return yield* store.archive(id, archived)
  })
  return yield* Effect.scoped(fill).pipe(Effect.onError(() => Effect.ignore(store.remove(id))))
})
