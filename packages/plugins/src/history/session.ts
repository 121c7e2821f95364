/**
 * The session facet of history: watches what tools do to files, and takes back turns of sessions.
 *
 * It is the last gate before a tool, so that it looks at files when nobody has to be asked any more. It blocks nothing.
 */
import type { HookToolCall } from "@bezel/core/harness"
import { HarnessError } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import type { OpenSession } from "@bezel/core/session"
import { AppPaths } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as NodePath from "node:path"
import { mayChange } from "../permissions/read-only.ts"
import { SnapshotsSetting } from "./contract.ts"
import { Journal, type Marks } from "./journal.ts"
import { KeptContent } from "./kept-content.ts"
import { makeRevert, recoverRevert, type SessionHistory } from "./revert.ts"
import { StagedFile } from "./staged.ts"
import { sweepSnapshots } from "./sweep.ts"
import { makeNeighbourhood, Tracker } from "./tracker.ts"
import { WorkTree } from "./work-tree.ts"

type Context =
  & Pick<
    SessionContext,
    "hooks" | "location" | "namespace" | "onSession" | "own" | "reverting" | "settings"
  >
  & { readonly session: Pick<SessionContext["session"], "folder" | "get"> }

const mebibyte = 1024 * 1024

/** Tools of these accesses change no files of the work tree. */
const harmless = new Set([
  "read",
  "search",
  "list",
  "web",
  "job",
  "question",
  "subagent",
  "skill",
  "todo",
  "job",
  "list_mcp_resources",
  "read_mcp_resource"
])

/** The files that a call is known to write, `any` if it may be any, or nothing. */
const touches = ({ permission }: HookToolCall): ReadonlyArray<string> | "any" => {
  const { access, subjects } = permission
  if (harmless.has(access)) return []
  if (access === "bash") return mayChange(permission).length === 0 ? [] : "any"
  const isOfFiles = access === "write" || access === "edit" || access === "apply_patch"
  return isOfFiles && subjects.length > 0 && subjects.every((subject) => NodePath.isAbsolute(subject))
    ? subjects
    : "any"
}

const leavesRunning = (details: unknown): boolean => {
  const background: unknown = details !== null && typeof details === "object"
    ? Reflect.get(details, "background")
    : null
  return Array.isArray(background) && background.length > 0
}

/** How long a call waits for the look before it; a hook has ten seconds. */
const patience = "8 seconds"

/** A chain of sub-agents longer than this is one that does not end. */
const maxAncestors = 64

/** Beside the session's other files, which the model may read. */
const snapshotFolder = (files: string): string =>
  NodePath.basename(files) === "files" ? NodePath.join(NodePath.dirname(files), "snapshots") : `${files}-snapshots`

