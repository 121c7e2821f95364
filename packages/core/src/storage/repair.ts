/**
 * Looks whether a session's files are whole, and repairs those that are not.
 *
 * What a repair does, for both formats: the damaged files are kept aside as they are; every commit and record that is whole
 * is kept, byte for byte; where something is missing a mark says what and where it was. Since nobody knows what the missing
 * part changed, work that was under way ends: tasks as orphaned, inputs as unanswered, and what documents say about them
 * with them. A document whose changes are missing goes back to what it was before. Nothing is guessed, and ids are not used
 * again. The last commit of the repaired session is an entry of kind `bezel.repair` with all of this in words.
 */
import * as Effect from "effect/Effect"
import * as nodePath from "node:path"
import { isJsonObject } from "../json/index.ts"
import type { JsonObject, JsonValue } from "../json/index.ts"
import { attempt } from "./database.ts"
import { acquireLease } from "./lease.ts"
import { inspectJsonl, rewriteJsonl } from "./repair-jsonl.ts"
import { inspectSqlite, rewriteSqlite } from "./repair-sqlite.ts"
import { formatIn, sessionPaths } from "./session-paths.ts"
import type { SessionFormat } from "./session-paths.ts"
import type { Batch, ConversationRecord, InputRecord, SessionInUse, StorageError, TaskRecord } from "./storage.ts"

/** Commits that are gone (`first > last`: none), and where in which file they were. */
export interface Loss {
  readonly file: string
  /** From 1; 0 where a file has no lines. */
  readonly line: number
  readonly lastLine: number
  readonly first: number
  readonly last: number
}

/** What is wrong with a session, found without changing anything. */
export interface Findings {
  /** Each fault in a sentence; empty when the files are whole. */
  readonly faults: ReadonlyArray<string>
  /** Nothing of it can be read, so that there is nothing to repair. */
  readonly unreadable: boolean
  readonly losses: ReadonlyArray<Loss>
  /** Damaged records that a repair takes out. */
  readonly setAside: number
  readonly sequence: number
  readonly nextID: number
  readonly entries: number
  readonly conversations: ReadonlyArray<ConversationRecord>
  readonly tasks: ReadonlyArray<TaskRecord>
  readonly inputs: ReadonlyArray<InputRecord>
  /** Documents, and what is known of each; `upTo` names the last commit of which it is known, if that is not the newest. */
  readonly documents: ReadonlyArray<
    { readonly document: string; readonly value: JsonValue; readonly upTo: number | null }
  >
}

export interface RepairReport {
  readonly format: SessionFormat | null
  readonly findings: Findings
  /** What was done, or would be, each in a sentence. */
  readonly steps: ReadonlyArray<string>
  /** Where the damaged files are kept; `null` when nothing was written. */
  readonly kept: string | null
}

const nothing: Findings = {
  faults: [],
  unreadable: false,
  losses: [],
  setAside: 0,
  sequence: 0,
  nextID: 1,
  entries: 0,
  conversations: [],
  tasks: [],
  inputs: [],
  documents: []
}

/** Looks at a session's files, beside whoever has it open. */
export const inspectSession = (folder: string): Effect.Effect<Findings, StorageError> =>
  attempt(folder, () => inspect(folder))

const inspect = (folder: string): Findings => {
  const paths = sessionPaths(folder)
  switch (formatIn(folder)) {
    case "sqlite":
      return inspectSqlite(paths.sqlite)
    case "jsonl":
      return inspectJsonl(paths.jsonl)
    case null:
      return nothing
  }
}

/** Whether something that was stored is gone, so that what was under way cannot go on. */
const hasLoss = ({ losses, setAside }: Findings): boolean =>
  setAside > 0 || losses.some((loss) => loss.first <= loss.last || loss.line === 0)

/** Members of a document that tell of work under way, as they are when there is none. */
const atRest: JsonObject = { turn: null, inbox: [], compaction: null, writes: [], slots: {} }

