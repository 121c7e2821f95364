/**
 * Operations: how one JSON document became the next. `apply` replays them.
 *
 * Plain synchronous code, because it runs for every streamed frame (`bench/delta.ts`). `apply` never changes what it is
 * given: it shares what is unchanged, so an untouched sibling keeps its identity, and the cost of an operation is that of
 * the containers on its path, never of the document. Appending to a string costs the appended text.
 *
 * An operation that does not fit the document throws `OperationError`, and then nothing has changed. Operations from
 * elsewhere go through `applyChecked`, which also checks their shape and the JSON that they carry.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { copyJson, formatPath, maxDepth, NotJson } from "./json.ts"
import type { JsonValue, Path, PathSegment } from "./json.ts"

/** One change of a JSON document. Paths are from the root; lengths and indexes of strings are in UTF-16 units. */
export type Operation =
  /** Set the member or element at the path (an array index may be its length, which appends). */
  | readonly ["set", Path, JsonValue]
  /** Delete an object's member. */
  | readonly ["delete", Path]
  /** Append to a string. */
  | readonly ["append", Path, string]
  /** Drop the first `n` units of a string. */
  | readonly ["truncate", Path, number]
  /** In an array: at an index, remove `n` elements and insert these. */
  | readonly ["splice", Path, number, number, ReadonlyArray<JsonValue>]
  /** Replace the whole document. */
  | readonly ["replace", JsonValue]

/** An operation that is malformed or does not fit its document. `index` is its place in the list, from 0. */
export class OperationError extends Schema.TaggedError<OperationError>()("OperationError", {
  message: Schema.String,
  path: Schema.Array(Schema.Union([Schema.String, Schema.Number])),
  index: Schema.Int
}) {}

type MutableObject = Record<string, JsonValue>
type MutableArray = Array<JsonValue>

/** Applies a list to one document; containers that it copied already are its own and are written in place. */
class Application {
  root: JsonValue
  index = 0
  readonly owned: Set<object> | undefined

  constructor(root: JsonValue, count: number) {
    this.root = root
    this.owned = count > 1 ? new Set() : undefined
  }

  fail(path: Path, problem: string): never {
    throw new OperationError({
      message: `operation ${this.index} at ${formatPath(path)}: ${problem}`,
      path: [...path],
      index: this.index
    })
  }

  own(value: JsonValue, path: Path, length: number): MutableObject | MutableArray {
    if (typeof value !== "object" || value === null) {
      return this.fail(path, `${formatPath(path.slice(0, length))} is not an object or array`)
    }
    if (this.owned?.has(value) === true) return value as MutableObject | MutableArray
    const container = value as MutableObject | MutableArray
    const copy = Array.isArray(container) ? container.slice() : { ...container }
    this.owned?.add(copy)
    return copy
  }

  /** The value at a segment that must be there. */
  child(container: JsonValue, segment: PathSegment, path: Path, depth: number): JsonValue {
    if (typeof container === "object" && container !== null) {
      if (Array.isArray(container)) {
        if (typeof segment === "number" && Number.isInteger(segment) && segment >= 0 && segment < container.length) {
          const value: JsonValue | undefined = container[segment]
          if (value !== undefined) return value
        }
        return this.fail(
          path,
          `${formatPath(path.slice(0, depth + 1))} is not an element of an array of ${container.length}`
        )
      }
      if (typeof segment === "string" && segment !== "__proto__" && Object.hasOwn(container, segment)) {
        const value = (container as MutableObject)[segment]
        if (value !== undefined) return value
      }
    }
    return this.fail(path, `${formatPath(path.slice(0, depth + 1))} does not exist`)
  }

  /** Reads before anything is copied, so that a path that leads nowhere changes nothing. */
  read(path: Path, length: number): JsonValue {
    let value = this.root
    for (let depth = 0; depth < length; depth++) value = this.child(value, path[depth] as PathSegment, path, depth)
    return value
  }

  /** The container at a prefix of the path, owned, with all that leads to it. */
  open(path: Path, length: number): MutableObject | MutableArray {
    let container = this.own(this.root, path, 0)
    this.root = container
    for (let depth = 0; depth < length; depth++) {
      const segment = path[depth] as PathSegment
      const child = this.own(this.child(container, segment, path, depth), path, depth + 1)
      put(container, segment, child)
      container = child
    }
    return container
  }

