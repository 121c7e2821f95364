/**
 * Takes back turns of a session, and brings them back: files first, then the conversation, and neither without the other.
 *
 * What is to be done is written down before it is done. If a file cannot be put back, or the conversation cannot be rewound,
 * what was done is undone; after a crash in between, the next opening does that.
 */
import { HarnessError } from "@bezel/core/harness"
import type { ClearRevert, OpenSession, RevertReport, SessionRevert, StageRevert } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import { sep } from "node:path"
import { showPath } from "../tools/paths.ts"
import { applySteps, keepContents, NotApplied, undo } from "./apply.ts"
import { fileReports } from "./file-report.ts"
import { type Plan, planOf, planSteps, reversed, type Step } from "./plan.ts"
import type { StagedFile, Staging } from "./staged.ts"
import type { Tracker } from "./tracker.ts"
import { findTurn, type Turn } from "./turn.ts"

/** What a session's history is in: its own, or that of the session that it works for. */
export interface SessionHistory {
  readonly tracker: Tracker
  readonly staged: StagedFile
}

export interface RevertParts {
  readonly location: string
  readonly maxFileBytes: number
  readonly historyOf: (sessionID: string) => Effect.Effect<SessionHistory, HarnessError>
}

const invalid = (message: string): HarnessError => new HarnessError({ code: "invalid", message })

/** What the file system refuses, said to a person. */
const onDisk = <A>(work: () => Promise<A>): Effect.Effect<A, HarnessError> =>
  Effect.uninterruptible(Effect.tryPromise({
    try: work,
    catch: (error) => {
      if (!(error instanceof NotApplied)) return invalid(error instanceof Error ? error.message : String(error))
      return invalid(
        `Nothing was changed, for a file could not be put back: ${error.message}.${
          error.left.length === 0 ? "" : ` These could not be made as they were either: ${error.left.join(", ")}.`
        }`
      )
    }
  }))

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

const leftNotes = ({ left }: Plan): ReadonlyArray<string> =>
  left.map(({ path, size }) =>
    `${path} stays as it is: its content was not kept${size > 0 ? ` (${megabytes(size)})` : ""}.`
  )

const ignoredNote = (paths: ReadonlyArray<string>, location: string): ReadonlyArray<string> => {
  if (paths.length === 0) return []
  const shown = paths.slice(0, 10).map((path) => showPath(location, path) + (path.endsWith(sep) ? sep : "")).join(", ")
  return [
    `Commands changed what git ignores, which is not kept and stays as it is: ${shown}${
      paths.length > 10 ? ", …" : ""
    }.`
  ]
}

const idleOnly = (session: OpenSession): Effect.Effect<void, HarnessError> =>
  Effect.flatMap(session.main.busy, (isBusy) =>
    isBusy
      ? Effect.fail(
        new HarnessError({
          code: "busy",
          message: "A turn is running in this session; interrupt it or wait before you take something back."
        })
      )
      : Effect.void)

/** Whether nothing was said since the conversation was rewound there. */
const isNewest = (session: OpenSession, rewind: string | null): Effect.Effect<boolean, HarnessError> =>
  Effect.map(session.main.snapshot, ({ view: { entries } }) => {
    const index = entries.findIndex(({ id }) => id === rewind)
    return index >= 0 && entries.slice(index + 1).every(({ model }) => model === null)
  })

