/**
 * Shell lines of a person: what they type behind `!` runs as it would in their own shell, and the model is told of it from the
 * next request on. Behind `!!` it is told to nobody.
 */
import { RemoteService } from "@bezel/core/service"
import * as Schema from "effect/Schema"

/** The kind of entry that a line leaves in the transcript, with `ShellLine` as its data. */
export const shellEntry = "shell.line"

export const ShellLine = Schema.Struct({
  command: Schema.String,
  /** `null`: a signal or the person ended it. */
  exitCode: Schema.NullOr(Schema.Int),
  /** Both outputs in their order; of long ones, both ends. */
  output: Schema.String,
  /** Characters that are left out in the middle. */
  omitted: Schema.Int
})
export type ShellLine = typeof ShellLine.Type

/** A line that runs, for whoever looks at the session. */
export const RunningLine = Schema.Struct({
  command: Schema.String,
  /** The end of what it has printed. */
  tail: Schema.String
})
export type RunningLine = typeof RunningLine.Type

/** The line was not run; the message says why. */
export class ShellError extends Schema.TaggedError<ShellError>()("ShellError", { message: Schema.String }) {}

/** Of each session. One line runs at a time. */
export class Shell extends RemoteService.make("bezel.shell")({
  state: { running: Schema.NullOr(RunningLine) },
  methods: {
    /** Runs a line to its end. Who stops waiting for it does not end it; `stop` does. */
    run: {
      payload: Schema.Struct({
        command: Schema.NonEmptyString.check(Schema.isMaxLength(32_768)),
        /** Whether the model gets to see it. Default: true. */
        shared: Schema.optionalKey(Schema.Boolean)
      }),
      success: ShellLine,
      error: ShellError
    },
    /** Ends the line that runs, with all that it started. */
    stop: {}
  }
}) {}
