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
import * as Schema from "effect/Schema"
import type { Operation } from "./delta.ts"
import { copyJson, formatPath, NotJson, setMember } from "./json.ts"
import type { JsonValue, Path, PathSegment } from "./json.ts"

/** The draft, or something nested in it, was used after its commit. */
export class DraftRevoked extends Schema.TaggedError<DraftRevoked>()("DraftRevoked", {
  message: Schema.String
}) {}

/** A JSON type with everything mutable. */
export type Draft<A> = A extends string | number | boolean | null | undefined ? A
  : A extends ReadonlyArray<infer Item> ? Array<Draft<Item>>
  : A extends object ? { -readonly [Key in keyof A]: Draft<A[Key]> }
  : A

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

type MutableOperation =
  | ["set", Path, JsonValue]
  | ["delete", Path]
  | ["append", Path, string]
  | ["truncate", Path, number]
  | ["splice", Path, number, number, Array<JsonValue>]
  | ["replace", JsonValue]

type Container = Record<string, JsonValue> | Array<JsonValue>

const isContainer = (value: JsonValue | undefined): value is JsonValue & object => typeof value === "object" && value !== null

const samePath = (left: Path, right: Path): boolean => {
  if (left.length !== right.length) return false
  for (let index = left.length - 1; index >= 0; index--) if (left[index] !== right[index]) return false
  return true
}

/** Finds the state behind a draft. */
const nodes = new WeakMap<object, Node>()

class Tracker {
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
    if (this.revoked) throw new DraftRevoked({ message: "this draft has ended with its commit; read or change the document through a new one" })
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
  if (last[0] === "splice" && next[0] === "splice" && next[3] === 0 && next[2] === last[2] + last[4].length && samePath(last[1], next[1])) {
    for (const item of next[4]) last[4].push(item)
    return true
  }
  return false
}

/** One container of the document; also the handler of its proxy. */
class Node implements ProxyHandler<object> {
  readonly tracker: Tracker
  /** `null` for the root, and for a container that was removed from the document. */
  parent: Node | null
  key: PathSegment
  current: Container
  /** The epoch in which `current` became ours to write; 0 for never. */
  owned: number
  /** The epoch in which this container was assigned, whole. */
  fresh: number
  attached = true
  children: Map<PathSegment, Node> | undefined
  readonly proxy: object

  constructor(tracker: Tracker, parent: Node | null, key: PathSegment, current: Container, fresh: number) {
    this.tracker = tracker
    this.parent = parent
    this.key = key
    this.current = current
    this.owned = fresh
    this.fresh = fresh
    // The target is empty: it only says whether this is an array, and that members are configurable.
    this.proxy = new Proxy(Array.isArray(current) ? [] : {}, this)
    nodes.set(this.proxy, this)
  }

  // ------------------------------------------------------------------------------------------------ places and ownership

  path(key?: PathSegment): Array<PathSegment> {
    const path: Array<PathSegment> = key === undefined ? [] : [key]
    for (let node: Node = this; node.parent !== null; node = node.parent) path.push(node.key)
    return path.reverse()
  }

  /** Whether an edit here must be recorded: not when the container travels whole, nor when it left the document. */
  get recorded(): boolean {
    if (this.fresh === this.tracker.epoch) return false
    let node: Node = this
    while (node.parent !== null) node = node.parent
    return node.attached
  }

  own(): Container {
    const epoch = this.tracker.epoch
    if (this.owned !== epoch) {
      this.current = Array.isArray(this.current) ? this.current.slice() : { ...this.current }
      this.owned = epoch
      if (this.parent !== null) place(this.parent.own(), this.key, this.current)
    }
    return this.current
  }

  detach(key: PathSegment): void {
    const child = this.children?.get(key)
    if (child === undefined) return
    this.children?.delete(key)
    child.parent = null
    child.attached = false
  }

  child(key: PathSegment, value: JsonValue & object): object {
    this.children ??= new Map()
    const known = this.children.get(key)
    if (known !== undefined) return known.proxy
    const fresh = this.tracker.assigned.has(value) ? this.tracker.epoch : this.fresh
    const node = new Node(this.tracker, this, key, value as Container, fresh)
    this.children.set(key, node)
    return node.proxy
  }

  member(key: PathSegment): JsonValue | undefined {
    const container = this.current
    if (Array.isArray(container)) return typeof key === "number" ? container[key] : undefined
    return Object.hasOwn(container, key) ? container[key] : undefined
  }

  take(value: unknown, at: Path): JsonValue {
    const copy = detached(value, at)
    if (isContainer(copy)) this.tracker.assigned.add(copy)
    return copy
  }

  refuse(key: PathSegment, problem: string): NotJson {
    const path = this.path(key)
    return new NotJson({ message: `${formatPath(path)}: ${problem}`, path })
  }

  // ------------------------------------------------------------------------------------------------------------- edits

