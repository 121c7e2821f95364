/** `bezel skill list`: the skills of a location, and where each is. */
import { projectSkillFolders } from "@bezel/plugins/skills"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { oneLine } from "../run/text.ts"
import { listing } from "./catalogue.ts"

export const skillList = listing(
  ({ skills }) =>
    Effect.map(skills.found, (found) =>
      found.skills.map((skill) => ({
        json: skill,
        cells: [skill.name, oneLine(skill.file, 100), oneLine(skill.description, 100)]
      }))),
  {
    none: ({ config }) =>
      `there are no skills here; they are looked for as NAME/SKILL.md in ${join(config, "skills")} and, where the ` +
      `project is trusted, in its ${projectSkillFolders.join(", ")}`
  }
)