  write(path: Path, value: JsonValue): void {
    if (path.length === 0) this.root = value
    else put(this.open(path, path.length - 1), path[path.length - 1] as PathSegment, value)
  }

  set(path: Path, value: JsonValue): void {
    if (path.length === 0) this.fail(path, "the document is replaced with `replace`")
    const key = path[path.length - 1] as PathSegment
    const container = this.read(path, path.length - 1)
    if (Array.isArray(container)) {
      if (typeof key !== "number" || !Number.isInteger(key) || key < 0 || key > container.length) {
        this.fail(path, `an array of ${container.length} takes an index from 0 to ${container.length}`)
      }
      if (key < container.length && container[key] === value) return
    } else if (typeof container === "object" && container !== null) {
      if (typeof key !== "string") this.fail(path, "an object takes a string as key")
      if (key === "__proto__") this.fail(path, "`__proto__` cannot be set")
      const object = container as MutableObject
      if (object[key] === value && Object.hasOwn(object, key)) return
    } else this.fail(path, `${formatPath(path.slice(0, -1))} is not an object or array`)
    this.write(path, value)
  }

  delete(path: Path): void {
    if (path.length === 0) this.fail(path, "the document itself cannot be deleted")
    this.read(path, path.length)
    const container = this.read(path, path.length - 1)
    if (Array.isArray(container)) this.fail(path, "elements of an array are removed with `splice`")
    delete (this.open(path, path.length - 1) as MutableObject)[path[path.length - 1] as string]
  }

  append(path: Path, text: string): void {
    const value = this.read(path, path.length)
    if (typeof value !== "string") return this.fail(path, "only a string can be appended to")
    if (text !== "") this.write(path, value + text)
  }

  truncate(path: Path, count: number): void {
    const value = this.read(path, path.length)
    if (typeof value !== "string") return this.fail(path, "only a string can be truncated")
    if (!Number.isInteger(count) || count < 0 || count > value.length) {
      this.fail(path, `cannot drop ${count} units of a string of ${value.length}`)
    }
    if (count > 0) this.write(path, value.slice(count))
  }

  splice(path: Path, at: number, count: number, items: ReadonlyArray<JsonValue>): void {
    const value = this.read(path, path.length)
    if (!Array.isArray(value)) return this.fail(path, "only an array can be spliced")
    if (!Number.isInteger(at) || at < 0 || at > value.length) {
      this.fail(path, `${at} is not a place in an array of ${value.length}`)
    }
    if (!Number.isInteger(count) || count < 0 || at + count > value.length) {
      this.fail(path, `cannot remove ${count} elements at ${at} from an array of ${value.length}`)
    }
    if (count === 0 && items.length === 0) return
    const array = this.open(path, path.length) as MutableArray
    if (at === array.length) { for (const item of items) array.push(item) }
    else if (items.length < 10_000) array.splice(at, count, ...items)
    else this.write(path, [...array.slice(0, at), ...items, ...array.slice(at + count)])
  }

  run(operation: Operation): void {
    switch (operation[0]) {
      case "set":
        return this.set(operation[1], operation[2])
      case "delete":
        return this.delete(operation[1])
      case "append":
        return this.append(operation[1], operation[2])
      case "truncate":
        return this.truncate(operation[1], operation[2])
      case "splice":
        return this.splice(operation[1], operation[2], operation[3], operation[4])
      case "replace":
        this.root = operation[1]
    }
  }
}

/** A checked place: `open` and `set` have made sure that the segment fits the container. */
const put = (container: MutableObject | MutableArray, segment: PathSegment, value: JsonValue): void => {
  if (Array.isArray(container)) container[segment as number] = value
  else container[segment as string] = value
}

/**
 * The document after these operations. What they do not touch is shared with the old one, which stays as it is.
 * Throws `OperationError` when one does not fit. The result has the shape that the operations gave it: `A` is the
 * caller's word for both.
 */
export const apply = <A>(value: A, operations: ReadonlyArray<Operation>): A => {
  const application = new Application(value as JsonValue, operations.length)
  for (const operation of operations) {
    application.run(operation)
    application.index++
  }
  return application.root as A
}