  assign(key: PathSegment, value: unknown): void {
    const before = this.member(key)
    if (before !== undefined) {
      if (before === value) return
      if (isContainer(before) && this.children?.get(key)?.proxy === value) return
    }
    const path = this.path(key)
    const after = this.take(value, path)
    this.detach(key)
    const container = this.own()
    if (Array.isArray(container)) container[key as number] = after
    else setMember(container, key as string, after)
    if (!this.recorded) return
    if (typeof before === "string" && typeof after === "string") {
      // A set would carry the whole text, so comparing it is always the cheaper.
      if (after.length > before.length && before !== "" && after.startsWith(before)) {
        return this.tracker.record(["append", path, after.slice(before.length)])
      }
      if (after.length < before.length && after !== "" && before.endsWith(after)) {
        return this.tracker.record(["truncate", path, before.length - after.length])
      }
    }
    this.tracker.record(["set", path, after])
  }

  append(key: PathSegment, text: string): void {
    const before = this.member(key)
    if (typeof before !== "string") throw this.refuse(key, "only a string can be appended to")
    if (text === "") return
    place(this.own(), key, before + text)
    if (this.recorded) this.tracker.record(["append", this.path(key), text])
  }

  truncate(key: PathSegment, count: number): void {
    const before = this.member(key)
    if (typeof before !== "string") throw this.refuse(key, "only a string can be truncated")
    if (!Number.isInteger(count) || count < 0 || count > before.length) {
      throw this.refuse(key, `cannot drop ${count} units of a string of ${before.length}`)
    }
    if (count === 0) return
    place(this.own(), key, before.slice(count))
    if (this.recorded) this.tracker.record(["truncate", this.path(key), count])
  }

  /** Gives what was removed: drafts that had been read stay usable, apart from the document. */
  splice(at: number, count: number, items: ReadonlyArray<unknown>): Array<unknown> {
    const length = (this.current as Array<JsonValue>).length
    const path = this.path()
    const copies = items.map((item, offset) => this.take(item, [...path, at + offset]))
    const removed: Array<unknown> = []
    for (let index = at; index < at + count; index++) {
      removed.push(this.element(index))
      this.detach(index)
    }
    if (count === 0 && copies.length === 0) return removed
    const container = this.own() as Array<JsonValue>
    const shift = copies.length - count
    if (this.children !== undefined && shift !== 0 && at + count < length) {
      const moved = new Map<PathSegment, Node>()
      for (const [key, node] of this.children) {
        if ((key as number) >= at + count) node.key = (key as number) + shift
        moved.set(node.key, node)
      }
      this.children = moved
    }
    if (at === length) for (const copy of copies) container.push(copy)
    else if (copies.length < 10_000) container.splice(at, count, ...copies)
    else {
      const tail = container.splice(at)
      for (const copy of copies) container.push(copy)
      for (let index = count; index < tail.length; index++) container.push(tail[index] as JsonValue)
    }
    if (this.recorded) this.tracker.record(["splice", path, at, count, copies])
    return removed
  }

  element(index: number): unknown {
    const value = (this.current as Array<JsonValue>)[index]
    return isContainer(value) ? this.child(index, value) : value
  }

  replace(value: unknown): void {
    const copy = this.take(value, [])
    if (!isContainer(copy) || Array.isArray(copy) !== Array.isArray(this.current)) {
      throw this.refuse("", "a document that is an object is replaced by an object, an array by an array")
    }
    for (const key of [...(this.children?.keys() ?? [])]) this.detach(key)
    this.current = copy as Container
    this.owned = this.tracker.epoch
    this.fresh = this.tracker.epoch
    this.tracker.operations = [["replace", copy]]
  }

  // ------------------------------------------------------------------------------------------------------ proxy handler

  get(_target: object, key: string | symbol): unknown {
    this.tracker.live()
    const container = this.current
    if (Array.isArray(container)) {
      if (typeof key === "symbol") return Reflect.get(Array.prototype, key)
      if (key === "length") return container.length
      const index = indexOf(key)
      if (index !== undefined) return index < container.length ? this.element(index) : undefined
      return Object.hasOwn(arrayEdits, key) ? arrayEdits[key] : Reflect.get(Array.prototype, key)
    }
    if (typeof key === "symbol") return Reflect.get(Object.prototype, key)
    if (key === "__proto__") return Object.hasOwn(container, key) ? copyJson(container[key]) : Object.prototype
    if (!Object.hasOwn(container, key)) return Reflect.get(Object.prototype, key)
    const value = container[key]
    return isContainer(value) ? this.child(key, value) : value
  }

