/**
 * A storage that fails when told to: for showing that nothing acknowledged is lost, whichever write goes wrong.
 *
 * The two ways differ in what is stored, and look the same to the caller: a failure of unknown outcome.
 */
import * as Effect from "effect/Effect"
import { StorageError } from "../storage/index.ts"
import type { Batch, SessionFiles, Storage } from "../storage/index.ts"

export interface StorageFault {
  /** The number of the commit that fails, from 1. */
  readonly commit: number
  /** `before`: nothing is stored. `after`: the batch is stored, and only the acknowledgement is lost. Default `before`. */
  readonly when?: "before" | "after"
  /** Default `io`: the outcome is unknown. */
  readonly kind?: StorageError["kind"]
  /** Fails every later commit too. Default false. */
  readonly forever?: boolean
}

export interface FaultyStorage extends Storage {
  /** The batches that were asked for so far, those that failed included. */
  readonly batches: ReadonlyArray<Batch>
}

/** Wraps a storage so that it fails at one commit; reads pass through. */
export const faultyStorage = (storage: Storage, fault: StorageFault): FaultyStorage => {
  const batches: Array<Batch> = []
  const failure = (): StorageError =>
    new StorageError({
      kind: fault.kind ?? "io",
      message: `commit ${batches.length} failed, as the test asked`,
      path: null
    })
  return {
    ...storage,
    batches,
    commit: (batch) =>
      Effect.suspend(() => {
        batches.push(batch)
        const fails = fault.forever === true ? batches.length >= fault.commit : batches.length === fault.commit
        if (!fails) return storage.commit(batch)
        if (fault.when !== "after") return Effect.fail(failure())
        return Effect.flatMap(storage.commit(batch), () => Effect.fail(failure()))
      })
  }
}

/** Session files whose writers are wrapped; `wrap` is called once for each session that is opened for writing. */
export const wrappedSessionFiles = (
  files: SessionFiles,
  wrap: (storage: Storage, sessionID: string) => Storage
): SessionFiles => ({
  ...files,
  write: (sessionID) => Effect.map(files.write(sessionID), (storage) => wrap(storage, sessionID))
})

const nothing: Batch = {
  conversations: [],
  entries: [],
  tasks: [],
  inputs: [],
  documents: [],
  events: [],
  nextID: 1,
  at: 0
}

/** A batch with what is given, and nothing else in it. */
export const batchOf = (parts: Partial<Batch>): Batch => ({ ...nothing, ...parts })
