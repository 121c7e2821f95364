/**
 * One configured server: connected when it is enabled, connected again when it is lost, and known by what it last offered.
 *
 *     disabled ⇄ starting ──▶ ready ──lost──▶ waiting ──its time, a call, a person──▶ starting
 *                   └──failed──▶ waiting … and after several failures in a row: failed, until a call or a person asks
 *
 * What it offers stays while it is away, so that a conversation keeps its tools; a call meanwhile waits a moment for it and
 * then fails with a sentence. A person's wish ends whatever goes on at once.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { QuestionRequest } from "../question/contract.ts"
import type { Wanted } from "./bearer-fetch.ts"
import { makeCalls, type RunningCall } from "./calls.ts"
import { connect, type Connection, type ConnectOptions } from "./connection.ts"
import type { McpPrompt, McpServer, McpServerState, McpStatus } from "./contract.ts"
import { answerElicitation, type Ask } from "./elicitation.ts"
import { McpFailure } from "./failure.ts"
import { listPrompts, listTools, type RemoteTool } from "./listing.ts"
import { bounded, oneLine } from "./text.ts"

/** What is known of a server. */
export interface Known {
  readonly status: McpStatus
  readonly account: McpServerState["account"]
  readonly connection: Connection | null
  readonly title: string | null
  readonly instructions: string
  readonly hasResources: boolean
  readonly tools: ReadonlyArray<RemoteTool>
  readonly prompts: ReadonlyArray<McpPrompt>
  readonly error: string | null
  readonly retryAt: number | null
  readonly problems: ReadonlyArray<string>
}

export interface Server {
  readonly name: string
  readonly setting: McpServer
  readonly known: () => Known
  /** What is known now, and every change of it. */
  readonly changes: Stream.Stream<Known>
  /** Uses the connection; waits a moment for one that is on its way, and brings one back that is not. */
  readonly use: <A>(
    what: (connection: Connection) => Effect.Effect<A, McpFailure>
  ) => Effect.Effect<A, McpFailure>
  /** Runs a call of a session; what the server asks for it is asked there. */
  readonly calledBy: <A, E>(
    sessionID: string,
    call: (running: RunningCall) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  /** Completes when the first try has had its end, whatever that was. */
  readonly tried: Effect.Effect<void>
  readonly reconnect: Effect.Effect<void>
  readonly enable: (enabled: boolean) => Effect.Effect<void>
}

const nothing: Known = {
  status: "disabled",
  account: "none",
  connection: null,
  title: null,
  instructions: "",
  hasResources: false,
  tools: [],
  prompts: [],
  error: null,
  retryAt: null,
  problems: []
}

const firstWaitMs = 1_000
const longestWaitMs = 60_000
/** A connection that held so long was a good one: the next failure is a first one. */
const goodMs = 30_000
const maxFailures = 8
/** One that never answered is more likely written down wrongly than away. */
const maxFirstFailures = 3
/** How long a call waits for a server that is on its way. */
const patience: Duration.Input = "5 seconds"
const maxInstructions = 2_048
/** How long a call waits to be interrupted when the location closes. */
const closingLimit: Duration.Input = "10 seconds"

const sameItems = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right)

export interface ServerOptions extends Omit<ConnectOptions, "elicit" | "wanted"> {
  readonly ask: (request: QuestionRequest, sessionID: string) => ReturnType<Ask>
  /** The session that a session works for in the end. */
  readonly rootOf: (sessionID: string) => Effect.Effect<string>
}

/** What is said where somebody has to sign in. */
const wanted = (name: string) => (why: Wanted): McpFailure => {
  const way = `/mcp or bezel auth login ${name}`
  const message = why === "first"
    ? `it wants you to sign in, with ${way}, or to say who you are in its headers`
    : why === "again"
    ? `it does not take the sign-in any more; sign in again with ${way}`
    : `the sign-in does not allow this; put the scopes "${why.scopes}" into oauth.scopes of its setting and sign in again with ${way}`
  return new McpFailure({ message, signIn: true })
}

