/**
 * Finds skills: folders with a `SKILL.md`, whose front matter has `description` and mostly `name`, in `skills/` of the user's
 * config folder and in `.agents/skills`, `.claude/skills` and `.bezel/skills` of a trusted project, from its root down.
 *
 * Of several with one name the nearest to the location is used, and the others are told; one that is reached in several ways is
 * one. Members of the front matter that are for other programs are ignored. A broken file is told with file and line.
 */
import { realPathWithin } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { decodeHead, describeFault, lineOfMember, type Markdown, readMarkdown } from "../markdown/index.ts"
import type { Skill, SkillsFound } from "./contract.ts"

const indexFile = "SKILL.md"
/** Folders of skills, in each folder of a trusted project. */
export const projectSkillFolders = [".agents/skills", ".claude/skills", ".bezel/skills"]
const maxSkills = 200
const maxDescription = 1_024

const Head = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  description: Schema.String
})

const skillName = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u

type Found = Omit<Skill, "source">

/** What a `SKILL.md` says of its skill. */
export const readSkill = (file: string, markdown: Markdown): Result.Result<Found, string> => {
  const fail = (what: string, line: number | null) => Result.fail(`${describeFault(file, { what, line })}.`)
  if (!Object.hasOwn(markdown.head, "description")) {
    return fail("it has no description in its front matter, which says when to use it", 1)
  }
  const head = decodeHead(Head, markdown, false)
  if (Result.isFailure(head)) return fail(head.failure.what, head.failure.line)
  const folder = path.dirname(file)
  const name = head.success.name ?? path.basename(folder)
  if (!skillName.test(name)) {
    return fail(
      `${
        JSON.stringify(name.slice(0, 80))
      } is no name for a skill: letters, digits, dots, dashes and underscores, at most 64`,
      lineOfMember(markdown, "name")
    )
  }
  const description = head.success.description.replace(/\s+/g, " ").trim()
  if (description === "") return fail("its description is empty", lineOfMember(markdown, "description"))
  const cut = description.length > maxDescription ? `${description.slice(0, maxDescription)}…` : description
  return Result.succeed({ name, description: cut, file, folder })
}

/** The skills of one folder of skills, each or what is wrong with it. */
const skillsIn = Effect.fnUntraced(function*(top: string, root: string | null) {
  const names = yield* Effect.promise(() => fs.readdir(top).catch((): ReadonlyArray<string> => []))
  const found = yield* Effect.forEach(
    [...names].sort().filter((name) => !name.startsWith(".")).slice(0, maxSkills),
    (name) => {
      const file = path.join(top, name, indexFile)
      return Effect.map(readMarkdown(file, root), (read): ReadonlyArray<Result.Result<Found, string>> =>
        read === null
          ? []
          : [
            Result.isFailure(read)
              ? Result.fail(`${describeFault(file, read.failure)}.`)
              : readSkill(file, read.success)
          ])
    },
    { concurrency: 8 }
  )
  return found.flat()
})

const realFile = (file: string, root: string | null): Effect.Effect<string> =>
  Effect.promise(async () =>
    (await (root === null ? fs.realpath(file) : realPathWithin(root, file)).catch(() => null)) ?? file
  )

/** All skills of a location. `projectFolders` are those of a trusted project, outermost first. */
export const findSkills = Effect.fn("skills.find")(function*(
  configDirectory: string,
  projectFolders: ReadonlyArray<string>
) {
  const root = projectFolders[0] ?? null
  const places = [
    { folder: path.join(configDirectory, "skills"), root: null, source: "user" as const },
    ...projectFolders.flatMap((folder) =>
      projectSkillFolders.map((name) => ({ folder: path.join(folder, name), root, source: "project" as const }))
    )
  ]
  const problems: Array<string> = []
  const skills = new Map<string, Skill>()
  const reals = new Map<string, string>()
  for (const place of places) {
    for (const found of yield* skillsIn(place.folder, place.root)) {
      if (Result.isFailure(found)) {
        problems.push(found.failure)
        continue
      }
      const skill = found.success
      const real = yield* realFile(skill.file, place.root)
      const before = skills.get(skill.name)
      if (reals.get(skill.name) === real) continue
      if (before !== undefined) {
        problems.push(`There are two skills named ${skill.name}: ${skill.file} is used, ${before.file} is not.`)
      } else if (skills.size >= maxSkills) {
        problems.push(`There are more than ${maxSkills} skills; ${skill.file} is left out.`)
        continue
      }
      reals.set(skill.name, real)
      skills.set(skill.name, { ...skill, source: place.source })
    }
  }
  const sorted = [...skills.values()].sort((left, right) => left.name < right.name ? -1 : 1)
  return { skills: sorted, problems } satisfies SkillsFound
})
