/**
 * The calls that hooks have seen begin, so that each of them is also seen to end.
 *
 *     begin ──tool gave a result──▶ ended with it
 *       ├──blocked, refused, failed otherwise──▶ its result entry ──▶ ended
 *       ├──the turn was interrupted──▶ its result entry ──▶ ended
 *       └──the process died──▶ found when the session opens ──▶ goes on, or ended
 *
 * Which calls are open is kept in the conversation. An end is told at least once; what is told last is how it was.
 */
import type { Namespace } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import type { OpenSession } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { CallStatus } from "./contract.ts"

/** One call of one conversation. */
export interface CallPlace {
  readonly sessionID: string
  readonly conversationID: string
  readonly callID: string
}

export interface OpenCall {
  readonly name: string
  /** `null` where they were too large to keep. */
  readonly arguments: JsonValue
}

/** How a turn ended that nobody was asked about before it did. */
export interface TurnEnd {
  readonly sessionID: string
  readonly conversationID: string
  readonly status: "done" | "aborted" | "failed" | "terminated" | "stale"
  readonly error: string | null
}

export interface CallsOptions {
  readonly namespace: Namespace
  /** Is told of calls that ended without a result of their tool. */
  readonly onEnd: (place: CallPlace, call: OpenCall, status: CallStatus, text: string) => Effect.Effect<void>
  readonly onTurnEnd: (end: TurnEnd) => Effect.Effect<void>
}

export interface Calls {
  /** Keeps that a call has begun. */
  readonly begin: (place: CallPlace, call: OpenCall) => Effect.Effect<void>
  /** Its end has been told. */
  readonly end: (place: CallPlace) => Effect.Effect<void>
  /** Follows a session from its opening on. With `turns` also where no call has begun. */
  readonly open: (session: OpenSession, turns: boolean) => Effect.Effect<void, never, Scope.Scope>
}

/** Characters of arguments that are kept across a crash. */
const maxKept = 16 * 1024
/** How long a session that closes waits for commands that are being told an end. */
const closingLimit = "10 seconds"

const Kept = Schema.Struct({
  open: Schema.Record(Schema.String, Schema.Struct({ name: Schema.String, arguments: Schema.Json }))
})

const CallEvent = Schema.Struct({
  type: Schema.Literals(["tool.finished", "tool.aborted"]),
  callId: Schema.String,
  code: Schema.optionalKey(Schema.String)
})
const TurnEvent = Schema.Struct({
  type: Schema.Literal("turn.ended"),
  status: Schema.Literals(["done", "unanswered"]),
  reason: Schema.optionalKey(Schema.Literals(["aborted", "failed", "terminated", "stale"])),
  error: Schema.optionalKey(Schema.NullOr(Schema.Struct({ message: Schema.String })))
})

const blockedCodes: ReadonlySet<string> = new Set([
  "blocked",
  "denied_by_rule",
  "declined",
  "expired",
  "unattended",
  "not_offered"
])

const statusOf = (event: typeof CallEvent.Type): CallStatus =>
  event.type === "tool.aborted"
    ? "aborted"
    : event.code !== undefined && blockedCodes.has(event.code)
    ? "blocked"
    : "error"

const bounded = (call: OpenCall): OpenCall =>
  JSON.stringify(call.arguments).length <= maxKept ? call : { ...call, arguments: null }

