/**
 * A commit as an extension may build it: the same transaction, with authority checked at run time on every method.
 *
 * Extensions write inside their namespaces, create tasks of kinds that are registered now, and write entries of their own
 * kinds. They cannot reach a turn, the inbox, another task's slot or a name under `bezel.`; a cast does not help.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type JsonValue, toJson } from "../json/index.ts"
import type { UserMessage } from "../model/index.ts"
import type { StorageReader } from "../storage/index.ts"
import {
  type ExtensionTransaction,
  HarnessError,
  type Namespace,
  type NewExtensionEntry,
  type TaskKind,
  type TaskOptions
} from "./api.ts"
import { entryFault } from "./entry-kind.ts"
import type { ConversationState } from "./state.ts"
import type { Transaction } from "./transaction.ts"
import type { ViewEvent } from "./view.ts"

/** What the transaction checks against: the registrations of today. */
export interface Authority {
  readonly namespaceDraft: (
    tx: Transaction,
    state: ConversationState,
    namespace: Namespace
  ) => { [key: string]: JsonValue }
  readonly assertNamespace: (namespace: Namespace) => void
  readonly assertKind: (kind: TaskKind<unknown>) => void
  /** Asks the model for an answer to what was written into an idle conversation. */
  readonly wake: (tx: Transaction, state: ConversationState) => void
}

export const extensionTransaction = (
  tx: Transaction,
  state: ConversationState,
  storage: StorageReader,
  authority: Authority,
  options: { readonly mayCreate: boolean } = { mayCreate: true }
): ExtensionTransaction => {
  let wrote = false
  return {
    now: tx.now,
    plugins: (namespace) => authority.namespaceDraft(tx, state, namespace),
    emit: (namespace, name, data) => {
      authority.assertNamespace(namespace)
      tx.emit(state, pluginEvent(namespace.id, name, data))
    },
    write: (kind, entry) => {
      wrote = true
      return writeEntry(tx, state, authority, typeof kind === "string" ? kind : kind.kind, entry)
    },
    createTask: (kind, input, taskOptions) => {
      if (!options.mayCreate) {
        throw new HarnessError({ code: "not_permitted", message: "An abort may not create new work." })
      }
      return createTask(tx, state, authority, kind, input, taskOptions)
    },
    newestEntry: (kind) =>
      Effect.suspend(() => {
        if (wrote) {
          // Also when it is caught: what a builder would decide on this read, it would decide on half a commit.
          const fault = new HarnessError({
            code: "read_after_write",
            message: "A commit read entries after it had written some; read first, then write."
          })
          tx.poison(fault)
          return Effect.fail(fault)
        }
        return Effect.mapError(
          Effect.map(
            storage.entries({
              conversation: state.record.id,
              kind: typeof kind === "string" ? kind : kind.kind,
              newestFirst: true,
              limit: 1
            }),
            (entries) => entries[0] ?? null
          ),
          (error) => new HarnessError({ code: "faulted", message: error.message })
        )
      })
  }
}

/** An event of a namespace's own; data that is no strict JSON is refused. */
export const pluginEvent = (namespace: string, name: string, data: JsonValue): ViewEvent => ({
  type: `plugin.${namespace}.${name}`,
  data: strict(data, "The event's data")
})

/** Writes an extension's entry into the transcript, or beside a running turn until its next boundary. */
const writeEntry = (
  tx: Transaction,
  state: ConversationState,
  authority: Authority,
  kind: string,
  entry: NewExtensionEntry
): string => {
  const fault = entryFault(kind, entry)
  if (fault !== null) throw fault
  const wake = entry.wake === true
  const data = strict(entry.data ?? null, "The entry's data")
  const model = entry.model === undefined ? null : entry.model.map(userMessage)
  // An entry that lands at once is named by its place; one that waits is named before it has one.
  if (!tx.inTurn(state)) {
    const { id } = tx.appendEntry(state, { kind, data, model })
    if (wake) authority.wake(tx, state)
    return id
  }
  const id = tx.id("e")
  tx.sticky(state).writes.push({ id, kind, data, model, ...(wake ? { wake } : {}) })
  return id
}

/** Only user messages, and only what is declared of them. */
const userMessage = (message: UserMessage): UserMessage => {
  if (message.role !== "user") {
    throw new HarnessError({ code: "not_permitted", message: "Entries of extensions hold user messages only." })
  }
  strict(message.content, "The entry's message")
  return { role: "user", content: [...message.content] }
}

const createTask = <I>(
  tx: Transaction,
  state: ConversationState,
  authority: Authority,
  kind: TaskKind<I>,
  input: I,
  options: TaskOptions | undefined
) => {
  if (kind.name.startsWith("bezel.") && kind.name !== "bezel.job") {
    throw new HarnessError({
      code: "not_permitted",
      message: `Tasks of the kind "${kind.name}" are created by Bezel alone.`
    })
  }
  authority.assertKind(kind)
  const encoded = Schema.encodeUnknownResult(Schema.toCodecJson(kind.input))(input)
  if (Result.isFailure(encoded)) {
    throw new HarnessError({
      code: "invalid",
      message: `The input of the task "${kind.name}" is not valid: ${String(encoded.failure)}`
    })
  }
  const after = options?.after ?? []
  // Only what was created before can be waited for, so there are no cycles, and nothing waits for itself.
  for (const ref of after) {
    if (!tx.isTaskID(ref.id)) {
      throw new HarnessError({
        code: "invalid",
        message:
          `There is no task "${ref.id}" to come after; a task can only come after one that was created before it.`
      })
    }
  }
  const task = tx.createTask(state, {
    kind: kind.name,
    input: strict(encoded.success, "The task's input"),
    background: options?.background ?? false,
    after: after.map((ref) => ref.id)
  })
  tx.emit(state, { type: "task.started", id: task.id, kind: kind.name })
  return { id: task.id, kind: kind.name }
}

const strict = (value: unknown, what: string): JsonValue => {
  const checked = toJson(value)
  if (Result.isFailure(checked)) {
    throw new HarnessError({ code: "invalid", message: `${what} is not strict JSON: ${checked.failure.message}` })
  }
  return checked.success
}
