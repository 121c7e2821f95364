/**
 * From stored state to the view: one snapshot per conversation, then one envelope per commit.
 *
 * The sticky document's `turn`, `inbox`, `compaction` and `usage`, and the rewindable document's `config`, are already
 * shaped for rendering and appear as they are; entries, tasks and namespaces are projected. Everything else (memos, slots,
 * pending writes, raw namespace state) never reaches the view.
 */
import { apply, type JsonObject, type JsonValue, type Operation } from "../json/index.ts"
import type { EntryRecord, TaskRecord } from "../storage/index.ts"
import { activeEntries } from "./context.ts"
import type { ConversationState, SessionState } from "./state.ts"
import type { ConversationChange } from "./transaction.ts"
import type { ConversationView, Envelope, ViewEntry, ViewTask } from "./view.ts"

/** What the projection needs to know of what is registered. */
export interface Projections {
  /** Namespaces that are registered now and declare a projection. */
  readonly namespaces: () => Iterable<string>
  /** The declared projection of a namespace's merged state (defaults seeded), or `undefined` for one that shows nothing. */
  readonly namespace: (id: string) => ((state: JsonObject) => JsonValue | undefined) | undefined
  /** How a task shows, or `undefined` for the kinds of a turn, which show through it. */
  readonly task: (task: TaskRecord) => ViewTask | undefined
}

const visibleSticky = new Set(["turn", "inbox", "compaction", "usage"])

export const viewEntry = (entry: EntryRecord): ViewEntry => ({
  id: entry.id,
  kind: entry.kind,
  data: entry.data,
  model: entry.model,
  head: entry.head !== null,
  createdAt: entry.createdAt
})

/** The whole view of a conversation. */
export const snapshot = (
  session: SessionState,
  state: ConversationState,
  projections: Projections
): ConversationView => {
  const { record, rewindable, sticky } = state
  const tasks: { [id: string]: ViewTask } = {}
  for (const task of session.tasks.values()) {
    const shown = task.conversation === record.id ? projections.task(task) : undefined
    if (shown !== undefined) tasks[task.id] = shown
  }
  const plugins: { [id: string]: JsonValue } = {}
  for (const id of projections.namespaces()) {
    const shown = projectNamespace(session, state, projections, id)
    if (shown !== undefined) plugins[id] = shown
  }
  return {
    conversation: { id: record.id, sessionID: session.sessionID, parent: record.parent, owner: record.owner },
    entries: (state.transcript ?? []).map(viewEntry),
    config: rewindable.config,
    inbox: sticky.inbox,
    turn: sticky.turn,
    compaction: sticky.compaction,
    tasks,
    plugins,
    usage: sticky.usage
  }
}

/** The three documents' slices of a namespace as one object. */
export const namespaceState = (
  session: SessionState,
  state: Pick<ConversationState, "rewindable" | "sticky">,
  id: string
): JsonObject => ({ ...session.session.plugins[id], ...state.rewindable.plugins[id], ...state.sticky.plugins[id] })

const projectNamespace = (
  session: SessionState,
  state: Pick<ConversationState, "rewindable" | "sticky">,
  projections: Projections,
  id: string
): JsonValue | undefined => projections.namespace(id)?.(namespaceState(session, state, id))

/** What of a view depends on code that comes and goes: tasks of a kind, or a namespace. */
export type Projected = { readonly kind: string } | { readonly namespace: string }

const differs = (left: unknown, right: unknown): boolean => JSON.stringify(left) !== JSON.stringify(right)