  set(_target: object, key: string | symbol, value: unknown): boolean {
    this.tracker.live()
    if (typeof key === "symbol") throw this.refuse("", "a symbol cannot be a key")
    const container = this.current
    if (!Array.isArray(container)) {
      if (key === "__proto__") throw this.refuse(key, "`__proto__` cannot be set")
      this.assign(key, value)
      return true
    }
    if (key === "length") {
      const length = typeof value === "number" ? value : Number.NaN
      if (!Number.isInteger(length) || length < 0 || length > container.length) {
        throw this.refuse("length", `an array of ${container.length} can only be shortened`)
      }
      this.splice(length, container.length - length, [])
      return true
    }
    const index = indexOf(key)
    if (index === undefined) throw this.refuse(key, "an array has no such member")
    if (index > container.length) throw this.refuse(index, `an array of ${container.length} takes an index from 0 to ${container.length}`)
    if (index === container.length) this.splice(index, 0, [value])
    else this.assign(index, value)
    return true
  }

  deleteProperty(_target: object, key: string | symbol): boolean {
    this.tracker.live()
    const container = this.current
    if (typeof key === "symbol") return true
    if (Array.isArray(container)) throw this.refuse(indexOf(key) ?? key, "elements of an array are removed with `splice`")
    if (!Object.hasOwn(container, key)) return true
    if (key === "__proto__") throw this.refuse(key, "`__proto__` cannot be deleted")
    this.detach(key)
    const own = this.own() as Record<string, JsonValue>
    delete own[key]
    if (this.recorded) this.tracker.record(["delete", this.path(key)])
    return true
  }

  has(_target: object, key: string | symbol): boolean {
    this.tracker.live()
    return Reflect.has(this.current, key)
  }

  ownKeys(): Array<string | symbol> {
    this.tracker.live()
    return Reflect.ownKeys(this.current)
  }

  getOwnPropertyDescriptor(target: object, key: string | symbol): PropertyDescriptor | undefined {
    this.tracker.live()
    if (!Object.hasOwn(this.current, key)) return undefined
    const length = Array.isArray(this.current) && key === "length"
    return { value: this.get(target, key), writable: true, enumerable: !length, configurable: !length }
  }

  defineProperty(_target: object, key: string | symbol): boolean {
    this.tracker.live()
    throw this.refuse(String(key), "a member of a draft is assigned, not defined")
  }

  getPrototypeOf(target: object): object | null {
    this.tracker.live()
    return Reflect.getPrototypeOf(target)
  }

  setPrototypeOf(): boolean {
    this.tracker.live()
    throw this.refuse("", "a draft has no prototype to set")
  }

  isExtensible(): boolean {
    this.tracker.live()
    return true
  }

  preventExtensions(): boolean {
    this.tracker.live()
    throw this.refuse("", "a draft cannot be frozen")
  }
}

/** A draft's state is strict JSON already and is copied without going through its proxies. */
const detached = (value: unknown, at: Path): JsonValue => {
  const node = typeof value === "object" && value !== null ? nodes.get(value) : undefined
  if (node === undefined) return copyJson(value, at)
  node.tracker.live()
  return copyJson(node.current, at)
}

const place = (container: Container, key: PathSegment, value: JsonValue): void => {
  if (Array.isArray(container)) container[key as number] = value
  else container[key as string] = value
}

const indexOf = (key: string): number | undefined => {
  const first = key.charCodeAt(0)
  if (!(first >= 48 && first <= 57)) return undefined
  const index = Number(key)
  return Number.isSafeInteger(index) && index >= 0 && String(index) === key ? index : undefined
}

/** The array behind a draft that an array method was called on. */
const arrayNode = (self: unknown): { readonly node: Node; readonly length: number } => {
  const node = typeof self === "object" && self !== null ? nodes.get(self) : undefined
  if (node === undefined || !Array.isArray(node.current)) throw new TypeError("this method was taken from a draft and called on something else")
  node.tracker.live()
  return { node, length: node.current.length }
}

const integer = (value: unknown): number => {
  const number = Math.trunc(Number(value))
  return Number.isNaN(number) ? 0 : number
}

const arrayEdits: { readonly [name: string]: (this: unknown, ...items: Array<unknown>) => unknown } = {
  push(...items) {
    const { length, node } = arrayNode(this)
    node.splice(length, 0, items)
    return length + items.length
  },
  pop() {
    const { length, node } = arrayNode(this)
    return length === 0 ? undefined : node.splice(length - 1, 1, [])[0]
  },
  shift() {
    const { length, node } = arrayNode(this)
    return length === 0 ? undefined : node.splice(0, 1, [])[0]
  },
  unshift(...items) {
    const { length, node } = arrayNode(this)
    node.splice(0, 0, items)
    return length + items.length
  },
  splice(...args) {
    const { length, node } = arrayNode(this)
    const start = integer(args[0])
    const at = start < 0 ? Math.max(0, length + start) : Math.min(start, length)
    const asked = args.length === 0 ? 0 : args.length === 1 ? length - at : integer(args[1])
    return node.splice(at, Math.min(Math.max(asked, 0), length - at), args.slice(2))
  }
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
