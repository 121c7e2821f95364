/**
 * What is wrong with the settings, for the person who wrote them.
 *
 * `message` is one line that stands by itself: file, line, the path inside the file, what was found and what would be
 * right. It never holds a value that came from `{env:…}` or `{file:…}`.
 */
import * as Schema from "effect/Schema"

export type SettingsErrorCode = typeof SettingsErrorCode.Type
export const SettingsErrorCode = Schema.Literals([
  /** The file is not JSON with comments. */
  "syntax",
  /** A name that no feature knows. */
  "unknown_key",
  /** A wrong type or a value that is not allowed. */
  "invalid_value",
  /** Something required is absent. */
  "missing_key",
  /** The file cannot be read. */
  "unreadable"
])

export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  code: SettingsErrorCode,
  /** Absolute path of the file, or `--set` for an override from the command line. */
  file: Schema.String,
  /** From 1; 0 where there are no lines (an override, an unreadable file). */
  line: Schema.Finite,
  /** Where in the document, dotted; empty for the document itself. */
  path: Schema.String,
  message: Schema.String
}) {}

/** A folder that Bezel needs cannot be made or written. */
export class AppPathsError extends Schema.TaggedError<AppPathsError>()("AppPathsError", {
  path: Schema.String,
  message: Schema.String
}) {}

/** The record of trusted folders cannot be read or written. */
export class TrustError extends Schema.TaggedError<TrustError>()("TrustError", {
  path: Schema.String,
  message: Schema.String
}) {}
