/**
 * The JSON side of a schema, compiled once: what a value becomes on the wire, and whether it becomes anything at all.
 *
 * Both directions are synchronous. What `encode` gives is strict JSON, checked; a value that cannot be that fails.
 */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import { isJsonValue, JsonValue as JsonValueSchema } from "../json/index.ts"
import type { JsonValue } from "../json/index.ts"
import type { AnyCodec } from "./contract.ts"
import { faults, renderPath } from "./error.ts"

export interface JsonCodec {
  readonly decode: (json: unknown) => Exit.Exit<unknown, Schema.SchemaError>
  readonly encode: (value: unknown) => Exit.Exit<JsonValue, Schema.SchemaError>
  /** Whether decoded and encoded form are the same JSON, so that operations on one are operations on the other. */
  readonly plain: boolean
}

const compiled = new WeakMap<AnyCodec, JsonCodec>()

export const jsonCodec = (schema: AnyCodec): JsonCodec => {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const json: AnyCodec = Schema.toCodecJson(schema)
  const decode = Schema.decodeUnknownExit(json, { errors: "all" })
  const encode = Schema.encodeUnknownExit(json)
  const isMade = isMadeOfLeaves(schema.ast)
  const codec: JsonCodec = {
    decode,
    encode: (value) => {
      const exit = encode(value)
      if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
      return isMade || isJsonValue(exit.value)
        // Erasure: what is made of leaves is JSON by its schema.
        ? Exit.succeed(exit.value as JsonValue)
        : Exit.fail(new Schema.SchemaError(new SchemaIssue.InvalidType(Schema.Json.ast)))
    },
    plain: isPlain(schema.ast, new Set())
  }
  compiled.set(schema, codec)
  return codec
}

/** The issue behind a failed exit; a defect of a schema's own code counts as one, without its words. */
export const issueOf = (exit: Exit.Failure<unknown, Schema.SchemaError>): SchemaIssue.Issue => {
  for (const reason of exit.cause.reasons) if (reason._tag === "Fail") return reason.error.issue
  return new SchemaIssue.InvalidValue()
}

/** The first fault in words that hold no value: `at "name" a string was expected`. */
export const explain = (exit: Exit.Failure<unknown, Schema.SchemaError>): string => {
  const fault = faults(issueOf(exit))[0]
  if (fault === undefined) return "its schema refuses it"
  const at = renderPath(fault.path)
  return `${at === "" ? "" : `at ${at} `}its schema expects ${fault.expected}`
}

/** Of a leaf, whether it is the same JSON encoded and decoded; `null` of what has parts. */
const isPlainLeaf = (ast: SchemaAST.AST): boolean | null => {
  if (ast.encoding !== undefined) return false
  switch (ast._tag) {
    case "Null":
    case "String":
    case "Boolean":
    case "TemplateLiteral":
      return true
    case "Number":
      // One that may be NaN or infinite is text then.
      return Schema.toCodecJson(Schema.make(ast)).ast.encoding === undefined
    case "Literal":
      return typeof ast.literal !== "bigint"
    default:
      return null
  }
}

/**
 * Whether encoding makes every object and array anew, of leaves that are JSON, so that the result need not be looked at
 * again. Not where the keys are the value's own, nor where it can be of any depth; and a struct without fields takes anything
 * as it is.
 */
const isMadeOfLeaves = (ast: SchemaAST.AST): boolean => {
  const leaf = isPlainLeaf(ast)
  if (leaf !== null) return leaf
  switch (ast._tag) {
    case "Arrays":
      return ast.elements.every(isMadeOfLeaves) && ast.rest.every(isMadeOfLeaves)
    case "Objects":
      return ast.propertySignatures.length > 0 && ast.indexSignatures.length === 0 &&
        ast.propertySignatures.every(({ type }) => isMadeOfLeaves(type))
    case "Union":
      return ast.types.every(isMadeOfLeaves)
    default:
      return false
  }
}

const isPlain = (ast: SchemaAST.AST, seen: Set<SchemaAST.AST>): boolean => {
  if (seen.has(ast)) return true
  seen.add(ast)
  const leaf = isPlainLeaf(ast)
  if (leaf !== null) return leaf
  switch (ast._tag) {
    case "Declaration":
      return ast === Schema.Json.ast || ast === JsonValueSchema.ast
    case "Arrays":
      return ast.elements.every((element) => isPlain(element, seen)) && ast.rest.every((rest) => isPlain(rest, seen))
    case "Objects":
      return ast.propertySignatures.every((property) => isPlain(property.type, seen)) &&
        ast.indexSignatures.every((index) => isPlain(index.type, seen))
    case "Union":
      return ast.types.every((type) => isPlain(type, seen))
    case "Suspend":
      return isPlain(ast.thunk(), seen)
    default:
      return false
  }
}
