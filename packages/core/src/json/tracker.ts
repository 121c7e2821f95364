/**
 * What a tracked document remembers between two flushes: the operations so far, and which containers are its own to write.
 */
import * as Schema from "effect/Schema"
import type { JsonValue, Path } from "./json.ts"

/** The draft, or something nested in it, was used after its commit. */
export class DraftRevoked extends Schema.TaggedError<DraftRevoked>()("DraftRevoked", {
  message: Schema.String
}) {}

export type MutableOperation =
  | ["set", Path, JsonValue]
  | ["delete", Path]
  | ["append", Path, string]
  | ["truncate", Path, number]
  | ["splice", Path, number, number, Array<JsonValue>]
  | ["replace", JsonValue]

const samePath = (left: Path, right: Path): boolean => {
  if (left.length !== right.length) return false
  for (let index = left.length - 1; index >= 0; index--) if (left[index] !== right[index]) return false
  return true
}

export class Tracker {
  revoked = false
  /** Counts flushes; a container copied or assigned in this epoch may be written in place. */
  epoch = 1
  operations: Array<MutableOperation> = []
  /** Containers that were assigned in this epoch. */
  assigned: Set<object> = new Set()

  record(operation: MutableOperation): void {
    const last = this.operations.at(-1)
    if (last !== undefined && merge(last, operation)) return
    this.operations.push(operation)
  }

  live(): void {
    if (this.revoked) {
      throw new DraftRevoked({
        message: "this draft has ended with its commit; read or change the document through a new one"
      })
    }
  }
}

/** Folds an operation into the one before it, where the two are one edit: a run of appends, pushes or sets. */
const merge = (last: MutableOperation, next: MutableOperation): boolean => {
  if (last[0] === "append" && next[0] === "append" && samePath(last[1], next[1])) {
    last[2] += next[2]
    return true
  }
  if (last[0] === "set" && next[0] === "append" && typeof last[2] === "string" && samePath(last[1], next[1])) {
    last[2] += next[2]
    return true
  }
  if (last[0] === "set" && next[0] === "set" && samePath(last[1], next[1])) {
    last[2] = next[2]
    return true
  }
  if (
    last[0] === "splice" && next[0] === "splice" && next[3] === 0 && next[2] === last[2] + last[4].length &&
    samePath(last[1], next[1])
  ) {
    for (const item of next[4]) last[4].push(item)
    return true
  }
  return false
}
