/**
 * A conversation as its users see it: inputs, aborts, settings, watching, forks. Every change is one commit.
 */
import * as Effect from "effect/Effect"
import {
  answerText,
  contextOf,
  type Conversation,
  type ConversationState,
  type ExtensionTransaction,
  HarnessError,
  type InputHandle,
  type InputOutcome,
  rewindableAt,
  type SendInput,
  sequenceInLineage,
  type Session,
  type Transaction
} from "../harness/index.ts"
import type { JsonValue } from "../json/index.ts"
import type { InputRecord, StorageError, TaskRecord } from "../storage/index.ts"
import type { TaskOutcome, TaskRef } from "../tool/index.ts"
import { createCollapse, isManualCollapse } from "./collapse.ts"
import { acceptInput, contentOf, dropInput, endTurn, isBusy, isContent } from "./inbox.ts"
import { entryKinds, isTurnTask, taskKinds } from "./kinds.ts"
import { rewinding } from "./rewind.ts"

const storageFault = (error: StorageError): HarnessError =>
  new HarnessError({ code: "faulted", message: `This session could not be read: ${error.message}` })

/** Made once for each conversation: it holds nothing but what it does, and it is asked for with every call of a tool. */
const made = new WeakMap<ConversationState, Conversation>()

export const makeConversation = (session: Session, state: ConversationState): Conversation => {
  const known = made.get(state)
  if (known !== undefined) return known
  const conversation = build(session, state)
  made.set(state, conversation)
  return conversation
}