/** The operations that make a view show what it could not before some code was registered. */
export const shownNow = (
  session: SessionState,
  state: ConversationState,
  projections: Projections,
  what: Projected
): ReadonlyArray<Operation> => {
  const { record, view } = state
  if (view === null) return []
  if ("namespace" in what) {
    const shown = projectNamespace(session, state, projections, what.namespace)
    return shown !== undefined && differs(shown, view.plugins[what.namespace])
      ? [["set", ["plugins", what.namespace], shown]]
      : []
  }
  return [...session.tasks.values()].flatMap((task): ReadonlyArray<Operation> => {
    if (task.kind !== what.kind || task.conversation !== record.id) return []
    const shown = projections.task(task)
    return shown !== undefined && differs(shown, view.tasks[task.id])
      ? [["set", ["tasks", task.id], { ...shown }]]
      : []
  })
}

/** The operations that a commit, already applied to `session` and the change's conversation, makes on its view. */
export const envelopeOf = (
  session: SessionState,
  change: ConversationChange,
  sessionOperations: ReadonlyArray<Operation>,
  projections: Projections
): Omit<Envelope, "revision"> => {
  const state = change.conversation
  const { transcript, view } = state
  if (view === null || transcript === null) return { operations: [], events: change.events }
  const operations: Array<Operation> = []
  const namespaces = new Set<string>()
  const visible = (operation: Operation, keys: ReadonlySet<string>): boolean =>
    operation[0] !== "replace" && keys.has(String(operation[1][0]))
  for (const operation of change.rewindable?.operations ?? []) {
    if (visible(operation, visibleRewindable)) operations.push(operation)
    else collectNamespaces(operation, namespaces)
  }
  for (const operation of sessionOperations) collectNamespaces(operation, namespaces)
  const sticky: Array<Operation> = []
  for (const operation of change.sticky?.operations ?? []) {
    if (visible(operation, visibleSticky)) sticky.push(operation)
    else collectNamespaces(operation, namespaces)
  }
  operations.push(...entryOperations(view, transcript, change.entries), ...sticky)
  for (const task of change.tasks) {
    const shown = session.tasks.has(task.id) ? projections.task(task) : undefined
    if (shown !== undefined) operations.push(["set", ["tasks", task.id], { ...shown }])
    else if (Object.hasOwn(view.tasks, task.id)) operations.push(["delete", ["tasks", task.id]])
  }
  for (const id of namespaces) {
    const shown = projectNamespace(session, state, projections, id)
    if (shown !== undefined) operations.push(["set", ["plugins", id], shown])
    else if (Object.hasOwn(view.plugins, id)) operations.push(["delete", ["plugins", id]])
  }
  return { operations, events: change.events }
}

const visibleRewindable = new Set(["config"])

const collectNamespaces = (operation: Operation, namespaces: Set<string>): void => {
  if (operation[0] === "replace") return
  const [document, id] = operation[1]
  if (document === "plugins" && id !== undefined) namespaces.add(String(id))
}

/** Entries appended as they come; a new head begins the list anew. */
const entryOperations = (
  view: ConversationView,
  transcript: ReadonlyArray<EntryRecord>,
  entries: ReadonlyArray<EntryRecord>
): ReadonlyArray<Operation> => {
  if (entries.length === 0) return []
  if (entries.some((entry) => entry.head !== null)) {
    return [["set", ["entries"], toJson(transcript.map(viewEntry))]]
  }
  return [["splice", ["entries"], view.entries.length, 0, entries.map((entry) => toJson(viewEntry(entry)))]]
}

/** View values are strict JSON by construction; their interfaces only lack the index signature that says so. */
export const toJson = (value: unknown): JsonValue => value as JsonValue

/** Applies an envelope's operations, keeping the identity of what did not change. */
export const applyToView = (view: ConversationView, operations: ReadonlyArray<Operation>): ConversationView =>
  operations.length === 0 ? view : apply(view, operations)

/** The transcript after these entries: the same list, grown in place, until a new head begins another. */
export const appendTranscript = (
  transcript: Array<EntryRecord>,
  entries: ReadonlyArray<EntryRecord>
): Array<EntryRecord> => {
  if (entries.some((entry) => entry.head !== null)) return [...activeEntries([...transcript, ...entries])]
  for (const entry of entries) transcript.push(entry)
  return transcript
}
