/**
 * Runs tasks: dispatches what may run, enters recovery phases after a reopen, and carries out aborts. It never polls.
 *
 * Promises: one invocation per task at a time; a task starts only when everything it comes after has ended; a marked task's
 * old invocation is interrupted and joined before its `abort` runs; closing marks nothing, so running tasks recover at the
 * next open.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { TaskRecord } from "../storage/index.ts"
import { HarnessError, type HarnessReport } from "./api.ts"
import type { Phase, PhaseResult, RunnableKind, TaskEnd, TaskRuntime } from "./kind.ts"
import type { CommitLine } from "./line.ts"
import type { ConversationState } from "./state.ts"
import type { Transaction } from "./transaction.ts"

interface Invocation {
  readonly fiber: Fiber.Fiber<void>
  readonly token: { revoked: boolean }
  readonly aborting: boolean
}

export interface Scheduler {
  /** Starts whatever may start. Does nothing before `start`. */
  readonly dispatch: () => void
  /** Takes note of the tasks of a commit, in the fiber that made it, and starts whatever may start. */
  readonly committed: (tasks: ReadonlyArray<TaskRecord>) => void
  readonly start: Effect.Effect<void>
  /** True when no invocation exists, running or sleeping. */
  readonly isQuiescent: () => boolean
  /** Kinds of the tasks that have an invocation now. */
  readonly running: () => ReadonlySet<string>
  /** Defers dispatch, and whatever waits for `released`, until the scope ends. Commits go on. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
  /** Completes at once unless held; hook chains wait for it before they begin. */
  readonly released: Effect.Effect<void>
  /**
   * Interrupts every invocation and waits until it has unwound, within `joinLimit`; nothing starts afterwards, and nothing is
   * ended for good.
   */
  readonly stop: Effect.Effect<void>
  /** The same without waiting: for a session whose storage has failed. */
  readonly halt: () => void
  /** Refuses further commits of a task's running invocation, ahead of its interruption. */
  readonly revoke: (taskID: string) => void
}

export interface SchedulerOptions {
  readonly line: CommitLine
  readonly kinds: ReadonlyMap<string, RunnableKind>
  /** The conversation of a task, loaded from storage if it is not in memory yet. */
  readonly conversation: (id: string) => Effect.Effect<ConversationState, HarnessError>
  readonly report: (report: HarnessReport) => void
  /** Runs invocations with the services of whoever opened the harness. */
  readonly run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
}