/** A document as it is once nothing is under way any more. */
const settled = (document: string, value: JsonValue): JsonValue => {
  if (!document.startsWith("sticky:") || !isJsonObject(value)) return value
  const members = Object.entries(atRest).filter(([name]) => Object.hasOwn(value, name))
  return { ...value, ...Object.fromEntries(members) }
}

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const stepsOf = (findings: Findings): ReadonlyArray<string> => {
  if (findings.faults.length === 0) return []
  if (findings.unreadable) {
    return ["can do nothing: nothing can be read; restore the file from a backup, or remove the session"]
  }
  const { documents, inputs, setAside, tasks } = findings
  const steps = [
    `keeps ${
      findings.entries === 1 ? "1 entry that is" : `${findings.entries} entries that are`
    } whole, up to commit ${findings.sequence}`
  ]
  if (setAside > 0) steps.push(`sets ${plural(setAside, "damaged record")} aside`)
  if (!hasLoss(findings)) return steps
  for (const { first, last } of findings.losses) {
    if (first <= last) {
      steps.push(`marks where ${first === last ? `commit ${first} was` : `commits ${first}–${last} were`}`)
    }
  }
  for (const { document, upTo } of documents) {
    if (upTo !== null) steps.push(`puts document "${document}" back to what it was at commit ${upTo}`)
  }
  for (const { id, kind } of tasks) steps.push(`ends task ${id} (${kind}) as orphaned`)
  for (const { id, status } of inputs) steps.push(`ends input ${id} (${status}) as unanswered`)
  return steps
}

/** The commit that ends a repair. */
const closingBatch = (findings: Findings, steps: ReadonlyArray<string>, at: number): Batch => {
  const [conversation] = findings.conversations
  const { nextID } = findings
  const id = `e${nextID}`
  return {
    conversations: [],
    entries: conversation === undefined ? [] : [{
      id,
      ordinal: nextID,
      conversation: conversation.id,
      kind: "bezel.repair",
      data: { faults: [...findings.faults], steps: [...steps] },
      model: null,
      head: null,
      edits: null,
      createdAt: at
    }],
    tasks: findings.tasks.map((task) => ({ ...task, status: "orphaned" })),
    inputs: findings.inputs.map((input) => ({ ...input, status: "unanswered", reason: "failed" })),
    documents: findings.documents.flatMap(({ document, upTo, value }) => {
      const base = settled(document, value)
      const isSame = upTo === null && JSON.stringify(base) === JSON.stringify(value)
      return isSame ? [] : [{ document, base, retained: !document.startsWith("sticky:") }]
    }),
    events: [],
    nextID: nextID + 1,
    at
  }
}

export interface RepairOptions {
  /** Only says what would be done. Default false. */
  readonly dryRun?: boolean
  /** Milliseconds since the epoch, for the mark and for the name of what is kept aside. */
  readonly at: number
}

/** Repairs the session in a folder, which nobody may have open meanwhile. A session that is whole is left as it is. */
export const repairSession: (
  folder: string,
  options: RepairOptions
) => Effect.Effect<RepairReport, StorageError | SessionInUse> = Effect.fn("Storage.repair")(
  function*(folder, options) {
    yield* acquireLease(nodePath.basename(folder), folder)
    return yield* attempt(folder, (): RepairReport => {
      const format = formatIn(folder)
      const findings = inspect(folder)
      const steps = stepsOf(findings)
      const report = { format, findings, steps, kept: null }
      if (format === null || findings.faults.length === 0 || findings.unreadable || options.dryRun === true) {
        return report
      }
      const closing = hasLoss(findings) ? closingBatch(findings, steps, options.at) : null
      const stamp = new Date(options.at).toISOString().replace(/[-:]|\.\d+/g, "")
      const paths = sessionPaths(folder)
      const kept = format === "jsonl"
        ? rewriteJsonl(paths.jsonl, findings, closing, stamp)
        : rewriteSqlite(paths.sqlite, findings, closing, stamp)
      return { ...report, kept }
    })
  },
  Effect.scoped
)
