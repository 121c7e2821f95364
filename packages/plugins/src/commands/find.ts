/**
 * Finds commands: markdown files in `commands/` of the user's config folder and in `.bezel/commands/` of a trusted project,
 * from its root down. The name is the file's; the front matter may have `description`, `argument`, `agent` and `model`, and
 * what is for other programs is ignored. The nearest of a name is used, and the others are told, as is what is broken.
 */
import { parseModelRef } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import {
  decodeHead,
  describeFault,
  lineOfMember,
  type Markdown,
  type MarkdownFault,
  readMarkdown
} from "../markdown/index.ts"
import type { CommandInfo } from "./contract.ts"
import { hasPlaces } from "./expand.ts"

/** A command with its text. */
export interface PromptCommand extends CommandInfo {
  readonly template: string
}

const maxCommands = 200
export const commandName = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u

const Head = Schema.Struct({
  description: Schema.optionalKey(Schema.String),
  argument: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.NonEmptyString),
  model: Schema.optionalKey(Schema.NonEmptyString)
})

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim().slice(0, 200)

const commandOf = (
  file: string,
  source: CommandInfo["source"],
  markdown: Markdown
): Result.Result<PromptCommand, MarkdownFault> => {
  const fail = (what: string, line: number | null) => Result.fail({ what, line })
  const name = path.basename(file, ".md")
  if (!commandName.test(name)) {
    return fail("its name is none for a command: letters, digits, dots, dashes and underscores, at most 64", null)
  }
  const head = decodeHead(Head, markdown, false)
  if (Result.isFailure(head)) return Result.fail(head.failure)
  if (markdown.body === "") return fail("it has no text after its front matter, so there is nothing to ask", null)
  const { agent, argument, description, model } = head.success
  const ref = model === undefined ? null : parseModelRef(model)
  if (ref !== null && "error" in ref) return fail(ref.error, lineOfMember(markdown, "model"))
  return Result.succeed({
    name,
    description: oneLine(description ?? markdown.body.split("\n", 1)[0] ?? ""),
    argument: argument === undefined ? hasPlaces(markdown.body) ? "[ARGUMENTS]" : null : oneLine(argument),
    agent: agent ?? null,
    model: model?.trim() ?? null,
    file,
    source,
    template: markdown.body
  })
}

/** All commands of a location. `projectFolders` are those of a trusted project, outermost first. */
export const findCommands = Effect.fn("commands.find")(function*(
  configDirectory: string,
  projectFolders: ReadonlyArray<string>
) {
  const root = projectFolders[0] ?? null
  const places = [
    { folder: path.join(configDirectory, "commands"), root: null, source: "user" as const },
    ...projectFolders.map((folder) => ({
      folder: path.join(folder, ".bezel", "commands"),
      root,
      source: "project" as const
    }))
  ]
  const problems: Array<string> = []
  const commands = new Map<string, PromptCommand>()
  for (const place of places) {
    const names = yield* Effect.promise(() => fs.readdir(place.folder).catch((): ReadonlyArray<string> => []))
    for (const entry of [...names].sort().filter((name) => name.endsWith(".md") && !name.startsWith("."))) {
      const file = path.join(place.folder, entry)
      const read = yield* readMarkdown(file, place.root)
      const command = read === null
        ? Result.fail<MarkdownFault>({ what: "it is a link to nothing", line: null })
        : Result.flatMap(read, (markdown) => commandOf(file, place.source, markdown))
      if (Result.isFailure(command)) {
        problems.push(`${describeFault(file, command.failure)}.`)
        continue
      }
      const { name } = command.success
      const before = commands.get(name)
      if (before !== undefined) {
        problems.push(`There are two commands named ${name}: ${file} is used, ${before.file} is not.`)
      } else if (commands.size >= maxCommands) {
        problems.push(`There are more than ${maxCommands} commands; ${file} is left out.`)
        continue
      }
      commands.set(name, command.success)
    }
  }
  return { commands, problems: problems as ReadonlyArray<string> }
})