export const makeRevert = ({ historyOf, location, maxFileBytes }: RevertParts): SessionRevert => {
  // One at a time in a place: two sessions may have changed the same files.
  const line = Semaphore.makeUnsafe(1)

  const report = (
    status: RevertReport["status"],
    about: Pick<Turn, "entry" | "text">,
    plan: Plan,
    notes: ReadonlyArray<string>,
    history: SessionHistory
  ): Effect.Effect<RevertReport, HarnessError> =>
    Effect.map(onDisk(() => fileReports(plan.steps, history.tracker.kept, location, maxFileBytes)), (files) => ({
      status,
      to: about.entry,
      prompt: about.text,
      files,
      conflicts: plan.conflicts,
      notes: [...notes, ...leftNotes(plan)]
    }))

  /** The plan with what cannot be put back for want of its content among the conflicts. */
  const withContents = (plan: Plan, { tracker }: SessionHistory) =>
    Effect.map(onDisk(() => keepContents(plan.steps, tracker.kept, maxFileBytes)), (missing): Plan => ({
      ...plan,
      steps: plan.steps.filter(({ path }) => !missing.includes(path)),
      conflicts: [
        ...plan.conflicts,
        ...missing.map((path) => ({ path, reason: "what was in it is not kept any more" }))
      ]
    }))

  const stage = Effect.fn("revert.stage")(function*(session: OpenSession, request: StageRevert) {
    const { sessionID } = session.identity
    yield* idleOnly(session)
    const history = yield* historyOf(sessionID)
    const { staged, tracker } = history
    yield* onDisk(async () => tracker.journal.refresh())
    yield* tracker.settle(sessionID)
    yield* tracker.keepOwed
    const turn = yield* findTurn(session, request.to)
    const { journal } = tracker
    const changes = journal.changes.filter(({ marks }) => (marks[sessionID] ?? -1) >= turn.ordinal)
    const plan = yield* Effect.flatMap(
      onDisk(() => planOf(changes, maxFileBytes)),
      (first) => withContents(first, history)
    )
    const notes = [
      ...journal.unseen(sessionID, turn.ordinal).map((why) =>
        `What commands changed in files is not known, so it is not taken back: ${why}.`
      ),
      ...ignoredNote(journal.ignored(sessionID, turn.ordinal), location),
      ...(journal.hasRun(sessionID, turn.ordinal)
        ? [`What commands changed outside of ${location}, if they did, is not known and stays as it is.`]
        : []),
      ...(journal.reachesBack(sessionID, turn.ordinal)
        ? []
        : ["The oldest changes to files are not kept any more, so they are not taken back."]),
      ...(journal.damaged === 0
        ? []
        : [`Records of changes are damaged (${journal.damaged}); what they were about is not taken back.`])
    ]
    const told = (status: RevertReport["status"]) => report(status, turn, plan, notes, history)
    if (request.dryRun === true) return yield* told("planned")
    if (plan.conflicts.length > 0 && request.conflicts !== "keep") return yield* told("conflict")
    // Told by the files as they are before anything is done.
    const done = yield* told("staged")
    const staging: Staging = {
      id: randomBytes(8).toString("hex"),
      session: sessionID,
      phase: "applying",
      to: turn.entry,
      from: turn.ordinal,
      prompt: turn.text,
      rewind: null,
      steps: plan.steps
    }
    yield* dropPast(session, staged)
    yield* onDisk(async () => staged.put(staging))
    yield* Effect.uninterruptible(Effect.gen(function*() {
      const forget = onDisk(async () => staged.remove(new Set([staging.id])))
      yield* Effect.onError(
        onDisk(() => applySteps(plan.steps, tracker.kept, maxFileBytes)),
        () => Effect.ignore(forget)
      )
      const data = { revert: staging.id, files: plan.steps.length, prompt: turn.text.slice(0, 200) }
      const rewind = yield* Effect.onError(
        session.main.rewind(turn.entry, data),
        () => Effect.ignore(Effect.andThen(onDisk(() => undo(plan.steps, tracker.kept, maxFileBytes)), forget))
      )
      yield* onDisk(async () => {
        staged.put({ ...staging, phase: "staged", rewind })
        journal.append({ type: "reverted", id: staging.id, session: sessionID, from: turn.ordinal })
      })
    }))
    return done
  })

  /** What was taken back before the conversation went on stays taken back. */
  const dropPast = Effect.fnUntraced(function*(session: OpenSession, staged: StagedFile) {
    const own = (yield* onDisk(async () => staged.read())).filter((one) => one.session === session.identity.sessionID)
    const newest = own.at(-1)
    if (newest === undefined || (yield* isNewest(session, newest.rewind))) return own
    yield* onDisk(async () => staged.remove(new Set(own.map(({ id }) => id))))
    return []
  })

  const clear = Effect.fn("revert.clear")(function*(session: OpenSession, request: ClearRevert) {
    const { sessionID } = session.identity
    yield* idleOnly(session)
    const history = yield* historyOf(sessionID)
    const { staged, tracker } = history
    const had = (yield* onDisk(async () => staged.read())).some((one) => one.session === sessionID)
    const stagings = yield* dropPast(session, staged)
    // Each went further back than those before it.
    const furthest = stagings.at(-1)
    if (furthest === undefined) {
      return yield* invalid(
        had
          ? "The conversation has gone on since something was taken back, so it cannot be brought back any more."
          : "Nothing has been taken back in this session that could be brought back."
      )
    }
    const plan = yield* Effect.flatMap(
      onDisk(() => planSteps(backAgain(stagings).map((step) => ({ ...step, doubt: null })), maxFileBytes)),
      (first) => withContents(first, history)
    )
    const told = (status: RevertReport["status"]) =>
      report(status, { entry: furthest.to, text: furthest.prompt }, plan, [], history)
    if (request.dryRun === true) return yield* told("planned")
    if (plan.conflicts.length > 0 && request.conflicts !== "keep") return yield* told("conflict")
    const done = yield* told("cleared")
    const ids = new Set(stagings.map(({ id }) => id))
    yield* Effect.uninterruptible(Effect.gen(function*() {
      const phase = (to: "staged" | "clearing") =>
        onDisk(async () => {
          for (const { clearing: _, ...staging } of stagings) {
            staged.put({ ...staging, phase: to, ...(to === "clearing" ? { clearing: plan.steps } : {}) })
          }
        })
      yield* phase("clearing")
      yield* Effect.onError(
        onDisk(() => applySteps(plan.steps, tracker.kept, maxFileBytes)),
        () => Effect.ignore(phase("staged"))
      )
      yield* Effect.onError(restoreAll(session, stagings), () =>
        Effect.ignore(
          Effect.andThen(onDisk(() => undo(plan.steps, tracker.kept, maxFileBytes)), phase("staged"))
        ))
      yield* onDisk(async () => {
        tracker.journal.append(...[...ids].map((id) => ({ type: "restored" as const, id })))
        staged.remove(ids)
      })
    }))
    return done
  })

  return {
    stage: (session, request) => line.withPermit(stage(session, request)),
    clear: (session, request) => line.withPermit(clear(session, request))
  }
}

