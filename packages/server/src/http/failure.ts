/**
 * Failures of requests: what a handler fails with, and what the errors of sessions, hosts and services mean to a client.
 *
 * A failure is a code and a sentence. A defect becomes `internal` with an incident id under which the log explains it; no
 * cause and no stack leaves the server.
 */
import type { HarnessError } from "@bezel/core/harness"
import type { LocationError } from "@bezel/core/host"
import type { LocationUnavailable } from "@bezel/core/location"
import { type Fault, faults, renderPath, type ServiceError } from "@bezel/core/service"
import type {
  InvalidCursor,
  InvalidExport,
  OpenError,
  SessionExists,
  UnknownMessage,
  UnknownSession
} from "@bezel/core/session"
import type { SessionInUse, StorageError } from "@bezel/core/storage"
import { type ApiErrorBody, type ApiErrorCode, statusOfCode } from "@bezel/sdk/api"
import * as Data from "effect/Data"
import type * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"

export class ApiFailure extends Data.TaggedError("ApiFailure")<{
  readonly code: ApiErrorCode
  readonly message: string
  readonly data?: Schema.Json
  readonly headers?: { readonly [name: string]: string }
}> {
  get status(): number {
    return statusOfCode[this.code]
  }

  get body(): ApiErrorBody {
    const { code, data, message } = this
    return { error: { code, message, ...(data === undefined ? {} : { data }) } }
  }
}

export const failure = (code: ApiErrorCode, message: string, data?: Schema.Json): ApiFailure =>
  new ApiFailure({ code, message, ...(data === undefined ? {} : { data }) })

/** A value that its schema refuses, with every place where it does; never with what was found there. */
export const refused = (code: ApiErrorCode, what: string, issue: SchemaIssue.Issue): ApiFailure => {
  const all: ReadonlyArray<Fault> = faults(issue)
  const first = all[0]
  const at = first === undefined ? "" : renderPath(first.path)
  return failure(code, `${what}${at === "" ? "" : ` at ${at}`}: expected ${first?.expected ?? "another form"}.`, {
    path: at,
    issues: all.slice(0, 16).map(({ expected, path }) => ({ path: renderPath(path), expected }))
  })
}

/** Everything that what the API stands on can fail with. */
export type Refusal =
  | ApiFailure
  | HarnessError
  | InvalidCursor
  | InvalidExport
  | LocationError
  | LocationUnavailable
  | OpenError
  | ServiceError
  | SessionExists
  | SessionInUse
  | StorageError
  | UnknownMessage
  | UnknownSession

const harnessCodes: { readonly [Code in HarnessError["code"]]: ApiErrorCode } = {
  nested_commit: "internal",
  read_after_write: "internal",
  draft_revoked: "internal",
  stale_invocation: "conflict",
  stale_definition: "conflict",
  not_permitted: "forbidden",
  duplicate: "conflict",
  not_found: "not_found",
  busy: "conflict",
  invalid: "invalid_arguments",
  faulted: "unavailable",
  closed: "unavailable"
}

const serviceCodes: { readonly [Code in ServiceError["code"]]: ApiErrorCode } = {
  cancelled: "unavailable",
  disconnected: "unavailable",
  unavailable: "unavailable",
  unknown_service: "unsupported",
  unknown_member: "unsupported",
  invalid_arguments: "invalid_arguments",
  invalid_result: "internal",
  stale_reference: "not_found",
  unauthorized: "forbidden",
  timeout: "timeout",
  overloaded: "overloaded",
  internal: "internal"
}

/** A message of more bytes than a connection takes: no use in trying again. */
const isTooLarge = ({ code, data }: ServiceError): boolean =>
  code === "overloaded" && typeof data === "object" && data !== null && "maxBytes" in data

/** A message as a sentence of its own. */
const sentence = (message: string): string => {
  const text = message.slice(0, 1).toUpperCase() + message.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}

export const toFailure = (error: Refusal): ApiFailure => {
  switch (error._tag) {
    case "ApiFailure":
      return error
    case "UnknownSession":
      return failure("not_found", `There is no session ${JSON.stringify(error.sessionID.slice(0, 200))}.`)
    case "UnknownMessage":
      return failure("not_found", sentence(error.message))
    case "InvalidCursor":
      return failure("invalid_request", sentence(error.message))
    case "InvalidExport":
      return failure("invalid_arguments", sentence(error.message))
    case "SessionExists":
    case "SessionLocationMismatch":
      return failure("conflict", sentence(error.message))
    case "SessionInUse":
      return failure("conflict", `The session ${error.sessionID} is in use by process ${error.holder.pid}.`)
    case "LocationUnavailable":
      return failure("invalid_arguments", sentence(error.message), { path: "location" })
    case "HarnessError":
      return failure(harnessCodes[error.code], sentence(error.message))
    case "ServiceError":
      return failure(isTooLarge(error) ? "too_large" : serviceCodes[error.code], sentence(error.message), error.data)
    case "HostFailed":
    case "SettingsError":
    case "StorageError":
      return failure("unavailable", sentence(error.message))
  }
}
