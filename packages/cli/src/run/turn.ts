/**
 * One prompt in one location: finds or makes the session, sends the prompt, follows the conversation to the end of it, and on
 * through what its sub-agents in the background have to say (`background.ts`).
 *
 * `stop` ends the turn, and those sub-agents, durably (every call gets its result, the session can be continued) and then
 * decides the exit code. What goes wrong before a turn came about is an `Exit` with code 2 where the person can mend it, 1 otherwise.
 */
import { type Conversation, type InputOutcome, noticeKind } from "@bezel/core/harness"
import type { LocationRef } from "@bezel/core/location"
import type { ModelRef } from "@bezel/core/model"
import type { ModelSource } from "@bezel/core/model"
import type { InteractionBrokerShape } from "@bezel/core/service"
import {
  type OpenSession,
  type SessionRuntimeHost,
  type SessionStore,
  type SessionStoreShape,
  titleOf
} from "@bezel/core/session"
import type { SessionInUse, SessionStorage } from "@bezel/core/storage"
import { entryKinds } from "@bezel/core/turn"
import type { AgentsShape } from "@bezel/plugins/agents/contract"
import { configFor } from "@bezel/plugins/commands"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Exit, type ExitCode, exitCode, worst } from "../exit.ts"
import { Answers } from "./answers.ts"
import { awaitedIn, leftTexts, waitingText } from "./background.ts"
import { Follower } from "./follow.ts"
import { forkSession } from "./fork.ts"
import type { RunOutput, RunResult } from "./output.ts"
import type { ReadPrompt } from "./prompt.ts"

export interface RunRequest {
  readonly prompt: ReadPrompt
  readonly session: { readonly type: "new" } | { readonly type: "latest" } | {
    readonly type: "id"
    readonly id: string
  }
  /** Entry to fork at, or `latest`. */
  readonly fork: string | null
  readonly model: ModelRef | null
  /** Name of the agent to go on with. */
  readonly agent: string | null
  /** What the command that the prompt calls has its turn done with. */
  readonly called: { readonly agent: string | null; readonly model: ModelRef | null }
  readonly title: string | null
}

/** Why a run is ended from outside. */
export type Stop = "timeout" | "interrupted"

export interface RunPlace {
  readonly location: LocationRef
  readonly store: SessionStoreShape
  readonly runtime: SessionRuntimeHost
  readonly models: ModelSource
  readonly agents: Pick<AgentsShape, "get">
  readonly interactions: Pick<InteractionBrokerShape, "unattended">
}

export interface RunEnd {
  readonly code: ExitCode
  readonly result: RunResult
}

/** How long an interrupted turn may take to end in order. */
const stopLimit = "10 seconds"

const usage = (message: string) => new Exit(exitCode.usage, message)
const failed = (error: { readonly message: string }) => new Exit(exitCode.failed, error.message)

export const runTurn = (
  place: RunPlace,
  request: RunRequest,
  output: RunOutput,
  stop: Deferred.Deferred<Stop>
): Effect.Effect<RunEnd, Exit | SessionInUse, Scope.Scope | SessionStore | SessionStorage> =>
  Effect.gen(function*() {
    // What a model is called wrongly is told before anything is written.
    for (const model of [request.model, request.called.model]) {
      if (model !== null) yield* Effect.mapError(place.models.resolve(model), (error) => usage(error.message))
    }
    if (request.agent !== null) {
      yield* Effect.mapError(place.agents.get(request.agent), (error) => usage(error.message))
    }
    const sessionID = yield* forked(place, request, yield* findSession(place, request, output))
    // Nobody is there to be asked, also about what an earlier run has left open.
    yield* place.interactions.unattended(sessionID, "deny")
    const session = yield* Effect.mapError(place.runtime.open(sessionID), (error) =>
      error._tag === "SessionLocationMismatch" || error._tag === "UnknownSession"
        ? usage(error.message)
        : error._tag === "SessionInUse"
        ? error
        : failed(error))
    output.session(sessionID)
    const conversation = session.main
    if (request.agent !== null) {
      yield* Effect.mapError(conversation.configure({ agent: request.agent }), failed)
    }
    if (request.model === null) {
      const { view } = yield* Effect.mapError(conversation.snapshot, failed)
      const agent = yield* Effect.mapError(place.agents.get(view.config.agent), (error) =>
        usage(error.message))
      yield* Effect.mapError(place.models.resolve(view.config.model ?? agent.model), (error) =>
        error.kind === "unknown_model" ? usage(error.message) : failed(error))
    } else {
      yield* Effect.mapError(conversation.configure({ model: request.model }), failed)
    }
    return yield* Effect.mapError(follow(place, request, output, stop, session, conversation), failed)
  })