const restoreAll = (session: OpenSession, stagings: ReadonlyArray<Staging>) =>
  Effect.forEach(
    stagings.toReversed(),
    ({ id, rewind }) => session.main.restore(rewind ?? "", { restored: id }),
    { discard: true }
  )

/** What brings back several stagings at once: from what the newest left to what was before the oldest. */
const backAgain = (stagings: ReadonlyArray<Staging>): ReadonlyArray<Step> => {
  const merged = new Map<string, Step>()
  for (const { steps } of stagings) {
    for (const step of steps) merged.set(step.path, { ...step, from: merged.get(step.path)?.from ?? step.from })
  }
  return reversed([...merged.values()])
}

/** Finishes or undoes what a crash cut off; gives what a person should know of it. */
export const recoverRevert = Effect.fnUntraced(function*(
  session: OpenSession,
  { staged, tracker }: SessionHistory,
  maxFileBytes: number
): Effect.fn.Return<ReadonlyArray<string>, HarnessError> {
  const { sessionID } = session.identity
  const own = (yield* onDisk(async () => staged.read())).filter((one) => one.session === sessionID)
  const cutOff = own.filter(({ phase }) => phase !== "staged")
  if (cutOff.length === 0) return []
  const { view: { entries } } = yield* session.main.snapshot
  const told: Array<string> = []
  const notPut = (left: ReadonlyArray<string>) =>
    left.length === 0 ? "" : ` These files could not be made as they were: ${left.join(", ")}.`
  for (const staging of cutOff.filter(({ phase }) => phase === "applying")) {
    const rewind = entries.find(({ data }) => field(data, "revert") === staging.id)
    if (rewind === undefined) {
      const left = yield* onDisk(() => undo(staging.steps, tracker.kept, maxFileBytes))
      yield* onDisk(async () => staged.remove(new Set([staging.id])))
      told.push(`Taking back a turn had been cut off and was undone.${notPut(left)}`)
    } else {
      yield* onDisk(async () => {
        if (!tracker.journal.lines.some((line) => line.type === "reverted" && line.id === staging.id)) {
          tracker.journal.append({ type: "reverted", id: staging.id, session: sessionID, from: staging.from })
        }
        staged.put({ ...staging, phase: "staged", rewind: rewind.id })
      })
    }
  }
  const clearing = cutOff.filter(({ phase }) => phase === "clearing")
  if (clearing.length === 0) return told
  const stillBack = clearing.filter(({ rewind }) => entries.some(({ id }) => id === rewind))
  if (stillBack.length === clearing.length) {
    const left = yield* onDisk(() => undo(clearing[0]?.clearing ?? [], tracker.kept, maxFileBytes))
    yield* onDisk(async () => {
      for (const { clearing: _, ...staging } of clearing) staged.put({ ...staging, phase: "staged" })
    })
    told.push(`Bringing back what was taken back had been cut off and was undone.${notPut(left)}`)
  } else {
    // The files came first, so they are all there; what is left is the rest of the conversation.
    yield* restoreAll(session, stillBack)
    yield* onDisk(async () => {
      tracker.journal.append(...clearing.map(({ id }) => ({ type: "restored" as const, id })))
      staged.remove(new Set(clearing.map(({ id }) => id)))
    })
  }
  return told
})

const field = (data: unknown, name: string): unknown =>
  data !== null && typeof data === "object" ? Reflect.get(data, name) : undefined