export const makeCalls = ({ namespace, onEnd, onTurnEnd }: CallsOptions): Calls => {
  const sessions = new Map<
    string,
    { readonly session: OpenSession; readonly scope: Scope.Scope; readonly watched: Set<string> }
  >()
  const known = new Map<string, OpenCall & { readonly place: CallPlace }>()
  const telling = new Map<string, Set<Fiber.Fiber<void>>>()

  const conversationOf = ({ conversationID, sessionID }: Omit<CallPlace, "callID">) => `${sessionID}/${conversationID}`
  const keyOf = (place: CallPlace) => `${conversationOf(place)}/${place.callID}`

  const keep = (place: CallPlace, call: OpenCall | null) =>
    Effect.ignore(namespace.update(conversationOf(place), (draft) => {
      const kept = Schema.decodeUnknownOption(Kept)({ open: draft.open })
      const open: Record<string, JsonValue> = Option.isSome(kept) ? { ...kept.value.open } : {}
      if (call === null) delete open[place.callID]
      else open[place.callID] = { ...bounded(call) }
      draft.open = open
    }))

  const end = (place: CallPlace) => Effect.suspend(() => known.delete(keyOf(place)) ? keep(place, null) : Effect.void)

  /** Commands that are told of an end outlive what ended; a session waits for them when it closes. */
  const tell = (sessionID: string, what: Effect.Effect<void>) =>
    Effect.map(Effect.forkDetach(what), (fiber) => {
      const all = telling.get(sessionID) ?? new Set()
      telling.set(sessionID, all.add(fiber))
      fiber.addObserver(() => all.delete(fiber))
    })

  const tellEnd = (place: CallPlace, status: CallStatus, text: string) =>
    Effect.suspend(() => {
      const call = known.get(keyOf(place))
      if (call === undefined) return Effect.void
      known.delete(keyOf(place))
      return tell(
        place.sessionID,
        Effect.andThen(onEnd(place, { name: call.name, arguments: call.arguments }, status, text), keep(place, null))
      )
    })

  /** Follows one conversation for as long as its session is open. */
  const watch = (sessionID: string, conversationID: string) =>
    Effect.gen(function*() {
      const found = sessions.get(sessionID)
      if (found === undefined || found.watched.has(conversationID)) return
      found.watched.add(conversationID)
      const { main } = found.session
      const conversation = main.id === conversationID ? main : yield* found.session.conversation(conversationID)
      if (conversation === null) return
      const { envelopes } = yield* Scope.provide(conversation.watch, found.scope)
      const follow = Stream.runForEach(envelopes, ({ events }) =>
        Effect.forEach(events, (event) => {
          const call = Schema.decodeUnknownOption(CallEvent)(event)
          if (Option.isSome(call)) {
            const place = { sessionID, conversationID, callID: call.value.callId }
            return tellEnd(place, statusOf(call.value), call.value.code ?? "")
          }
          const turn = Schema.decodeUnknownOption(TurnEvent)(event)
          if (Option.isNone(turn) || main.id !== conversationID) return Effect.void
          const status = turn.value.status === "done" ? "done" : turn.value.reason ?? "failed"
          return tell(
            sessionID,
            onTurnEnd({ sessionID, conversationID, status, error: turn.value.error?.message ?? null })
          )
        }, { discard: true }))
      yield* Effect.forkIn(Effect.ignore(follow), found.scope)
    }).pipe(Effect.ignore)

  /** What an earlier process has left open. */
  const recover = (session: OpenSession) =>
    Effect.gen(function*() {
      const { sessionID } = session.identity
      for (const { id } of yield* session.tree) {
        const kept = Schema.decodeUnknownOption(Kept)(yield* namespace.get(`${sessionID}/${id}`))
        const open = Option.isSome(kept) ? Object.entries(kept.value.open) : []
        if (open.length === 0) continue
        const conversation = session.main.id === id ? session.main : yield* session.conversation(id)
        const view = conversation === null ? null : (yield* conversation.snapshot).view
        yield* watch(sessionID, id)
        for (const [callID, call] of open) {
          const place = { sessionID, conversationID: id, callID }
          known.set(keyOf(place), { ...call, place })
          const goesOn = view?.turn?.tools.some((tool) => tool.callId === callID && tool.entry === null) === true
          if (!goesOn) yield* tellEnd(place, "aborted", "interrupted")
        }
      }
    }).pipe(Effect.ignore)

  const open = (session: OpenSession, turns: boolean) =>
    Effect.gen(function*() {
      const { sessionID } = session.identity
      const scope = yield* Effect.scope
      sessions.set(sessionID, { session, scope, watched: new Set() })
      yield* Effect.addFinalizer(() =>
        Effect.gen(function*() {
          sessions.delete(sessionID)
          for (const [key, { place }] of known) if (place.sessionID === sessionID) known.delete(key)
          const all = [...telling.get(sessionID) ?? []]
          telling.delete(sessionID)
          yield* Effect.timeoutOption(Effect.forEach(all, Fiber.await, { discard: true }), closingLimit)
          yield* Effect.forEach(all, Fiber.interrupt, { discard: true })
        })
      )
      yield* recover(session)
      if (turns) yield* watch(sessionID, session.main.id)
    })

  return {
    begin: (place, call) =>
      Effect.gen(function*() {
        if (known.has(keyOf(place))) return
        yield* watch(place.sessionID, place.conversationID)
        known.set(keyOf(place), { ...call, place })
        yield* keep(place, call)
      }),
    end,
    open
  }
}