export const makeScheduler = (options: SchedulerOptions): Scheduler => {
  const { line, kinds, report } = options
  const invocations = new Map<string, Invocation>()
  const open = Latch.makeUnsafe(true)
  const causes = makeCauses(line.state.nextID)
  let holds = 0
  let started = false

  const isReady = (task: TaskRecord): boolean =>
    kinds.has(task.kind) && task.after.every((id) => !line.state.tasks.has(id))

  const dispatch = (): void => {
    if (!started || holds > 0) return
    for (const task of line.state.tasks.values()) {
      const invocation = invocations.get(task.id)
      if (invocation === undefined) {
        if (isReady(task)) launch(task, task.abort !== null, null)
      } else if (task.abort !== null && !invocation.aborting) {
        invocation.token.revoked = true
        launch(task, true, invocation.fiber)
      }
    }
  }

  const launch = (task: TaskRecord, aborting: boolean, previous: Fiber.Fiber<void> | null): void => {
    const kind = kinds.get(task.kind)
    if (kind === undefined) return
    const token = { revoked: false }
    const invoked = invoke(kind, task, token, aborting)
    const body = previous === null
      ? invoked
      : Effect.andThen(withinJoinLimit(Fiber.interrupt(previous), kind.name), invoked)
    // The invocation is entered in the map before its fiber can end: the fiber's first step is a yield.
    const fiber = options.run(Effect.ensuring(
      Effect.andThen(Effect.yieldNow, body),
      Effect.sync(() => {
        if (invocations.get(task.id)?.token !== token) return
        invocations.delete(task.id)
        dispatch()
      })
    ))
    invocations.set(task.id, { fiber, token, aborting })
  }

  /** Code that does not unwind may not hold up what comes after it: all that it writes from here on is refused. */
  const withinJoinLimit = (joined: Effect.Effect<void>, what: string): Effect.Effect<void> =>
    Effect.raceFirst(
      joined,
      Effect.andThen(
        Effect.sleep(joinLimit),
        Effect.sync(() => {
          const message = `Work (${what}) did not stop within ${joinLimit} of being interrupted and was left behind.`
          report({ level: "error", message, conversationID: null })
        })
      )
    )

  const invoke = (
    kind: RunnableKind,
    task: TaskRecord,
    token: { revoked: boolean },
    aborting: boolean
  ): Effect.Effect<void> =>
    Effect.gen(function*() {
      const conversation = yield* options.conversation(task.conversation)
      const runtime = makeRuntime(line, conversation, task.id, token, aborting)
      const exit = yield* Effect.exit(runPhases(kind, task, runtime, aborting))
      if (Exit.isSuccess(exit)) return
      // What is interrupted from outside does not get here; whoever interrupts itself has failed.
      const error = Cause.hasInterruptsOnly(exit.cause) ? selfInterrupted : Cause.squash(exit.cause)
      if (
        error instanceof HarnessError &&
        (error.code === "faulted" || error.code === "closed" || error.code === "stale_invocation")
      ) return
      const message = error instanceof Error ? error.message : String(error)
      report({
        level: "error",
        message: `The task ${task.id} (${task.kind}) failed: ${message}`,
        conversationID: task.conversation
      })
      yield* Effect.logError(`task ${task.kind} failed`, exit.cause)
      yield* runtime.commit((tx) => {
        const current = tx.task(task.id)
        if (current === undefined) return
        const record = ended(current, kind.failed(tx, current, conversation, message))
        tx.putTask(conversation, record)
        tellEnd(tx, conversation, kind, record)
      })
    }).pipe(
      Effect.catch((error: HarnessError) =>
        Effect.sync(() => {
          if (error.code !== "faulted" && error.code !== "closed" && error.code !== "stale_invocation") {
            report({ level: "error", message: error.message, conversationID: task.conversation })
          }
        })
      ),
      causes.inSpanOf(task.id, `task.${kind.name}`, { task: task.id, session: line.state.sessionID })
    )

  return {
    dispatch,
    committed: (tasks) => {
      causes.note(tasks, line.state.nextID)
      dispatch()
    },
    start: Effect.sync(() => {
      started = true
      dispatch()
    }),
    isQuiescent: () => invocations.size === 0,
    running: () => new Set([...invocations.keys()].flatMap((id) => line.state.tasks.get(id)?.kind ?? [])),
    hold: Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => {
        holds++
        open.closeUnsafe()
      }),
      () =>
        Effect.sync(() => {
          holds--
          if (holds > 0) return
          open.openUnsafe()
          dispatch()
        })
    )),
    released: open.await,
    halt: () => {
      started = false
      for (const { fiber } of invocations.values()) fiber.interruptUnsafe()
    },
    stop: Effect.suspend(() => {
      started = false
      const kindsNow = [...invocations.keys()].flatMap((id) => line.state.tasks.get(id)?.kind ?? [])
      const fibers = [...invocations.values()].map((invocation) => invocation.fiber)
      return fibers.length === 0
        ? Effect.void
        : withinJoinLimit(Fiber.interruptAll(fibers), [...new Set(kindsNow)].join(", "))
    }),
    revoke: (taskID) => {
      const invocation = invocations.get(taskID)
      if (invocation !== undefined && !invocation.aborting) invocation.token.revoked = true
    }
  }
}

/** How long whatever was interrupted may take to unwind. */
const joinLimit = "10 seconds"
/** How long the `abort` of a kind may take. */
const abortLimit = "30 seconds"

const selfInterrupted = new Error("it interrupted itself")

/**
 * What caused a task, for traces: the span in which it was created hangs on to it until its first run, which becomes a child
 * of it. What a running task creates has that task's own cause, so the work of a turn is beside each other. In memory only:
 * after a reopen a task's span has no parent.
 */