const build = (session: Session, state: ConversationState): Conversation => {
  const { line, storage } = session
  const id = state.record.id

  const send = Effect.fn("Conversation.send")(function*(input: SendInput): Effect.fn.Return<InputHandle, HarnessError> {
    if (!isContent(input.content)) {
      return yield* new HarnessError({ code: "invalid", message: "An input needs content: send text or a file." })
    }
    const requestID = input.requestID ?? null
    // Looked up before the line, for inputs that have ended; those that have not are found again inside the commit.
    const earlier = requestID === null ? null : yield* Effect.mapError(storage.inputByRequest(requestID), storageFault)
    if (earlier !== null) return inputHandle(earlier)
    const record = yield* line.commit((tx) => {
      for (const live of line.state.inputs.values()) {
        if (requestID !== null && live.requestID === requestID) return live
      }
      const { config, content, whenBusy = "followUp" } = input
      return acceptInput(tx, state, { content, whenBusy, requestID, config })
    })
    return inputHandle(record)
  })

  const inputHandle = (record: InputRecord): InputHandle => ({
    id: record.id,
    wait: Effect.flatMap(session.inputEnd(record.id), outcomeOf),
    result: Effect.flatMap(
      line.read(() => line.state.inputs.has(record.id)),
      (live) => live ? Effect.succeed(null) : Effect.flatMap(session.inputEnd(record.id), outcomeOf)
    ),
    abort: line.commit((tx) => {
      const current = tx.input(record.id)
      if (current === undefined) return "ended"
      if (current.status === "placed") return "already_placed"
      dropInput(tx, state, current, "aborted")
      return "aborted"
    }),
    content: line.read(() => {
      const current = line.state.inputs.get(record.id)
      return current?.status === "queued" ? contentOf(current.content) : []
    })
  })

  const outcomeOf = Effect.fnUntraced(function*(record: InputRecord): Effect.fn.Return<InputOutcome, HarnessError> {
    const entry = record.answer === null ? null : yield* Effect.mapError(storage.entry(record.answer), storageFault)
    if (record.status === "done") {
      const message = entry?.model?.find((candidate) => candidate.role === "assistant")
      return { status: "done", answer: record.answer ?? "", text: message === undefined ? "" : answerText(message) }
    }
    return { status: "unanswered", reason: record.reason ?? "failed", error: errorOf(entry?.data ?? null) }
  })

  const abort = Effect.fn("Conversation.abort")(function*(reason?: string): Effect.fn.Return<void, HarnessError> {
    // Without a turn, the summary that somebody asked for is what runs.
    const summary = [...line.state.tasks.values()].find((task) =>
      task.kind === taskKinds.collapse && task.conversation === id && isManualCollapse(task)
    )
    if (!isBusy(state) && summary !== undefined) {
      yield* abortTask({ id: summary.id, kind: summary.kind })
      return
    }
    const marked = yield* line.commit((tx) => {
      if (!isBusy(state)) return false
      const found = markTurn(tx, session, state, reason ?? "interrupted")
      // A turn without a task cannot be carried out by anybody; ending it here keeps its inputs from waiting for ever.
      if (!found) endTurn(tx, state, { status: "unanswered", reason: "aborted", error: null })
      return found
    })
    if (marked) yield* idle
  })

  const idle = session.until(() => !isBusy(state))

  const commit: Conversation["commit"] = <A, E = never>(build: (tx: ExtensionTransaction) => A | Effect.Effect<A, E>) =>
    line.commitEffect((tx): Effect.Effect<A, E> => {
      const built = build(session.transaction(tx, state, { mayCreate: true }))
      return Effect.isEffect(built) ? built : Effect.succeed(built)
    })

  // Without a span of its own, which would cost as much as the commit does here.
  const write: Conversation["write"] = (kind, entry) =>
    line.commit((tx) => session.transaction(tx, state, { mayCreate: true }).write(kind, entry))

  const waitForTask = Effect.fn("Conversation.waitForTask")(
    function*(ref: TaskRef): Effect.fn.Return<TaskOutcome, HarnessError> {
      yield* session.until(() => !line.state.tasks.has(ref.id))
      const record = yield* Effect.mapError(storage.task(ref.id), storageFault)
      if (record === null || record.status === "pending" || record.status === "running") {
        return yield* new HarnessError({ code: "not_found", message: `This session has no task "${ref.id}".` })
      }
      return { status: record.status, result: record.result, failure: record.failure }
    }
  )

  const abortTask = Effect.fn("Conversation.abortTask")(
    function*(ref: TaskRef): Effect.fn.Return<TaskOutcome, HarnessError> {
      yield* line.commit((tx) => {
        const task = tx.task(ref.id)
        if (task === undefined || task.abort !== null) return
        if (isTurnTask(task.kind)) {
          throw new HarnessError({
            code: "not_permitted",
            message: "Tasks of a turn end with their turn; abort the conversation instead."
          })
        }
        session.scheduler.revoke(ref.id)
        tx.putTask(state, { ...task, abort: { reason: "aborted" } })
      })
      return yield* waitForTask(ref)
    }
  )

  const fork = Effect.fn("Conversation.fork")(function*(at: string): Effect.fn.Return<Conversation, HarnessError> {
    const sequence = yield* Effect.mapError(sequenceInLineage(storage, state.record, at), storageFault)
    if (sequence === null) {
      return yield* new HarnessError({
        code: "not_found",
        message: `This conversation has no entry "${at}" to fork at.`
      })
    }
    const inherited = yield* Effect.mapError(rewindableAt(storage, state.record, sequence), storageFault)
    // One commit: a fork without the settings of where it began must not exist, whatever dies.
    const forked = yield* line.commit((tx) => {
      const created = session.create(tx, {
        id: tx.id("c"),
        parent: { conversation: id, at },
        owner: null,
        createdAt: tx.now
      })
      if (inherited !== null) Object.assign(tx.rewindable(created), inherited)
      return created
    })
    session.adopt(forked)
    return makeConversation(session, forked)
  })

  const reset = (handoff?: string): Effect.Effect<void, HarnessError> =>
    line.commit((tx) => {
      if (isBusy(state)) {
        throw new HarnessError({
          code: "busy",
          message: "A turn is running in this conversation; interrupt it or wait before you start over."
        })
      }
      // What waited was said into the context that ends here.
      for (const inputID of tx.sticky(state).inbox.map((item) => item.id)) {
        const input = tx.input(inputID)
        if (input !== undefined) dropInput(tx, state, input, "stale")
      }
      const text = handoff?.trim() ?? ""
      const entry = tx.appendEntry(state, {
        kind: entryKinds.handoff,
        head: { after: null },
        model: text === "" ? null : [{ role: "user", content: [{ type: "text", text }] }]
      })
      tx.sticky(state).usage.context = 0
      tx.emit(state, { type: "head.moved", entry: entry.id })
    })

  const collapse = Effect.fn("Conversation.collapse")(
    function*(instructions?: string): Effect.fn.Return<TaskRef, HarnessError> {
      yield* session.transcript(state)
      const task = yield* line.commit((tx) => createCollapse(tx, session, state, "manual", instructions ?? null))
      return { id: task, kind: taskKinds.collapse }
    }
  )

  return {
    id,
    ...rewinding(session, state),
    reset,
    collapse,
    send,
    input: (inputID) =>
      Effect.map(
        Effect.mapError(storage.input(inputID), storageFault),
        (record) => record === null ? null : inputHandle(record)
      ),
    abort,
    configure: (patch) =>
      line.commit((tx) => {
        const { config } = tx.rewindable(state)
        if (patch.model !== undefined) {
          config.model = patch.model === null
            ? null
            : { provider: patch.model.provider, model: patch.model.model }
        }
        if (patch.agent !== undefined) config.agent = patch.agent
        if (patch.thinking !== undefined) config.thinking = patch.thinking
        if (patch.queue !== undefined) config.queue = patch.queue
        for (const [key, value] of Object.entries(patch.kinds ?? {})) setKindConfig(tx, session, state, key, value)
        tx.emit(state, { type: "config.changed" })
      }),
    commit,
    waitForTask,
    abortTask,
    write,
    busy: Effect.sync(() => isBusy(state)),
    idle,
    snapshot: Effect.map(session.materialized(state), ({ revision, view }) => ({ revision, view })),
    watch: session.watch(state),
    entries: (scan) => Effect.mapError(storage.entries({ ...scan, conversation: id }), storageFault),
    context: Effect.map(session.transcript(state), contextOf),
    fork,
    finalText: Effect.map(session.transcript(state), (transcript) => {
      for (const entry of transcript.toReversed()) {
        const message = entry.model?.find((candidate) => candidate.role === "assistant")
        if (message !== undefined && message.content.every((part) => part.type !== "tool-call")) {
          return answerText(message)
        }
      }
      return ""
    })
  }
}

