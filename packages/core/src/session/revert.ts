/**
 * Taking back what a session has done: its conversation rewound, and the files that it changed put back.
 *
 * The core rewinds conversations and knows no files; a plugin that keeps track of those gives a `Reverter`, and the session
 * runtime asks it. Staging takes back a turn and all that came after it, clearing brings that back; either does all of it
 * or nothing.
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { HarnessError } from "../harness/index.ts"
import type { OpenSession } from "./open-session.ts"

/** One file, and what putting it back means. */
export const RevertedFile = Schema.Struct({
  /** The real absolute path. */
  path: Schema.String,
  /** `change`: other content or another mode; `create`: it had been deleted; `remove`: it had been made. */
  action: Schema.Literals(["change", "create", "remove"]),
  /** Unified, from what is there to what will be; `null` where the content is no text, too long or the same. */
  diff: Schema.NullOr(Schema.String)
})
export type RevertedFile = typeof RevertedFile.Type

/** A file that is not as the session left it, so that putting it back would destroy what somebody else did. */
export const RevertConflict = Schema.Struct({ path: Schema.String, reason: Schema.String })
export type RevertConflict = typeof RevertConflict.Type

export const RevertReport = Schema.Struct({
  /** `planned` was only looked at; `conflict` means that nothing was done, because of `conflicts`. */
  status: Schema.Literals(["planned", "conflict", "staged", "cleared"]),
  /** The prompt whose turn, with all after it, is taken back or brought back. */
  to: Schema.String,
  /** What that prompt said. */
  prompt: Schema.String,
  files: Schema.Array(RevertedFile),
  /** Files that are in the way; with `conflicts: "keep"`, those that were left as they are. */
  conflicts: Schema.Array(RevertConflict),
  /** What a person should know: what is not kept track of, and why. */
  notes: Schema.Array(Schema.String)
})
export interface RevertReport extends Schema.Schema.Type<typeof RevertReport> {}

const Conflicts = {
  /** Only says what would be done. */
  dryRun: Schema.optionalKey(Schema.Boolean),
  /** `refuse` (the default) does nothing at all while a file is in conflict; `keep` leaves such files as they are. */
  conflicts: Schema.optionalKey(Schema.Literals(["refuse", "keep"]))
}

export const StageRevertSchema = Schema.Struct({
  /** An entry of the main conversation; `last` is the newest turn. Its whole turn is taken back, from the prompt on. */
  to: Schema.String,
  ...Conflicts
})
export interface StageRevert extends Schema.Schema.Type<typeof StageRevertSchema> {}

export const ClearRevertSchema = Schema.Struct(Conflicts)
export interface ClearRevert extends Schema.Schema.Type<typeof ClearRevertSchema> {}

export interface SessionRevert {
  /** Takes back a turn and all that came after it. Fails with `busy` while a turn runs. */
  readonly stage: (session: OpenSession, request: StageRevert) => Effect.Effect<RevertReport, HarnessError>
  /** Brings back what was staged, as long as the conversation has not gone on since. */
  readonly clear: (session: OpenSession, request: ClearRevert) => Effect.Effect<RevertReport, HarnessError>
}
