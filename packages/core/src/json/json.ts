/**
 * Strict JSON: what may cross a process boundary, enter storage or be replicated. No `undefined`, no `NaN`, no
 * class instances, no functions. A value of this type survives `JSON.parse(JSON.stringify(value))` unchanged.
 *
 * The checks here walk a value once and stop at a depth of `maxDepth`, so that nothing anyone sends can exhaust the
 * stack. They never call code of the value: an accessor or a `toJSON` is refused, not run.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

export type JsonValue = null | boolean | number | string | JsonArray | JsonObject

export type JsonArray = ReadonlyArray<JsonValue>

export interface JsonObject {
  readonly [key: string]: JsonValue
}

export type PathSegment = string | number

/** From the root of a document to a place in it. */
export type Path = ReadonlyArray<PathSegment>

/** Containers inside containers, at most. Deeper values are refused by every check of this folder. */
export const maxDepth = 1_000

/** A value that is not strict JSON. `path` leads to the offending part; `message` names it. */
export class NotJson extends Schema.TaggedError<NotJson>()("NotJson", {
  message: Schema.String,
  path: Schema.Array(Schema.Union([Schema.String, Schema.Number]))
}) {}

const plainKey = /^[A-Za-z_$][\w$]*$/

/** A path for people: `turn.tools[0].output`; keys that are not names are quoted; the root is `(root)`. */
export const formatPath = (path: Path): string => {
  if (path.length === 0) return "(root)"
  const shown = path.length > 40 ? path.slice(0, 40) : path
  let text = ""
  for (const segment of shown) {
    if (typeof segment === "number") text += `[${segment}]`
    else if (!plainKey.test(segment)) {
      text += `[${JSON.stringify(segment.length > 80 ? segment.slice(0, 80) : segment)}]`
    } else text += text === "" ? segment : `.${segment}`
  }
  return shown === path ? text : `${text}…`
}

const describe = (value: unknown): string => {
  switch (typeof value) {
    case "undefined":
      return "undefined"
    case "number":
      return String(value)
    case "object": {
      const name: unknown = value?.constructor?.name
      return typeof name === "string" && name !== ""
        ? `an instance of ${name}`
        : "an object with a prototype of its own"
    }
    default:
      return `a ${typeof value}`
  }
}

const refuse = (path: Path, what: string): NotJson =>
  new NotJson({ message: `${formatPath(path)} is ${what}, which is not a JSON value`, path: [...path] })

const isPlainObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** A plain data member, also for the key `__proto__`, which assignment would treat otherwise. */
export const setMember = (target: Record<string, JsonValue>, key: string, value: JsonValue): void => {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
  } else target[key] = value
}

class Copier {
  readonly path: Array<PathSegment>
  /** The containers that are being copied now, to find cycles. */
  readonly open: Array<object> = []

  constructor(path: Path) {
    this.path = [...path]
  }

  copy(value: unknown): JsonValue {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value
      case "number":
        if (!Number.isFinite(value)) throw refuse(this.path, describe(value))
        // JSON has no negative zero.
        return value === 0 ? 0 : value
      case "object":
        if (value === null) return null
        return Array.isArray(value) ? this.array(value) : this.object(value)
      default:
        throw refuse(this.path, describe(value))
    }
  }

  enter(value: object): void {
    if (this.open.includes(value)) throw refuse(this.path, "a reference to a container of itself")
    if (this.open.length >= maxDepth) {
      throw new NotJson({
        message: `${formatPath(this.path)} is nested deeper than ${maxDepth} levels`,
        path: [...this.path]
      })
    }
    this.open.push(value)
  }

  array(value: ReadonlyArray<unknown>): JsonArray {
    this.enter(value)
    const copy: Array<JsonValue> = []
    for (let index = 0; index < value.length; index++) {
      this.path.push(index)
      if (!Object.hasOwn(value, index)) throw refuse(this.path, "a hole in an array")
      copy.push(this.copy(value[index]))
      this.path.pop()
    }
    this.open.pop()
    return copy
  }

  object(value: object): JsonObject {
    if (!isPlainObject(value)) throw refuse(this.path, describe(value))
    this.enter(value)
    const copy: Record<string, JsonValue> = {}
    for (const key of Reflect.ownKeys(value)) {
      if (typeof key === "symbol") throw refuse(this.path, "an object with a symbol as a key")
      this.path.push(key)
      const property = Object.getOwnPropertyDescriptor(value, key)
      if (property === undefined || !("value" in property) || property.enumerable !== true) {
        throw refuse(this.path, "an accessor or a hidden member")
      }
      setMember(copy, key, this.copy(property.value))
      this.path.pop()
    }
    this.open.pop()
    return copy
  }
}

/** A detached copy of a value, checked to be strict JSON; throws `NotJson`. `at` is where the value goes, for the message. */
export const copyJson = (value: unknown, at: Path = []): JsonValue => {
  // Most of what is stored is a leaf.
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value
  return new Copier(at).copy(value)
}

/** A detached copy of a value as strict JSON, or why it is none. */
export const toJson = (value: unknown): Result.Result<JsonValue, NotJson> => {
  try {
    return Result.succeed(copyJson(value))
  } catch (error) {
    if (error instanceof NotJson) return Result.fail(error)
    throw error
  }
}

const isJson = (value: unknown, depth: number): value is JsonValue => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      return Number.isFinite(value)
    case "object":
      break
    default:
      return false
  }
  if (value === null) return true
  // A cycle ends here too.
  if (depth >= maxDepth) return false
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) if (!isJson(value[index], depth + 1)) return false
    return true
  }
  if (!isPlainObject(value)) return false
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (typeof key === "symbol" || property === undefined || !("value" in property) || property.enumerable !== true) {
      return false
    }
    if (!isJson(property.value, depth + 1)) return false
  }
  return true
}

const isFiniteJson = (value: unknown, depth: number): boolean => {
  if (typeof value === "number") return Number.isFinite(value)
  if (typeof value !== "object" || value === null) return true
  if (depth >= maxDepth) return false
  for (const key in value) {
    if (!isFiniteJson((value as { readonly [key: string]: unknown })[key], depth + 1)) return false
  }
  return true
}

/**
 * Whether what `JSON.parse` has made of a text is strict JSON: it makes numbers that are not finite of ones that are too
 * large, and any depth. Quicker than `isJsonValue`, and true of other values that are no JSON.
 */
export const isParsedJson = (parsed: unknown): parsed is JsonValue => isFiniteJson(parsed, 0)

/** Whether a value is strict JSON as it is, at most `maxDepth` deep. */
export const isJsonValue = (value: unknown): value is JsonValue => isJson(value, 0)

/** Whether a JSON value is an object (not an array, not `null`). */
export const isJsonObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Any strict JSON value, as a schema. Decodes to the value itself. */
export const JsonValue: Schema.Codec<JsonValue> = Schema.declare(isJsonValue, {
  expected: "a JSON value"
})

/** Text as strict JSON; `at` names where the text comes from. */
export const decodeJson = (text: string, at = "the text"): Result.Result<JsonValue, NotJson> => {
  try {
    return toJson(JSON.parse(text))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return Result.fail(new NotJson({ message: `${at} is not JSON: ${why}`, path: [] }))
  }
}
