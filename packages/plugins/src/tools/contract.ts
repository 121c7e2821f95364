/**
 * What the built-in tools leave in a result's `details`, for renderers and machines. The model never sees these.
 *
 * Paths are real absolute paths. A diff is unified, with three lines of context, or `null` where it would be too long
 * or the content is no text.
 */
import * as Schema from "effect/Schema"

/**
 * Names of the built-in tools; the `access` of each one's permission is its name, of `apply_patch` it is `edit` or `write`, of the
 * tools for jobs it is `job`.
 */
export const toolNames = [
  "read",
  "write",
  "edit",
  "apply_patch",
  "bash",
  "job_output",
  "job_stop",
  "search",
  "list"
] as const

export type ReadDetails = typeof ReadDetails.Type
export const ReadDetails = Schema.Struct({
  path: Schema.String,
  kind: Schema.Literals(["text", "image", "notebook", "pdf", "binary", "empty"]),
  /** Number of the first line shown, from 1; `0` if none is. */
  firstLine: Schema.Int,
  lines: Schema.Int,
  /** Whether more follows what is shown. */
  more: Schema.Boolean
})

export type WriteDetails = typeof WriteDetails.Type
export const WriteDetails = Schema.Struct({
  path: Schema.String,
  created: Schema.Boolean,
  bytes: Schema.Int,
  diff: Schema.NullOr(Schema.String)
})

export type EditDetails = typeof EditDetails.Type
export const EditDetails = Schema.Struct({
  path: Schema.String,
  replacements: Schema.Int,
  /** Line of the first replacement, from 1. */
  firstLine: Schema.Int,
  diff: Schema.NullOr(Schema.String)
})

export type ApplyPatchDetails = typeof ApplyPatchDetails.Type
export const ApplyPatchDetails = Schema.Struct({
  files: Schema.Array(
    Schema.Struct({ path: Schema.String, change: Schema.Literals(["added", "updated", "deleted"]) })
  ),
  diff: Schema.NullOr(Schema.String)
})

export type BashDetails = typeof BashDetails.Type
export const BashDetails = Schema.Struct({
  command: Schema.String,
  /** Where it ran, and where the next command runs unless it says otherwise. */
  directory: Schema.String,
  nextDirectory: Schema.String,
  description: Schema.NullOr(Schema.String),
  /** `null` if the shell was ended by a signal or by the time limit. */
  exitCode: Schema.NullOr(Schema.Int),
  signal: Schema.NullOr(Schema.String),
  timedOut: Schema.Boolean,
  durationMs: Schema.Int,
  /** Processes that the command left running in the background. */
  background: Schema.Array(Schema.Struct({ pid: Schema.Int, command: Schema.String }))
})

/** Of a command that was started in the background, and of what is asked about one. */
export type JobDetails = typeof JobDetails.Type
export const JobDetails = Schema.Struct({
  job: Schema.String,
  command: Schema.String,
  state: Schema.Literals(["waiting", "running", "exited", "stopped", "failed", "unknown"]),
  exitCode: Schema.NullOr(Schema.Int)
})

/** A job's part of the view. */
export const JobStatus = Schema.Struct({
  /** Program and arguments; the line that was given is the last. */
  command: Schema.Array(Schema.String),
  stage: Schema.String,
  output: Schema.String
})

export type SearchDetails = typeof SearchDetails.Type
export const SearchDetails = Schema.Struct({
  pattern: Schema.String,
  path: Schema.String,
  matches: Schema.Int,
  files: Schema.Int,
  /** Whether there are more matches than are shown. */
  more: Schema.Boolean,
  /** Files and directories that were left out because git ignores them. */
  ignored: Schema.Int,
  engine: Schema.Literals(["ripgrep", "built-in"])
})

export type ListDetails = typeof ListDetails.Type
export const ListDetails = Schema.Struct({
  path: Schema.String,
  entries: Schema.Int,
  more: Schema.Boolean,
  ignored: Schema.Int
})

/** Options of the plugin in the manifest. */
export type ToolsOptions = typeof ToolsOptions.Type
export const ToolsOptions = Schema.Struct({
  /** How long a command may run when the call does not say; default 120. */
  bashTimeoutSeconds: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  /** The longest time that a call may ask for; default 3,600. */
  bashMaxTimeoutSeconds: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})
