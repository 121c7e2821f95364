/**
 * Commands as others see them: prompts with places for arguments, under a name that is written behind a slash.
 */
import type { ModelRef } from "@bezel/core/model"
import { LocalService, RemoteService } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export type CommandInfo = typeof CommandInfo.Type
export const CommandInfo = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  /** What it takes, for people: `[BRANCH]`; `null`: it has no place for arguments. */
  argument: Schema.NullOr(Schema.String),
  /** The agent and the model (`provider/model`) that its conversation goes on with; `null`: those that it has. */
  agent: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  /** The file, or which plugin it is from. */
  file: Schema.String,
  source: Schema.Literals(["user", "project", "plugin"])
})

/** The commands of a location by name, and what is wrong with those that are not among them, one sentence each. */
export type CommandsFound = typeof CommandsFound.Type
export const CommandsFound = Schema.Struct({
  commands: Schema.Array(CommandInfo),
  problems: Schema.Array(Schema.String)
})

/** There is no such command, it names what is not there, or the session did not take its prompt. */
export class CommandError extends Schema.TaggedError<CommandError>()("CommandError", {
  code: Schema.Literals(["unknown_command", "invalid_command", "refused"]),
  message: Schema.String
}) {}

/** A command with its arguments put in. */
export interface ExpandedCommand {
  readonly text: string
  readonly agent: string | null
  readonly model: ModelRef | null
}

export type CommandCall = typeof CommandCall.Type
export const CommandCall = Schema.Struct({
  sessionID: Schema.String,
  name: Schema.String,
  /** As they were typed. */
  arguments: Schema.String,
  whenBusy: Schema.optionalKey(Schema.Literals(["followUp", "steer", "reject"])),
  /** The same id is the same prompt. */
  requestID: Schema.optionalKey(Schema.String)
})

/** The commands of a location. Those of plugins come and go with them; the others do not change while it is up. */
export interface PromptCommandsShape {
  readonly found: Effect.Effect<CommandsFound>
  readonly expand: (name: string, args: string) => Effect.Effect<ExpandedCommand, CommandError>
  /** Expands a command and sends it to a session's main conversation; its agent and model are those of that turn alone. */
  readonly run: (call: CommandCall) => Effect.Effect<{ readonly inputID: string }, CommandError>
}

export const PromptCommands: LocalService<PromptCommandsShape> = LocalService.make("bezel.commands.local")

/** The same for clients. */
export class PromptCommandList extends RemoteService.make("bezel.commands")({
  methods: {
    list: { success: CommandsFound },
    run: { payload: CommandCall, success: Schema.Struct({ inputID: Schema.String }), error: CommandError }
  }
}) {}

/** Options of the plugin in the manifest. */
export type CommandsOptions = typeof CommandsOptions.Type
export const CommandsOptions = Schema.Struct({
  /** Where the user's `commands/` is; default: the config folder of this user. */
  configDirectory: Schema.optionalKey(Schema.String),
  /** The project is trusted, so `.bezel/commands/` in it counts; default: it does not. */
  trusted: Schema.optionalKey(Schema.Boolean)
})