const makeCauses = (nextID: number) => {
  const waiting = new Map<string, Tracer.AnySpan>()
  const ofInvocation = new WeakMap<Tracer.AnySpan, Tracer.AnySpan>()
  let known = nextID

  const currentSpan = (): Tracer.AnySpan | undefined => {
    const fiber = Fiber.getCurrent()
    return fiber === undefined ? undefined : Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
  }

  return {
    note: (tasks: ReadonlyArray<TaskRecord>, nextID: number): void => {
      const created = tasks.filter((task) => task.ordinal >= known)
      known = nextID
      if (created.length === 0) return
      const span = currentSpan()
      if (span === undefined) return
      for (const task of created) waiting.set(task.id, ofInvocation.get(span) ?? span)
    },
    inSpanOf:
      (taskID: string, name: string, attributes: Record<string, string>) => <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.suspend(() => {
          const parent = waiting.get(taskID)
          waiting.delete(taskID)
          const noted = Effect.suspend(() => {
            const span = currentSpan()
            if (span !== undefined && parent !== undefined) ofInvocation.set(span, parent)
            return effect
          })
          return Effect.withSpan(noted, name, { attributes, ...(parent === undefined ? { root: true } : { parent }) })
        })
  }
}

const ended = (task: TaskRecord, end: TaskEnd): TaskRecord => ({
  ...task,
  status: end.status,
  result: end.status === "completed" ? end.result ?? null : null,
  failure: end.status === "failed" ? end.failure : null
})

/** Tasks that show by themselves also say that they ended; those of a turn say it through the turn. */
const tellEnd = (tx: Transaction, conversation: ConversationState, kind: RunnableKind, task: TaskRecord): void => {
  if (kind.describe !== undefined) {
    tx.emit(conversation, { type: "task.ended", id: task.id, kind: task.kind, status: task.status })
  }
}

const runPhases = (
  kind: RunnableKind,
  first: TaskRecord,
  runtime: TaskRuntime,
  aborting: boolean
): Effect.Effect<void, HarnessError> =>
  Effect.gen(function*() {
    let task = first
    const phase: Phase = aborting ? limitedAbort(kind) : kind.enter
    while (true) {
      const result: PhaseResult = yield* phase(task, runtime)
      if ("again" in result) {
        task = result.again
        continue
      }
      return yield* runtime.commit((tx) => {
        const current = tx.task(first.id) ?? task
        const end = result.done(tx, current)
        const { slots } = tx.sticky(runtime.conversation)
        if (Object.hasOwn(slots, first.id)) delete slots[first.id]
        const record = ended(current, end)
        tx.putTask(runtime.conversation, record)
        tellEnd(tx, runtime.conversation, kind, record)
      })
    }
  })

/** An abort that never ends would keep whoever asked for it waiting for ever. */
const limitedAbort = (kind: RunnableKind): Phase => (task, runtime) =>
  Effect.timeoutOrElse(kind.abort(task, runtime), {
    duration: abortLimit,
    orElse: () =>
      Effect.fail(new HarnessError({ code: "invalid", message: `its abort did not end within ${abortLimit}` }))
  })

const makeRuntime = (
  line: CommitLine,
  conversation: ConversationState,
  taskID: string,
  token: { readonly revoked: boolean },
  aborting: boolean
): TaskRuntime => {
  const commit: TaskRuntime["commit"] = (build) =>
    line.commit((tx) => {
      const task = tx.task(taskID)
      if (token.revoked || task === undefined || (task.abort !== null && !aborting)) {
        throw new HarnessError({
          code: "stale_invocation",
          message: `The invocation of task ${taskID} has ended; what it writes now is refused.`
        })
      }
      return build(tx)
    })
  return {
    conversation,
    commit,
    checkpoint: (checkpoint, build) =>
      commit((tx) => {
        build?.(tx)
        const task = tx.task(taskID)
        if (task !== undefined) tx.putTask(conversation, { ...task, status: "running", checkpoint: { ...checkpoint } })
      })
  }
}
