/**
 * One container of a tracked document, and the proxy through which it is edited. Internal to `draft.ts`.
 *
 * Containers are copied when first written after a flush, from the written one up to the root, so what was given out before
 * never changes. A container that was assigned since the last flush travels whole in its operation and is edited in place.
 */
import { copyJson, formatPath, NotJson, setMember } from "./json.ts"
import type { JsonValue, Path, PathSegment } from "./json.ts"
import type { Tracker } from "./tracker.ts"

export type Container = Record<string, JsonValue> | Array<JsonValue>

const isContainer = (value: JsonValue | undefined): value is JsonValue & object =>
  typeof value === "object" && value !== null

/** Finds the state behind a draft. */
export const nodes = new WeakMap<object, Node>()

/** One container of the document; also the handler of its proxy. */
export class Node implements ProxyHandler<object> {
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
    const path = this.parent === null ? [] : this.parent.path(this.key)
    if (key !== undefined) path.push(key)
    return path
  }

  /** Whether an edit here must be recorded: not when the container travels whole, nor when it left the document. */
  get recorded(): boolean {
    return this.fresh !== this.tracker.epoch && this.inDocument
  }

  get inDocument(): boolean {
    return this.parent === null ? this.attached : this.parent.inDocument
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
    if (at === length) { for (const copy of copies) container.push(copy) }
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
    for (const key of this.children?.keys() ?? []) this.detach(key)
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
    if (index > container.length) {
      throw this.refuse(index, `an array of ${container.length} takes an index from 0 to ${container.length}`)
    }
    if (index === container.length) this.splice(index, 0, [value])
    else this.assign(index, value)
    return true
  }

  deleteProperty(_target: object, key: string | symbol): boolean {
    this.tracker.live()
    const container = this.current
    if (typeof key === "symbol") return true
    if (Array.isArray(container)) {
      throw this.refuse(indexOf(key) ?? key, "elements of an array are removed with `splice`")
    }
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
export const detached = (value: unknown, at: Path): JsonValue => {
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
  if (node === undefined || !Array.isArray(node.current)) {
    throw new TypeError("this method was taken from a draft and called on something else")
  }
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
