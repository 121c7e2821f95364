/**
 * How records become text and back, the same for every backend: JSON, byte-exact (a lone surrogate is escaped).
 *
 * Storage does not interpret records, so what is read back is trusted to be what was written; text that is no JSON any
 * more is `corrupt`, with the file and the record.
 */
import { apply } from "../json/index.ts"
import type { JsonValue, Operation } from "../json/index.ts"
import { StorageError } from "./storage.ts"
import type { Batch, InputRecord, TaskRecord } from "./storage.ts"

/** Parses what was stored; `A` is the type that was written there. */
export const decodeStored = <A>(text: unknown, path: string, what: string): A => {
  try {
    return JSON.parse(String(text)) as A
  } catch {
    throw new StorageError({
      kind: "corrupt",
      message:
        `${path}: ${what} cannot be read back; run \`bezel session repair\` with the id of the session, or restore the file from a backup`,
      path
    })
  }
}

/** Applies stored operations; ones that do not fit mean that the file is damaged. */
export const replay = (
  value: JsonValue,
  operations: ReadonlyArray<Operation>,
  path: string,
  document: string
): JsonValue => {
  try {
    return apply(value, operations)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new StorageError({
      kind: "corrupt",
      message: `${path}: the operations of document "${document}" do not fit it (${why})`,
      path
    })
  }
}

export const isLiveTask = (task: TaskRecord): boolean => task.status === "pending" || task.status === "running"

export const isLiveInput = (input: InputRecord): boolean => input.status === "queued" || input.status === "placed"

/** What one batch does to one document, its changes in order. */
export interface DocumentWrite {
  readonly document: string
  readonly base: JsonValue | undefined
  readonly operations: ReadonlyArray<Operation>
  readonly retained: boolean
}

export const documentWrites = (batch: Batch): ReadonlyArray<DocumentWrite> => {
  const writes = new Map<string, DocumentWrite>()
  for (const change of batch.documents) {
    const known = writes.get(change.document)
    const operations = change.operations ?? []
    writes.set(change.document, {
      document: change.document,
      base: change.base !== undefined ? change.base : known?.base,
      operations: change.base !== undefined || known === undefined ? operations : [...known.operations, ...operations],
      retained: change.retained
    })
  }
  return [...writes.values()]
}

/** A mistake of the caller, found before anything is stored. */
export const refused = (path: string | null, message: string): StorageError =>
  new StorageError({ kind: "io", message, path })

export const notFound = (path: string | null, message: string): StorageError =>
  new StorageError({ kind: "not_found", message, path })