/** The id of the session to go on with, or of a new one. */
const findSession = (place: RunPlace, request: RunRequest, output: RunOutput): Effect.Effect<string, Exit> =>
  Effect.gen(function*() {
    const { location, store } = place
    const wanted = request.session
    if (wanted.type === "id") {
      const record = yield* Effect.mapError(
        store.get(wanted.id),
        (error) => error._tag === "UnknownSession" ? usage(error.message) : failed(error)
      )
      if (request.title !== null) yield* Effect.mapError(store.rename(record.id, request.title), failed)
      return record.id
    }
    if (wanted.type === "latest") {
      const page = yield* Effect.mapError(store.list({ location, parentID: null, archived: false, limit: 1 }), failed)
      const [latest] = page.sessions
      if (latest !== undefined) {
        if (request.title !== null) yield* Effect.mapError(store.rename(latest.id, request.title), failed)
        return latest.id
      }
      if (request.fork !== null) {
        return yield* Effect.fail(usage(`there is no session in ${location.directory} to fork`))
      }
      output.notice(`there is no session in ${location.directory} yet; this is a new one`)
    }
    const created = yield* Effect.mapError(
      store.create({
        location,
        model: request.model,
        agent: request.agent,
        title: request.title ?? titleOf(request.prompt.text)
      }),
      failed
    )
    return created.id
  })

/** The session itself, or the copy of it that `--fork` asks for: a session of its own, which is the latest one from now on. */
const forked = (
  place: RunPlace,
  request: RunRequest,
  sessionID: string
): Effect.Effect<string, Exit, SessionStore | SessionStorage> => {
  if (request.fork === null) return Effect.succeed(sessionID)
  return forkSession(sessionID, request.fork, place.location).pipe(
    Effect.map((record) => record.id),
    Effect.mapError((error) => usage(`--fork: ${error instanceof Error ? error.message : String(error)}`))
  )
}

