/**
 * The session facet of skills: names them in the system message, and loads the text of one with the `skill` tool.
 *
 * Where there are none, nothing is said and no tool is offered. What is in a skill's folder can be read without a rule, also
 * where the folder is the user's and outside of the location; running something of it is judged as every command is.
 */
import type { Defined, SessionContext, SkillDefinition } from "@bezel/core/host"
import { AppPaths, projectFolders } from "@bezel/core/settings"
import { tool, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Agents } from "../agents/contract.ts"
import { hiddenTools } from "../agents/registry.ts"
import { describeFault, readMarkdown } from "../markdown/index.ts"
import { useIfThere } from "../optional/index.ts"
import { PermissionGate } from "../permissions/contract.ts"
import { type Skill, type SkillDetails, SkillList, Skills, SkillsOptions } from "./contract.ts"
import { findSkills } from "./find.ts"

type Context = Pick<
  SessionContext,
  "options" | "location" | "section" | "skill" | "tool" | "provide" | "use" | "find" | "onActivate"
>

/** Bytes of the list in the system message; names beyond are counted only. */
const maxListBytes = 16 * 1024
const maxFiles = 50
const maxDepth = 4

/** The section's text: what there is, bounded. */
export const skillSection = (skills: ReadonlyArray<Skill>): string => {
  const lines: Array<string> = []
  let bytes = 0
  for (const { description, name } of skills) {
    const line = `- ${name}: ${description}`
    bytes += Buffer.byteLength(line) + 1
    if (bytes > maxListBytes) break
    lines.push(line)
  }
  const more = skills.length - lines.length
  return [
    "Skills",
    "Instructions for particular tasks. When a task is what one of them is for, load it with the skill tool before you begin.",
    ...lines,
    ...(more === 0 ? [] : [`(${more} more are not listed: ${skills.slice(-more).map(({ name }) => name).join(", ")})`])
  ].join("\n")
}

interface FolderFiles {
  readonly files: ReadonlyArray<string>
  readonly more: boolean
}

/** The other files of a skill, relative to its folder, in order; links are not followed. */
const filesOf = async (folder: string): Promise<FolderFiles> => {
  const files: Array<string> = []
  const walk = async (relative: string, depth: number): Promise<void> => {
    const entries = await fs.readdir(path.join(folder, relative), { withFileTypes: true }).catch(() => [])
    for (const entry of entries.sort((left, right) => left.name < right.name ? -1 : 1)) {
      if (files.length > maxFiles) return
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue
      const name = path.join(relative, entry.name)
      if (entry.isDirectory()) {
        if (depth < maxDepth) await walk(name, depth + 1)
      } else if (name !== "SKILL.md") files.push(name)
    }
  }
  await walk("", 1)
  return { files: files.slice(0, maxFiles), more: files.length > maxFiles }
}

const fileLines = ({ files, more }: FolderFiles): string =>
  files.length === 0
    ? ""
    : `\nFiles in it, to be read when they are needed:\n${files.map((file) => `- ${file}`).join("\n")}${
      more ? "\n- …" : ""
    }`

const skillTool = (skills: ReadonlyArray<Skill>, root: string | null) =>
  tool({
    description:
      "Loads a skill: instructions for a particular task, which the system message lists by name. Follow them for that task.",
    input: Schema.Struct({ name: Schema.String.annotate({ description: "Name of the skill." }) }),
    replay: "safe",
    permission: ({ name }) => ({ access: "skill", subjects: [name] }),
    execute: Effect.fn("skills.load")(function*({ name }) {
      const skill = skills.find((one) => one.name === name.trim())
      if (skill === undefined) {
        const names = skills.map((one) => one.name).join(", ")
        return yield* new ToolFailure({
          message: `There is no skill ${JSON.stringify(name.slice(0, 80))}; there are ${names}.`
        })
      }
      const read = yield* readMarkdown(skill.file, skill.source === "project" ? root : null)
      if (read === null || Result.isFailure(read)) {
        const what = read === null ? `${skill.file} is not there any more` : describeFault(skill.file, read.failure)
        return yield* new ToolFailure({ message: `The skill ${skill.name} cannot be loaded: ${what}.` })
      }
      const found = yield* Effect.promise(() => filesOf(skill.folder))
      return toolResult({
        content: `The skill ${skill.name}. Its base folder is ${skill.folder}; relative paths in it are from there.${
          fileLines(found)
        }\n\n${read.success.body}`,
        details: { name: skill.name, folder: skill.folder, files: found.files.length } satisfies SkillDetails
      })
    })
  })

/** The facet for session hosts. */
export const session = Effect.fn("skills/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(SkillsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const configDirectory = options.configDirectory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.config)), AppPaths.layer))
  const folders = options.trusted === true ? yield* projectFolders(ctx.location.directory) : []
  const found = yield* findSkills(configDirectory, folders)
  yield* Effect.forEach(found.problems, (problem) => Effect.logWarning(problem), { discard: true })
  let current = found
  yield* ctx.provide(Skills, { found: Effect.sync(() => current) })
  yield* ctx.provide(SkillList, { list: () => Effect.sync(() => current) })
  yield* ctx.section({
    id: "skills.list",
    order: 300,
    text: ({ config }) =>
      Effect.gen(function*() {
        if (current.skills.length === 0) return null
        // Who is not offered the tool is told nothing of what it would load.
        const agents = yield* ctx.find(Agents)
        const agent = agents === null ? null : yield* Effect.orElseSucceed(agents.get(config.agent), () => null)
        return agent !== null && hiddenTools(agent, ["skill"]).length > 0 ? null : skillSection(current.skills)
      })
  })
  yield* ctx.tool.transform((draft) => {
    if (current.skills.length > 0) draft.set("skill", skillTool(current.skills, folders[0] ?? null))
  })
  const take = (all: ReadonlyArray<Defined<SkillDefinition>>) =>
    Effect.andThen(
      Effect.sync(() => {
        current = { ...found, skills: withContributed(all, found.skills) }
      }),
      ctx.tool.reload
    )
  // What is in their folders can be read for as long as these are the skills.
  const following = Effect.gen(function*() {
    const gate = yield* useIfThere(ctx, PermissionGate)
    const holding = (all: ReadonlyArray<Defined<SkillDefinition>>) =>
      Effect.gen(function*() {
        yield* take(all)
        if (gate !== null) yield* gate.readable(current.skills.map(({ folder }) => folder))
        return yield* Effect.never
      }).pipe(Effect.scoped)
    yield* Stream.runDrain(Stream.switchMap(ctx.skill.changes, (all) => Stream.fromEffect(holding(all))))
  })
  yield* ctx.onActivate(Effect.gen(function*() {
    yield* take(yield* ctx.skill.list)
    yield* Effect.forkScoped(following, { startImmediately: true })
  }))
})

/** By name in order; what the user and the project have stands before what a plugin contributes under the same name. */
const withContributed = (
  all: ReadonlyArray<Defined<SkillDefinition>>,
  files: ReadonlyArray<Skill>
): Array<Skill> => {
  const contributed = all.filter(({ name }) => !files.some((file) => file.name === name)).map((
    { definition: { description, folder }, name }
  ): Skill => ({ name, description, folder, file: path.join(folder, "SKILL.md"), source: "plugin" }))
  return [...files, ...contributed].sort((left, right) => left.name < right.name ? -1 : 1)
}
