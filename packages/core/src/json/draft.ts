/**
 * Tracked drafts: edit a JSON document as if it were an ordinary mutable one, and get the operations that did it.
 *
 * A draft is a proxy over copy-on-write state. It reads its own writes; the document it was made of never changes; what a
 * flush gives is a new immutable document that shares everything unchanged with the old. What is assigned is copied and
 * checked to be strict JSON, so nothing outside can change a document later. A container is the same draft each time it is
 * read, as long as it stays in its place. After `revoke`, any use of the draft or of anything nested in it throws
 * `DraftRevoked` and changes nothing.
 *
 * Operations are recorded as edits happen, never found by comparing: the cost of an edit is that of its path. A container
 * that was assigned since the last flush travels whole in its operation, so edits inside it record nothing more.
 */
import type { Operation } from "./delta.ts"
import { detached, Node, nodes } from "./draft-node.ts"
import type { Container } from "./draft-node.ts"
import type { JsonValue, PathSegment } from "./json.ts"
import { Tracker } from "./tracker.ts"

export { DraftRevoked } from "./tracker.ts"

/** A JSON type with everything mutable. */
export type Draft<A> = A extends string | number | boolean | null | undefined ? A :
  A extends ReadonlyArray<infer Item> ? Array<Draft<Item>> :
  A extends object ? { -readonly [Key in keyof A]: Draft<A[Key]> } :
  A

export interface Flush<A> {
  /** The document now; immutable, sharing what is unchanged with the one before. */
  readonly value: A
  /** What led from the document of the last flush to this one; empty when nothing changed. */
  readonly operations: ReadonlyArray<Operation>
}

export interface Tracked<A> {
  readonly draft: Draft<A>
  /** Whether anything was edited since the last flush. */
  readonly changed: boolean
  /** Replaces the whole document, by an object for an object or an array for an array; throws `NotJson`. */
  readonly replace: (value: A) => void
  readonly flush: () => Flush<A>
  /** Ends the draft: any later use of it throws `DraftRevoked`. */
  readonly revoke: () => void
}

const nodeOf = (draft: object): Node => {
  const node = nodes.get(draft)
  if (node === undefined) throw new TypeError("not a draft: pass the draft that holds the string")
  node.tracker.live()
  return node
}

/** Appends to the string at `key`; costs the appended text, however long the string is. Throws `NotJson` if it is none. */
export const append = <D extends object>(draft: D, key: keyof D & PathSegment, text: string): void => {
  nodeOf(draft).append(key, text)
}

/** Drops the first `count` UTF-16 units of the string at `key`. Throws `NotJson` if there are not as many. */
export const truncate = <D extends object>(draft: D, key: keyof D & PathSegment, count: number): void => {
  nodeOf(draft).truncate(key, count)
}

/** A detached, immutable copy of a draft's value as it is now. Values that are no drafts are copied as well. */
export const snapshot = (draft: unknown): JsonValue => detached(draft, [])

/**
 * Starts tracking a document: an object or array of strict JSON that nobody else changes (it is not copied).
 * `A` may be an interface of your own; that its members are strict JSON is up to you.
 */
export const track = <A extends object>(base: A): Tracked<A> => {
  const tracker = new Tracker()
  const value: JsonValue & object = base as JsonValue & object
  const root = new Node(tracker, null, "", value as Container, 0)
  return {
    draft: root.proxy as Draft<A>,
    get changed() {
      return tracker.operations.length > 0
    },
    replace: (next) => {
      tracker.live()
      root.replace(next)
    },
    flush: () => {
      tracker.live()
      const operations = tracker.operations
      tracker.operations = []
      if (tracker.assigned.size > 0) tracker.assigned = new Set()
      tracker.epoch++
      return { value: root.current as A, operations }
    },
    revoke: () => {
      tracker.revoked = true
    }
  }
}