const setKindConfig = (
  tx: Transaction,
  session: Session,
  state: ConversationState,
  key: string,
  value: JsonValue
): void => {
  if (!session.isKindSetting(key)) {
    throw new HarnessError({
      code: "not_permitted",
      message: `No task kind that is registered now has a setting "${key}".`
    })
  }
  const document = tx.rewindable(state)
  if (document.kinds === undefined) document.kinds = {}
  document.kinds[key] = value
}

/**
 * Marks the tasks of a running turn for abortion, and with them the turns of the conversations that they own. From here on
 * the invocations that run may write nothing more, also before they are interrupted.
 */
const markTurn = (tx: Transaction, session: Session, state: ConversationState, reason: string): boolean => {
  const marked = new Set<string>()
  for (const task of session.line.state.tasks.values()) {
    if (task.conversation !== state.record.id || !belongsToTurn(task)) continue
    marked.add(task.id)
    if (task.abort !== null) continue
    session.scheduler.revoke(task.id)
    tx.putTask(state, { ...task, abort: { reason } })
  }
  for (const owned of session.line.state.conversations.values()) {
    if (owned.record.owner === null || !marked.has(owned.record.owner)) continue
    markTurn(tx, session, owned, reason)
    // Nobody is left who would begin another turn there.
    for (const inputID of owned.sticky.inbox.map((item) => item.id)) {
      const input = tx.input(inputID)
      if (input !== undefined) dropInput(tx, owned, input, "aborted")
    }
  }
  return marked.size > 0
}

/** A turn's own tasks, and a compaction that it waits for; one that somebody asked for goes on. */
const belongsToTurn = (task: TaskRecord): boolean =>
  isTurnTask(task.kind) && !task.background || task.kind === taskKinds.collapse && !isManualCollapse(task)

const errorOf = (data: JsonValue): { readonly kind: string; readonly message: string } | null => {
  const error: unknown = data !== null && typeof data === "object" ? Reflect.get(data, "error") : null
  if (error === null || typeof error !== "object") return null
  return { kind: String(Reflect.get(error, "kind")), message: String(Reflect.get(error, "message")) }
}
