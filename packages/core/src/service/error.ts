/**
 * Errors that services answer with, the same ones over every transport.
 *
 * A code is stable and for programs; the message is one plain sentence for people. What crosses the boundary never holds
 * a stack, a cause, a path of the host's disk or a value that was sent: a defect becomes `internal` with an incident id,
 * and the host's log has the rest under that id. Errors that a method declares are not these: they arrive as themselves.
 */
import * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import type { JsonValue } from "../json/index.ts"
import { allowedForms, named, typeName } from "./forms.ts"

/** Everything that can go wrong between a caller and a service, by its stable code. */
export const ServiceErrorCode = Schema.Literals([
  /** The invocation was interrupted on the far side. */
  "cancelled",
  /** The connection was lost, or is not there. Whether the host applied the call is not known. */
  "disconnected",
  /** Nobody provides the service at the moment. */
  "unavailable",
  /** The host knows no such service; one that is local to the host answers the same. */
  "unknown_service",
  "unknown_member",
  /** `data.path` says where, `data.issues` lists every fault. */
  "invalid_arguments",
  "invalid_result",
  /** The instance or reference that a handle points at has ended, and a successor is not it. */
  "stale_reference",
  "unauthorized",
  "timeout",
  "overloaded",
  /** A defect of the service; `data.incident` is the id under which the host's log explains it. */
  "internal"
])
export type ServiceErrorCode = typeof ServiceErrorCode.Type

/** A call or subscription failed at the boundary. Branch on `code`. */
export class ServiceError extends Schema.TaggedError<ServiceError>()("ServiceError", {
  code: ServiceErrorCode,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Json)
}) {}

/** One fault of a value: where, and what was expected there. Never what was found. */
export interface Fault {
  readonly path: ReadonlyArray<string | number>
  readonly expected: string
}

/** `options[0].label`, or an empty string for the value itself. */
export const renderPath = (path: ReadonlyArray<string | number>): string =>
  path.reduce<string>(
    (text, segment) =>
      typeof segment === "number"
        ? `${text}[${segment}]`
        : /^[A-Za-z_$][\w$]*$/.test(segment)
        ? text === "" ? segment : `${text}.${segment}`
        : `${text}[${JSON.stringify(segment)}]`,
    ""
  )

/** Every fault of a schema issue. The values that were found are left out: they may be secrets. */
export const faults = (issue: SchemaIssue.Issue): ReadonlyArray<Fault> => {
  const found: Array<Fault> = []
  walk(issue, [], found)
  return found
}

const walk = (issue: SchemaIssue.Issue, path: ReadonlyArray<string | number>, found: Array<Fault>): void => {
  switch (issue._tag) {
    case "Pointer":
      return walk(
        issue.issue,
        [...path, ...issue.path.map((segment) => typeof segment === "symbol" ? String(segment) : segment)],
        found
      )
    case "Filter":
      // A check's own inner issue says only "invalid value"; the check has the words.
      if (issue.issue._tag !== "InvalidValue") return walk(issue.issue, path, found)
      found.push({ path, expected: describe(issue.filter.annotations, "a value that its check accepts") })
      return
    case "Encoding":
      return walk(issue.issue, path, found)
    case "Composite":
      for (const inner of issue.issues) walk(inner, path, found)
      return
    case "AnyOf":
      if (issue.issues.length === 0) {
        found.push({ path, expected: allowedForms(issue.ast) })
        return
      }
      for (const inner of issue.issues) walk(inner, path, found)
      return
    case "MissingKey":
      found.push({ path, expected: "a value, it is missing" })
      return
    case "UnexpectedKey":
      found.push({ path, expected: "no member of this name" })
      return
    case "InvalidType":
      found.push({ path, expected: describe(issue.ast.annotations, typeName(issue.ast)) })
      return
    case "InvalidValue":
      found.push({ path, expected: "a valid value" })
      return
    case "OneOf":
      found.push({ path, expected: `exactly one of: ${allowedForms(issue.ast)}` })
      return
    case "Forbidden":
      found.push({ path, expected: "nothing here" })
      return
  }
}

const describe = (annotations: { readonly [key: string]: unknown } | undefined, otherwise: string): string =>
  named(annotations) ?? otherwise

/** The error for a value that its schema refuses, with the place of the first fault in the message. */
export const refusal = (
  code: "invalid_arguments" | "invalid_result",
  what: string,
  issue: SchemaIssue.Issue
): ServiceError => {
  const all = faults(issue)
  const first = all[0]
  const at = first === undefined ? "" : renderPath(first.path)
  const data: JsonValue = {
    path: at,
    issues: all.slice(0, 16).map((fault) => ({ path: renderPath(fault.path), expected: fault.expected }))
  }
  return new ServiceError({
    code,
    message: `${what}${at === "" ? "" : ` at ${at}`}: expected ${first?.expected ?? "another form"}.`,
    data
  })
}

/** For tests and switches: whether an unknown failure is a {@link ServiceError} with this code. */
export const isServiceError = (value: unknown, code?: ServiceErrorCode): value is ServiceError =>
  value instanceof ServiceError && (code === undefined || value.code === code)
