/**
 * The session facet of commands: finds them, and sends one to a conversation with its arguments put in.
 *
 * The agent and the model that a command names are those of the turn that answers it; the conversation keeps its own.
 */
import type { CommandDefinition, Defined, SessionContext } from "@bezel/core/host"
import { parseModelRef } from "@bezel/core/model"
import { AppPaths, projectFolders } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Agents } from "../agents/contract.ts"
import {
  type CommandCall,
  CommandError,
  type CommandInfo,
  type CommandsFound,
  CommandsOptions,
  type ExpandedCommand,
  PromptCommandList,
  PromptCommands,
  type PromptCommandsShape
} from "./contract.ts"
import { expandTemplate, hasPlaces } from "./expand.ts"
import { commandName, findCommands, type PromptCommand } from "./find.ts"

type Context = Pick<SessionContext, "options" | "location" | "session" | "provide" | "find" | "command">

type CommandMap = ReadonlyMap<string, PromptCommand>

const contributed = ({ definition, name, plugin }: Defined<CommandDefinition>): PromptCommand => ({
  name,
  description: definition.description,
  argument: definition.argument ?? (hasPlaces(definition.template) ? "[ARGUMENTS]" : null),
  agent: definition.agent ?? null,
  model: definition.model ?? null,
  template: definition.template,
  file: `plugin ${plugin}`,
  source: "plugin"
})

/** By name in order; what the user and the project have stands before what a plugin contributes under the same name. */
const withContributed = (all: ReadonlyArray<Defined<CommandDefinition>>, files: CommandMap): CommandMap =>
  new Map(
    [...all.filter(({ name }) => commandName.test(name)).map(contributed), ...files.values()]
      .map((command) => [command.name, command] as const)
      .sort(([left], [right]) => left < right ? -1 : 1)
  )

const infoOf = ({ agent, argument, description, file, model, name, source }: PromptCommand): CommandInfo => ({
  name,
  description,
  argument,
  agent,
  model,
  file,
  source
})

/** What a prompt says of it. */
export const configFor = ({ agent, model }: Pick<ExpandedCommand, "agent" | "model">) =>
  agent === null && model === null
    ? {}
    : { config: { ...(agent === null ? {} : { agent }), ...(model === null ? {} : { model }) } }

const makeCommands = (
  ctx: Pick<Context, "session" | "find">,
  current: Effect.Effect<CommandMap>,
  problems: CommandsFound["problems"]
): PromptCommandsShape => {
  const expand = Effect.fn("commands.expand")(function*(name: string, args: string) {
    const commands = yield* current
    const command = commands.get(name)
    if (command === undefined) {
      const names = [...commands.keys()].join(", ")
      return yield* new CommandError({
        code: "unknown_command",
        message: `There is no command /${name.slice(0, 80)} here${names === "" ? "" : `; there are ${names}`}.`
      })
    }
    const invalid = ({ message }: { readonly message: string }) =>
      new CommandError({ code: "invalid_command", message: `The command /${name} (${command.file}): ${message}` })
    const agents = yield* ctx.find(Agents)
    if (command.agent !== null && agents !== null) {
      yield* Effect.mapError(agents.get(command.agent), invalid)
    }
    const model = command.model === null ? null : parseModelRef(command.model)
    if (model !== null && "error" in model) return yield* invalid({ message: model.error })
    return {
      text: expandTemplate(command.template, args.trim()),
      agent: command.agent,
      model
    } satisfies ExpandedCommand
  })

  const run = Effect.fn("commands.run")(function*(call: CommandCall) {
    const { agent, model, text } = yield* expand(call.name, call.arguments)
    const { requestID, sessionID, whenBusy } = call
    const sent = ctx.session.prompt({
      sessionID,
      prompt: { text, written: true },
      ...configFor({ agent, model }),
      ...(whenBusy === undefined ? {} : { whenBusy }),
      ...(requestID === undefined ? {} : { requestID })
    })
    return yield* Effect.mapError(sent, ({ message }) => new CommandError({ code: "refused", message }))
  })

  return {
    found: Effect.map(current, (commands) => ({ commands: [...commands.values()].map(infoOf), problems })),
    expand,
    run
  }
}

/** The facet for session hosts. */
export const session = Effect.fn("commands/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(CommandsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const configDirectory = options.configDirectory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.config)), AppPaths.layer))
  const folders = options.trusted === true ? yield* projectFolders(ctx.location.directory) : []
  const { commands, problems } = yield* findCommands(configDirectory, folders)
  yield* Effect.forEach(problems, (problem) => Effect.logWarning(problem), { discard: true })
  const shape = makeCommands(ctx, Effect.map(ctx.command.list, (all) => withContributed(all, commands)), problems)
  yield* ctx.provide(PromptCommands, shape)
  yield* ctx.provide(PromptCommandList, { list: () => shape.found, run: shape.run })
})
