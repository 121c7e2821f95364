/**
 * Errors of the HTTP API: one shape for all of them, with a stable code, and a status that follows from the code alone.
 *
 * The code says what happened; the message is one sentence for people; `data` has what a program can act on.
 */
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"

/** The status of each code. */
export const statusOfCode = {
  /** The request is malformed: no JSON, a parameter that is none, a cursor that no page gave. */
  invalid_request: 400,
  /** No token, or none that is valid. */
  unauthorized: 401,
  /** The token does not allow it; a host or an origin that is not allowed. */
  forbidden: 403,
  /** No such route, session, message, interaction, input or file. */
  not_found: 404,
  method_not_allowed: 405,
  /** What was asked for contradicts what is there: a busy session, one in use by another process, an id that is taken. */
  conflict: 409,
  /** The interaction was settled before; `data.outcome` says how. */
  already_settled: 409,
  too_large: 413,
  /** The body is no JSON. */
  unsupported_media_type: 415,
  /** A value is not what the route takes; `data.issues` says where and what was expected. */
  invalid_arguments: 422,
  /** Too many requests, connections or failed authentications; `Retry-After` says when to come back. */
  overloaded: 429,
  /** A defect of Bezel; `data.incident` finds it in the server's log. */
  internal: 500,
  /** This server does not have the feature. */
  unsupported: 501,
  /** What should answer does not, at the moment. */
  unavailable: 503,
  timeout: 504
} as const

export type ApiErrorCode = keyof typeof statusOfCode

export const ApiErrorCode = Schema.Literals(
  Object.keys(statusOfCode) as [ApiErrorCode, ...Array<ApiErrorCode>]
).annotate({ identifier: "ErrorCode" })

/** The body of every answer that is an error. */
export const ApiErrorBody = Schema.Struct({
  error: Schema.Struct({
    code: ApiErrorCode,
    message: Schema.String,
    data: Schema.optionalKey(Schema.Json)
  })
}).annotate({ identifier: "Error", description: "What went wrong: a stable code, and a sentence for people." })
export interface ApiErrorBody extends Schema.Schema.Type<typeof ApiErrorBody> {}

const withStatus = (status: number) => ApiErrorBody.pipe(HttpApiSchema.status(status))

/** Every route may answer with these. */
export const apiErrors = [400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 501, 503, 504].map(withStatus)