/** The facet for session hosts. */
export const session = Effect.fn("history/session")(function*(ctx: Context) {
  const { enabled = true, maxFile = 5 * mebibyte, maxTotal = 256 * mebibyte } = ctx.settings.get(SnapshotsSetting)
  const { directory } = ctx.location
  const { cache, data, state } = yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths)), AppPaths.layer)
  const excluded = [cache, data, state].map((folder) => fs.existsSync(folder) ? fs.realpathSync(folder) : folder)
  const open = new Map<string, OpenSession>()
  const neighbourhood = makeNeighbourhood()
  const histories = new Map<string, SessionHistory>()
  const ancestries = new Map<string, ReadonlyArray<string>>()
  const making = Semaphore.makeUnsafe(1)
  let swept = false

  /** A session and those that it works for, the first of all last. */
  const ancestryOf = (sessionID: string) =>
    Effect.gen(function*() {
      const known = ancestries.get(sessionID)
      if (known !== undefined) return known
      const chain = [sessionID]
      for (let at: string | null = sessionID; at !== null && chain.length < maxAncestors;) {
        const record: Option.Option<{ readonly parentID: string | null }> = yield* Effect.option(ctx.session.get(at))
        at = Option.isSome(record) ? record.value.parentID : null
        if (at !== null) chain.push(at)
      }
      ancestries.set(sessionID, chain)
      return chain
    })

  const openHistory = (root: string) =>
    Effect.gen(function*() {
      const folder = snapshotFolder(yield* ctx.session.folder(root))
      if (!swept) {
        swept = true
        yield* ctx.own(Effect.forkScoped(Effect.ignore(Effect.promise(() => sweepSnapshots(folder)))))
      }
      return yield* Effect.try(() => {
        fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
        const staged = new StagedFile(NodePath.join(folder, "staged.json"))
        const needed = () =>
          staged.read().flatMap(({ clearing = [], steps }) =>
            [...steps, ...clearing].flatMap(({ from, to }) =>
              [from, to].flatMap((state) => "id" in state ? [state.id] : [])
            )
          )
        const kept = new KeptContent(NodePath.join(folder, "content"), maxFile)
        const tracker = new Tracker({
          journal: new Journal(NodePath.join(folder, "journal.jsonl")),
          kept,
          tree: new WorkTree(directory, NodePath.join(folder, "tree"), {
            maxFileBytes: maxFile,
            maxNewFiles: 20_000,
            maxNewBytes: 256 * mebibyte,
            excluded
          }),
          neighbourhood,
          maxFileBytes: maxFile,
          maxKeptBytes: maxTotal,
          needed
        })
        return { tracker, staged }
      })
    }).pipe(Effect.mapError((error) =>
      new HarnessError({
        code: "faulted",
        message: `The record of what this session changed cannot be used: ${
          error.cause instanceof Error ? error.cause.message : error.message
        }`
      })
    ))

  /** The history that a session's changes are in: that of the first of its ancestors. */
  const historyOf = (sessionID: string): Effect.Effect<SessionHistory, HarnessError> =>
    Effect.flatMap(ancestryOf(sessionID), (chain) => {
      const root = chain.at(-1) ?? sessionID
      const ready = histories.get(root)
      if (ready !== undefined) return Effect.succeed(ready)
      return making.withPermit(Effect.suspend(() => {
        const known = histories.get(root)
        if (known !== undefined) return Effect.succeed(known)
        return Effect.tap(openHistory(root), (history) => {
          histories.set(root, history)
          return history.tracker.recover
        })
      }))
    })

  /** That of a session which has used one. */
  const trackerNow = (sessionID: string): Tracker | undefined =>
    histories.get(ancestries.get(sessionID)?.at(-1) ?? sessionID)?.tracker

  const marksOf = (sessionID: string, conversationID: string): Effect.Effect<Marks> =>
    Effect.gen(function*() {
      const marks: { [session: string]: number } = {}
      for (const id of yield* ancestryOf(sessionID)) {
        const main = open.get(id)?.main
        // What a fork of the conversation does is no part of the conversation that is taken back.
        if (main === undefined || (id === sessionID && conversationID !== main.id)) continue
        const [newest] = yield* main.entries({ newestFirst: true, limit: 1 })
        marks[id] = newest?.ordinal ?? 0
      }
      return marks
    }).pipe(Effect.orElseSucceed(() => ({})))

  yield* ctx.reverting(makeRevert({ location: directory, maxFileBytes: maxFile, historyOf }))

  yield* ctx.onSession((opened) =>
    Effect.gen(function*() {
      const { sessionID } = opened.identity
      yield* Effect.acquireRelease(
        Effect.sync(() => open.set(sessionID, opened)),
        () =>
          Effect.gen(function*() {
            open.delete(sessionID)
            const root = ancestries.get(sessionID)?.at(-1) ?? sessionID
            const history = histories.get(root)
            if (history === undefined) return
            yield* history.tracker.settle(root === sessionID ? null : sessionID)
            yield* history.tracker.keepOwed
            if (root === sessionID) histories.delete(root)
          })
      )
      const files = yield* ctx.session.folder(sessionID)
      if (fs.existsSync(NodePath.join(snapshotFolder(files), "staged.json"))) {
        const history = yield* historyOf(sessionID)
        for (const told of yield* recoverRevert(opened, history, maxFile)) yield* Effect.logWarning(told)
      }
      const { envelopes } = yield* opened.main.watch
      yield* Effect.forkScoped(Effect.ignore(Stream.runForEach(envelopes, ({ events }) =>
        Effect.suspend(() => {
          const tracker = events.some(({ type }) => type === "turn.ended") ? trackerNow(sessionID) : undefined
          // Where it was aborted, there was no answer to hold back.
          return tracker === undefined ? Effect.void : Effect.andThen(tracker.settle(sessionID), tracker.keepOwed)
        }))))
    })
  )

  if (!enabled) return
  const namespace = yield* ctx.namespace("history", {})
  yield* ctx.hooks(namespace, "tool", {
    beforeTool: (call, { conversationID, sessionID, taskID }) =>
      Effect.gen(function*() {
        const what = touches(call)
        if (what !== "any" && what.length === 0) return
        const { tracker } = yield* historyOf(sessionID)
        const marks = yield* marksOf(sessionID, conversationID)
        const begun = yield* ctx.own(Effect.forkScoped(
          what === "any"
            ? tracker.beginCommand(taskID, sessionID, marks)
            : tracker.beginWrite(taskID, what, marks)
        ))
        // A gate that is late would deny the call; one that is not waited for only misses what the call changes.
        const inTime = yield* Effect.timeoutOption(Fiber.join(begun), patience)
        if (Option.isNone(inTime)) {
          yield* Effect.logWarning("A call was not waited with until files had been looked at.")
        }
      }).pipe(Effect.catch((error) => Effect.logWarning(error.message))),
    afterTool: (_call, result, { sessionID, taskID }) =>
      Effect.suspend(() => {
        return trackerNow(sessionID)?.end(taskID, { leavesRunning: leavesRunning(result.details) }) ?? Effect.void
      })
  }, { gate: true })
  // Before the turn ends, so that whatever a person does after it is not taken for the session's.
  yield* ctx.hooks(namespace, "generation", {
    onYield: (_message, { sessionID }) =>
      Effect.suspend(() => {
        return trackerNow(sessionID)?.settle(sessionID) ?? Effect.void
      })
  })
  yield* ctx.hooks(namespace, "post_tools", {
    // The model answers meanwhile.
    afterTools: (_calls, { sessionID }) =>
      Effect.suspend(() => {
        const tracker = trackerNow(sessionID)
        return tracker === undefined ? Effect.void : Effect.asVoid(ctx.own(Effect.forkScoped(tracker.lookIfDue)))
      })
  })
})
