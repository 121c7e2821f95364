/** `bezel skill list`: the skills of a location, and where each is. */
import * as Effect from "effect/Effect"
import { oneLine } from "../run/text.ts"
import { listing } from "./catalogue.ts"

export const skillList = listing(({ skills }) =>
  Effect.map(skills.found, (found) =>
    found.skills.map((skill) => ({
      json: skill,
      cells: [skill.name, oneLine(skill.file, 100), oneLine(skill.description, 100)]
    })))
)