/** Starts looking after a server, until the scope ends. */
export const makeServer = (
  name: string,
  setting: McpServer,
  given: ServerOptions
): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.gen(function*() {
    const calls = makeCalls(given.rootOf)
    const options: ConnectOptions = {
      ...given,
      wanted: wanted(oneLine(name, 100)),
      elicit: (params, call) =>
        Effect.gen(function*() {
          const asked = yield* calls.askedFor(call)
          if (asked === "several") {
            given.log(
              "it asked something while calls of several sessions ran, without saying for which; it was declined"
            )
          }
          if (typeof asked === "string") return { action: "decline" }
          const { over, sessionID } = asked
          const ask: Ask = (request) =>
            Effect.tap(given.ask(request, sessionID), ({ type }) =>
              Effect.sync(() => {
                if (type === "unattended") { for (const one of asked.calls) one.unattended = true }
              }))
          const answered = calls.oneForm(sessionID, answerElicitation(name, params, ask))
          const count = (change: 1 | -1) =>
            Effect.sync(() => {
              for (const one of asked.calls) one.questions += change
            })
          return yield* Effect.acquireUseRelease(
            count(1),
            () => Effect.raceFirst(answered, Effect.as(over, { action: "cancel" } as const)),
            () => count(-1)
          )
        })
    }
    let enabled = setting.enabled !== false
    const ref = yield* SubscriptionRef.make<Known>({ ...nothing, status: enabled ? "starting" : "disabled" })
    const wishes = yield* Queue.sliding<void>(1)
    const known = () => SubscriptionRef.getUnsafe(ref)
    const set = (change: Partial<Known>) => SubscriptionRef.update(ref, (now): Known => ({ ...now, ...change }))
    const tried = yield* Latch.make(!enabled)
    let everReady = false
    let failures = 0

    /** Reads what the server offers; what did not change keeps its identity, and with it the tools made of it. */
    const read = Effect.fnUntraced(function*(connection: Connection) {
      const { items, problems } = yield* listTools(connection)
      const prompts = yield* listPrompts(connection)
      const before = known()
      yield* set({
        status: "ready",
        account: connection.signedIn() ? "signed-in" : "none",
        connection,
        title: oneLine(connection.title, 100),
        instructions: bounded(connection.instructions.trim(), maxInstructions),
        hasResources: connection.has.resources,
        tools: sameItems(before.tools, items) ? before.tools : items,
        prompts: sameItems(before.prompts, prompts) ? before.prompts : prompts,
        error: null,
        retryAt: null,
        problems
      })
      yield* tried.open
    })

    const follow = (connection: Connection) =>
      Effect.gen(function*() {
        for (;;) {
          yield* connection.changed
          // Whoever changes one thing after the other is asked once.
          yield* Effect.sleep("50 millis")
          yield* Effect.catch(
            read(connection),
            (failure) => Effect.sync(() => options.log(`its tools could not be read again: ${failure.message}`))
          )
          // And whoever changes all the time is not asked all the time.
          yield* Effect.sleep("1 second")
        }
      })

    /** One connection from its beginning to its end; gives why it ended. */
    const session = Effect.scoped(Effect.gen(function*() {
      const connection = yield* connect(setting, options)
      yield* read(connection)
      everReady = true
      const since = yield* Clock.currentTimeMillis
      const reason = yield* Effect.raceFirst(connection.lost, follow(connection))
      if ((yield* Clock.currentTimeMillis) - since >= goodMs) failures = 0
      // Before its process is taken down, so that no call begins on it meanwhile.
      yield* set({ status: "waiting", connection: null, error: reason })
      return reason
    }))

    const attempt = Effect.gen(function*() {
      yield* Queue.clear(wishes)
      if (!enabled) return
      yield* set({ status: "starting", retryAt: null })
      const ended = yield* Effect.raceFirst(
        Effect.map(
          Effect.result(session),
          (result) => result._tag === "Success" ? new McpFailure({ message: result.success }) : result.failure
        ),
        Effect.as(Queue.take(wishes), null)
      )
      yield* set({ connection: null })
      if (ended === null) return
      const error = ended.message
      yield* Effect.andThen(set({ error }), tried.open)
      failures++
      options.log(`not connected: ${error}`)
      // Trying again is no use before somebody has signed in.
      if (ended.signIn === true || failures >= (everReady ? maxFailures : maxFirstFailures)) {
        yield* set({ status: "failed", error, ...(ended.signIn === true ? { account: "wanted" } : {}) })
        return yield* Queue.take(wishes)
      }
      const wait = Math.min(longestWaitMs, firstWaitMs * 2 ** (failures - 1))
      yield* set({ status: "waiting", error, retryAt: (yield* Clock.currentTimeMillis) + wait })
      yield* Effect.raceFirst(Effect.sleep(wait), Queue.take(wishes))
    })

    yield* Effect.forkScoped(Effect.gen(function*() {
      for (;;) {
        if (enabled) {
          yield* attempt
          continue
        }
        failures = 0
        yield* Effect.andThen(set({ ...nothing }), tried.open)
        yield* Queue.take(wishes)
      }
    }))

    // A host that closes ends its plugins first, then its sessions: a call must not take that for its result.
    let closing = false
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closing = true
      })
    )
    const outlive = (failure: McpFailure) =>
      closing ? Effect.andThen(Effect.sleep(closingLimit), Effect.fail(failure)) : Effect.fail(failure)

    const wish = Effect.sync(() => {
      Queue.offerUnsafe(wishes, undefined)
    })
    const changes = SubscriptionRef.changes(ref)
    const until = (holds: (status: McpStatus) => boolean) =>
      Effect.timeoutOption(Stream.runHead(Stream.filter(changes, ({ status }) => holds(status))), patience)

    return {
      name,
      setting,
      known,
      changes,
      use: (what) =>
        Effect.gen(function*() {
          const now = known()
          if (now.connection === null) {
            if (now.status === "waiting" || now.status === "failed") {
              yield* wish
              // What is there by now is not the answer to the wish.
              yield* until((status) => status === "starting")
            }
            yield* until((status) => status !== "starting")
          }
          const { connection, error, status } = known()
          if (connection !== null) return yield* Effect.catch(what(connection), outlive)
          return yield* new McpFailure({
            message: status === "disabled"
              ? "it is disabled"
              : status === "starting"
              ? "it has not answered yet"
              : `it is not connected (${error ?? "no reason is known"})`
          })
        }),
      calledBy: calls.run,
      tried: tried.await,
      reconnect: Effect.suspend(() => {
        failures = 0
        return wish
      }),
      enable: (wanted) =>
        Effect.suspend(() => {
          if (enabled === wanted) return Effect.void
          enabled = wanted
          failures = 0
          return wish
        })
    }
  })