const follow = (
  place: RunPlace,
  request: RunRequest,
  output: RunOutput,
  stop: Deferred.Deferred<Stop>,
  session: OpenSession,
  conversation: Conversation
) =>
  Effect.gen(function*() {
    const { sessionID } = session.identity
    const watch = yield* conversation.watch
    const follower = new Follower(watch.view)
    let unattended = false
    const { inputID, notices = [] } = yield* place.runtime.prompt({
      sessionID,
      prompt: request.prompt,
      ...configFor(request.called),
      ...(conversation.id === session.main.id ? {} : { conversationID: conversation.id })
    })
    for (const notice of notices) output.notice(notice)
    const handle = yield* conversation.input(inputID)
    const answers = new Answers(inputID)
    const subagents = new Set<string>()
    let told: string | null = null
    let cut = false
    const reading = watch.envelopes.pipe(
      Stream.takeUntil((envelope) => {
        unattended ||= envelope.events.some((event) => event.type === "tool.finished" && event.code === "unattended")
        const step = follower.next(envelope)
        output.step(step)
        answers.step(step)
        const { view } = step
        for (const { sessionID: child } of awaitedIn(view)) subagents.add(child)
        if (!answers.hasEnded || view.turn !== null) return false
        const waiting = waitingText(view)
        if (waiting !== null && waiting !== told) output.notice(waiting)
        told = waiting
        return waiting === null
      }),
      Stream.runDrain
    )
    const outcome: Effect.Effect<InputOutcome, { readonly message: string }> = Effect.andThen(
      reading,
      handle === null ? Effect.fail({ message: "The prompt was lost; send it again." }) : handle.wait
    )
    const stopped = Effect.gen(function*() {
      const why = yield* Deferred.await(stop)
      cut = answers.hasEnded
      yield* Effect.ignore(handle === null ? Effect.void : handle.abort)
      yield* Effect.ignore(conversation.abort(why))
      // Nobody is left for whom they work, and the next run must not find them at it. Their ends wake nobody.
      yield* Effect.forEach(awaitedIn(follower.view), ({ description, task }) => {
        const text = `The sub-agent in the background for ${JSON.stringify(description)} was ended with the run.`
        return Effect.ignore(
          Effect.andThen(
            conversation.write(noticeKind, { model: [{ role: "user", content: [{ type: "text", text }] }] }),
            conversation.abortTask(task)
          )
        )
      }, { concurrency: "unbounded" })
      // The outcome arrives by itself now; this is for a turn that does not let go.
      yield* Effect.sleep(stopLimit)
      return { status: "unanswered", reason: "aborted", error: null } satisfies InputOutcome
    })
    const ended: InputOutcome = yield* Effect.raceFirst(outcome, stopped)
    const why = yield* Effect.map(Deferred.poll(stop), Option.isSome).pipe(
      Effect.flatMap((isStopped) =>
        isStopped ? Effect.map(Deferred.await(stop), (reason): Stop | null => reason) : Effect.succeed(null)
      )
    )
    for (const child of subagents) unattended ||= yield* wasUnattended(place, child)
    // Totals are written when the work has settled; a session that is closed before would be listed as active.
    yield* Effect.timeoutOption(place.runtime.settled, "2 seconds")
    for (const left of leftTexts(follower.view, sessionID)) output.notice(left)
    const result = resultOf([ended, ...answers.woken], why, cut, sessionID)
    const codes: Array<ExitCode> = [result.status === "done" ? exitCode.answered : exitCode.failed]
    if (result.status !== "done" && why !== null) {
      codes.push(why === "timeout" ? exitCode.timeout : exitCode.interrupted)
    }
    if (unattended) codes.push(exitCode.unattended)
    output.result(result, follower.view)
    return { code: worst(codes), result }
  })

/** Whether a sub-agent was denied something because nobody could be asked. */
const wasUnattended = ({ runtime }: RunPlace, sessionID: string): Effect.Effect<boolean, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { main } = yield* runtime.open(sessionID)
    const results = yield* main.entries({ kind: entryKinds.toolResult })
    return results.some(({ data }) => Object(data)["code"] === "unattended")
  }).pipe(Effect.orElseSucceed(() => false))

/** `cut`: it was stopped behind the answer, while it waited for more. */
function resultOf(
  outcomes: ReadonlyArray<InputOutcome>,
  why: Stop | null,
  cut: boolean,
  sessionID: string
): RunResult {
  const answers = outcomes.flatMap((outcome) => outcome.status === "done" && outcome.text !== "" ? [outcome.text] : [])
  const given = { text: answers.join("\n\n"), answers, sessionID }
  const missing = outcomes.find((outcome) => outcome.status !== "done")
  if (missing === undefined && !cut) return { status: "done", reason: null, message: null, ...given }
  const unanswered = (reason: string, message: string): RunResult => ({
    status: "unanswered",
    reason,
    message,
    ...given
  })
  if (why === "timeout") {
    return unanswered("timeout", `stopped after the time limit; bezel run --continue goes on (session ${sessionID})`)
  }
  if (why === "interrupted") {
    return unanswered("interrupted", `interrupted; bezel run --continue goes on (session ${sessionID})`)
  }
  const reason = missing?.reason ?? "failed"
  return unanswered(reason, missing?.error?.message ?? `the turn ended without an answer (${reason})`)
}
