/**
 * What the kernel says about plugins: their state, and how they and their host fail.
 */
import * as Cause from "effect/Cause"
import * as Schema from "effect/Schema"

/** Where in its life a plugin is, or where it failed. */
export const PluginPhase = Schema.Literals(["load", "setup", "bind", "activate", "dispose"])
export type PluginPhase = typeof PluginPhase.Type

export const PluginStatus = Schema.Struct({
  id: Schema.String,
  version: Schema.NullOr(Schema.String),
  /** `absent`: it has no facet for this host. `closed`: it has been taken out by its host's closing. */
  state: Schema.Literals(["starting", "loaded", "absent", "failed", "closed"]),
  /** The phase that it is in or that it failed in. */
  phase: PluginPhase,
  required: Schema.Boolean,
  /** One plain sentence, if it failed. */
  error: Schema.NullOr(Schema.String)
})
/** One plugin as a host sees it. */
export type PluginStatus = typeof PluginStatus.Type

/** One plugin's failure, with all that is known of it. */
export interface PluginFailure {
  readonly plugin: string
  readonly phase: PluginPhase
  /** One plain sentence that names plugin, host and phase. */
  readonly message: string
  readonly cause: Cause.Cause<unknown>
}

/** A required plugin failed, so the host did not start. Everything that had started has been closed again. */
export class HostFailed extends Schema.TaggedError<HostFailed>()("HostFailed", {
  host: Schema.String,
  message: Schema.String,
  failures: Schema.Array(Schema.Struct({ plugin: Schema.String, phase: PluginPhase, message: Schema.String }))
}) {}

/**
 * A reload did not take place, or only in part: `message` says whose fault it was and which code runs now. Whatever had been
 * loaded before runs, whole, unless the message says otherwise.
 */
export class ReloadFailed extends Schema.TaggedError<ReloadFailed>()("ReloadFailed", {
  host: Schema.String,
  message: Schema.String,
  failures: Schema.Array(Schema.Struct({ plugin: Schema.String, phase: PluginPhase, message: Schema.String }))
}) {}

/** A facet used its context after it had been closed. */
export class FacetClosed extends Schema.TaggedError<FacetClosed>()("FacetClosed", {
  plugin: Schema.String,
  message: Schema.String
}) {}

/** What a person reads of a cause: the messages of what failed, without stacks. */
export const causeMessage = (cause: Cause.Cause<unknown>): string => {
  const errors = Cause.prettyErrors(cause).map((error) => error.message).filter((message) => message.length > 0)
  return errors.length === 0 ? "it failed without saying why" : [...new Set(errors)].join("; ")
}
