/** Sub-agents as others see them: what a running one shows, and what is left of it in the result's `details`. Strict JSON. */
import * as Schema from "effect/Schema"

/** `progress` of a call whose sub-agent works. */
export const SubagentProgress = Schema.Struct({
  /** The session in which it works. */
  sessionID: Schema.String,
  /** What it does now, on one line. */
  activity: Schema.String,
  /** Calls that it has results of. */
  calls: Schema.Int
})
export type SubagentProgress = typeof SubagentProgress.Type

/** Totals of a sub-agent's work, that of its own sub-agents included. Tokens; US dollars. */
export const SubagentUsage = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  cost: Schema.Finite
})
export type SubagentUsage = typeof SubagentUsage.Type

export const noUsage: SubagentUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }

/** The kind of task that a sub-agent in the background is, and how such a task shows in the view. */
export const backgroundKindName = "subagent.background"

export const SubagentStatus = Schema.Struct({
  sessionID: Schema.String,
  description: Schema.String,
  agent: Schema.String
})
export type SubagentStatus = typeof SubagentStatus.Type

/** `details` of a sub-agent's result. */
export const SubagentDetails = Schema.Struct({
  sessionID: Schema.String,
  description: Schema.String,
  agent: Schema.String,
  /** `background`: it goes on, and its answer comes as a notice. */
  status: Schema.Literals(["completed", "unanswered", "background"]),
  /** Why there is no answer: `terminated`, `aborted`, `failed` or `stale`. */
  reason: Schema.NullOr(Schema.String),
  calls: Schema.Int,
  usage: SubagentUsage
})
export type SubagentDetails = typeof SubagentDetails.Type

/** Options of the plugin in the manifest. */
export const SubagentOptions = Schema.Struct({
  /** How deep sub-agents may nest; default 3. */
  maxDepth: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)))
})
export type SubagentOptions = typeof SubagentOptions.Type