const malformed = (index: number, problem: string, path: Path = []): OperationError =>
  new OperationError({ message: `operation ${index}: ${problem}`, path: [...path], index })

const decodePath = (value: unknown, index: number): Path => {
  if (!Array.isArray(value)) throw malformed(index, "its path is not an array")
  if (value.length > maxDepth) throw malformed(index, `its path has more than ${maxDepth} segments`)
  const path: Array<PathSegment> = []
  for (const segment of value as ReadonlyArray<unknown>) {
    if (typeof segment === "string") {
      if (segment === "__proto__") throw malformed(index, "`__proto__` cannot be part of a path", path)
      path.push(segment)
    } else if (typeof segment === "number" && Number.isSafeInteger(segment) && segment >= 0) path.push(segment)
    else {throw malformed(
        index,
        `${JSON.stringify(segment) ?? typeof segment} after ${formatPath(path)} is not a path segment`,
        path
      )}
  }
  return path
}

const decodeCount = (value: unknown, index: number, path: Path, what: string): number => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value
  throw malformed(index, `${what} at ${formatPath(path)} is not a whole number of at least 0`, path)
}

const members: { readonly [name in Operation[0]]: number } = {
  set: 3,
  delete: 2,
  append: 3,
  truncate: 3,
  splice: 5,
  replace: 2
}

const decodeOperation = (value: unknown, index: number): Operation => {
  if (!Array.isArray(value)) throw malformed(index, "it is not an array")
  const parts: ReadonlyArray<unknown> = value
  const name = parts[0]
  if (typeof name !== "string" || !Object.hasOwn(members, name)) {
    throw malformed(
      index,
      `${typeof name === "string" ? JSON.stringify(name.slice(0, 80)) : typeof name} is not the name of an operation`
    )
  }
  if (parts.length !== members[name as Operation[0]]) {
    throw malformed(index, `\`${name}\` has ${members[name as Operation[0]]} members, not ${parts.length}`)
  }
  if (name === "replace") return ["replace", copyJson(parts[1])]
  const path = decodePath(parts[1], index)
  switch (name) {
    case "set":
      return ["set", path, copyJson(parts[2], path)]
    case "append":
      if (typeof parts[2] !== "string") {
        throw malformed(index, `the text to append at ${formatPath(path)} is not a string`, path)
      }
      return ["append", path, parts[2]]
    case "truncate":
      return ["truncate", path, decodeCount(parts[2], index, path, "the count")]
    case "splice": {
      const items = copyJson(parts[4], path)
      if (!Array.isArray(items)) throw malformed(index, `what to insert at ${formatPath(path)} is not an array`, path)
      return [
        "splice",
        path,
        decodeCount(parts[2], index, path, "the index"),
        decodeCount(parts[3], index, path, "the count"),
        items
      ]
    }
    default:
      return ["delete", path]
  }
}

const attempt = <A>(evaluate: () => A): Result.Result<A, OperationError> => {
  try {
    return Result.succeed(evaluate())
  } catch (error) {
    if (error instanceof OperationError) return Result.fail(error)
    if (error instanceof NotJson) return Result.fail(malformed(0, error.message, error.path))
    throw error
  }
}

const decodeAll = (value: unknown): ReadonlyArray<Operation> => {
  if (!Array.isArray(value)) throw malformed(0, "the operations are not an array")
  return (value as ReadonlyArray<unknown>).map((item, index) => {
    try {
      return decodeOperation(item, index)
    } catch (error) {
      throw error instanceof NotJson ? malformed(index, error.message, error.path) : error
    }
  })
}

/** Operations from elsewhere, as detached copies: their shape, paths and JSON are checked; whether they fit is for `apply`. */
export const decodeOperations = (value: unknown): Result.Result<ReadonlyArray<Operation>, OperationError> =>
  attempt(() => decodeAll(value))

/** Applies operations from elsewhere. A bad one gives its place and why; the document is then unchanged. */
export const applyChecked = (value: JsonValue, operations: unknown): Result.Result<JsonValue, OperationError> =>
  attempt(() => apply(value, decodeAll(operations)))
