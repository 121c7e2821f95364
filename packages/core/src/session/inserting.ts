/**
 * New records on their way into the catalogue. Those that come in one turn of the event loop go in with one transaction, so
 * that many who create sessions at once do not each pay for one.
 *
 * Promised: who is told that a record is in finds it there after a crash, as with a transaction of its own. If the transaction
 * fails, nobody's record is in, and each is told why.
 */
import * as Effect from "effect/Effect"
import { storageError } from "../storage/index.ts"
import type { StorageError } from "../storage/index.ts"
import type { Catalogue } from "./catalogue.ts"
import type { SessionRecord } from "./record.ts"

interface Waiting {
  readonly record: SessionRecord
  readonly told: (outcome: Effect.Effect<boolean, StorageError>) => void
}

/** False when the id is taken. */
export type Insert = (record: SessionRecord) => Effect.Effect<boolean, StorageError>

export const makeInsert = (catalogue: Catalogue): Insert => {
  let waiting: Array<Waiting> = []
  const flush = (): void => {
    const batch = waiting
    waiting = []
    if (batch.length === 0) return
    try {
      const inserted = catalogue.insert(batch.map(({ record }) => record))
      for (const [index, { told }] of batch.entries()) told(Effect.succeed(inserted[index] === true))
    } catch (error) {
      const failed = Effect.fail(storageError(error, catalogue.path))
      for (const { told } of batch) told(failed)
    }
  }
  return (record) =>
    Effect.callback((resume) => {
      const entry: Waiting = { record, told: resume }
      waiting.push(entry)
      if (waiting.length === 1) setImmediate(flush)
      return Effect.sync(() => {
        waiting = waiting.filter((other) => other !== entry)
      })
    })
}
