/**
 * The arguments of a tool, as a model is told of them and as a call of it is read.
 *
 * Both come from the tool's `input` schema: its JSON form (draft 2020-12, an object, definitions inlined unless they
 * are recursive), and a decoder whose complaints are written for a model: at which path, what was wrong, and what is
 * allowed.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { JsonObject, JsonValue } from "../json/index.ts"
import type { Tool } from "./tool.ts"

/** The arguments of one tool. */
export interface ToolArguments {
  /** JSON Schema of the arguments: an object schema. */
  readonly inputSchema: JsonObject
  /** Decoded arguments with their strict JSON form, or why they are refused. Never throws. */
  readonly decode: (
    name: string,
    args: JsonValue
  ) => { readonly input: unknown; readonly args: JsonValue } | { readonly problem: string }
}

/** Fails with one sentence if the schema cannot be told to a model: not an object, or without a JSON form. */
export const toolArguments = (tool: Tool): Result.Result<ToolArguments, string> => {
  const key = tool.inputSchema ?? tool.input
  const known = compiled.get(key)
  if (known !== undefined) return known
  const made = compile(tool)
  compiled.set(key, made)
  return made
}

// A registry is rebuilt often, its schemas seldom change.
const compiled = new WeakMap<object, Result.Result<ToolArguments, string>>()

const compile = (tool: Tool): Result.Result<ToolArguments, string> => {
  const schema = Result.try({
    try: () =>
      tool.inputSchema ??
        withoutParameters(inline(Schema.toJsonSchemaDocument(tool.input, { onExcessProperty: "error" }))),
    catch: (cause) => `its input schema has no JSON form: ${sentence(cause)}`
  })
  if (Result.isFailure(schema)) return Result.fail(schema.failure)
  if (schema.success.type !== "object") return Result.fail("its input schema does not describe an object")
  const inputSchema = schema.success
  const codec = Schema.toCodecJson(tool.input)
  const decodeResult = Schema.decodeUnknownResult(codec, { errors: "all", onExcessProperty: "error" })
  const encodeResult = Schema.encodeUnknownResult(codec)
  const read = (args: JsonValue): Result.Result<{ readonly input: unknown; readonly encoded: unknown }, unknown> => {
    try {
      return Result.flatMap(
        decodeResult(args),
        (input) => Result.map(encodeResult(input), (encoded) => ({ input, encoded }))
      )
    } catch (defect) {
      return Result.fail(defect)
    }
  }
  const decode = (name: string, args: JsonValue) => {
    if (args === null || typeof args !== "object" || Array.isArray(args)) {
      return { problem: problemOf(name, null, args, inputSchema) }
    }
    const first = read(args)
    // Many models write `null` for an optional parameter that they leave out.
    const done = Result.isSuccess(first) ? first : Result.orElse(read(withoutNulls(args)), () => first)
    if (Result.isFailure(done)) return { problem: problemOf(name, done.failure, args, inputSchema) }
    return { input: done.success.input, args: strict(done.success.encoded) }
  }
  return Result.succeed({
    inputSchema,
    decode: (name, args) => {
      try {
        return decode(name, args)
      } catch (defect) {
        return { problem: `The arguments of ${name} cannot be read: ${sentence(defect)}.` }
      }
    }
  })
}

const formatter = SchemaIssue.makeFormatterStandardSchemaV1()

const problemOf = (name: string, error: unknown, args: JsonValue, schema: JsonObject): string => {
  const allowed = `Its parameters are: ${parameters(schema)}.`
  if (args === null || typeof args !== "object" || Array.isArray(args)) {
    return `The arguments of ${name} must be a JSON object. ${allowed}`
  }
  if (!Schema.isSchemaError(error)) return `The arguments of ${name} are not valid: ${sentence(error)}. ${allowed}`
  const problems = formatter(error.issue).issues.slice(0, 8).map(({ message, path = [] }) => {
    const at = path.map((segment) => typeof segment === "object" ? segment.key : segment)
    const where = at.length === 0 ? "arguments" : at.map(String).join(".")
    if (message === "Expected no excess property") return `${where}: there is no such parameter`
    if (message === "Missing key") return `${where}: is required`
    return `${where}: ${lowerFirst(message)}, got ${shown(valueAt(args, at))}`
  })
  return `The arguments of ${name} are not valid. ${problems.join("; ")}. ${allowed}`
}

/** "path: string, offset?: integer": what a model needs to write the call again. */
const parameters = (schema: JsonObject): string => {
  const properties = asObject(schema.properties)
  const required = Array.isArray(schema.required) ? schema.required : []
  const shownParameters = Object.keys(properties).map((key) =>
    `${key}${required.includes(key) ? "" : "?"}: ${typeName(asObject(properties[key]))}`
  )
  return shownParameters.length === 0 ? "none" : shownParameters.join(", ")
}

const typeName = (schema: JsonObject): string => {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map((member) => typeName(asObject(member))).join(" | ")
  if (schema.type === "array") return `array of ${typeName(asObject(schema.items))}`
  return typeof schema.type === "string" ? schema.type : "any"
}

/** A struct without fields takes anything but null in Effect; as arguments it means an object without members. */
const withoutParameters = (schema: JsonObject): JsonObject =>
  JSON.stringify(schema) === '{"not":{"type":"null"}}'
    ? { type: "object", properties: {}, additionalProperties: false }
    : schema

/** Puts definitions in place of references to them, except where that would never end. */
const inline = (document: { readonly schema: object; readonly definitions: object }): JsonObject => {
  const definitions = asObject(strict(document.definitions))
  const recursive = new Set<string>()
  const nameOf = (value: JsonObject): string | null =>
    typeof value.$ref === "string" && value.$ref.startsWith("#/$defs/")
      ? value.$ref.slice("#/$defs/".length).replaceAll("~1", "/").replaceAll("~0", "~")
      : null
  const walk = (value: JsonValue, open: ReadonlyArray<string>): JsonValue => {
    if (Array.isArray(value)) return value.map((element: JsonValue) => walk(element, open))
    if (value === null || typeof value !== "object") return value
    const name = nameOf(asObject(value))
    if (name !== null) {
      if (!open.includes(name)) return walk(definitions[name] ?? {}, [...open, name])
      recursive.add(name)
      return value
    }
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, walk(member, open)]))
  }
  const root = asObject(walk(strict(document.schema), []))
  return recursive.size === 0 ? root : { ...root, $defs: definitions }
}

const withoutNulls = (args: JsonValue): JsonValue =>
  args !== null && typeof args === "object" && !Array.isArray(args)
    ? Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null))
    : args

const valueAt = (value: JsonValue, path: ReadonlyArray<PropertyKey>): JsonValue | undefined => {
  let current: JsonValue | undefined = value
  for (const key of path) {
    if (current === null || typeof current !== "object") return undefined
    const member: unknown = Object.hasOwn(current, key) ? Reflect.get(current, key) : undefined
    current = member === undefined ? undefined : strict(member)
  }
  return current
}

const shown = (value: JsonValue | undefined): string => {
  if (value === undefined) return "nothing"
  const text = JSON.stringify(value)
  return text.length <= 80 ? text : `${text.slice(0, 77).replace(/[\ud800-\udbff]$/, "")}…`
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

const sentence = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

const asObject = (value: JsonValue | undefined): JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : {}

const decodeJson = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

/** A strict JSON copy, without the members that are `undefined`. */
const strict = (value: unknown): JsonValue => decodeJson(JSON.stringify(value ?? null))
