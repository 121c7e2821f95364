/**
 * Skills as others see them: a folder with a `SKILL.md`, told to the model by name and description, read when it is needed.
 */
import { LocalService, RemoteService } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export type Skill = typeof Skill.Type
export const Skill = Schema.Struct({
  /** Of its front matter, else its folder's. */
  name: Schema.String,
  /** When to use it; on one line. */
  description: Schema.String,
  /** Absolute path of its `SKILL.md`. */
  file: Schema.String,
  /** Absolute path of its folder; what is in it may be read without a rule. */
  folder: Schema.String,
  /** Whose it is: this user's, the project's that is trusted, or a plugin's. */
  source: Schema.Literals(["user", "project", "plugin"])
})

/** The skills of a location, and what is wrong with those that are not among them, one sentence each. */
export type SkillsFound = typeof SkillsFound.Type
export const SkillsFound = Schema.Struct({
  skills: Schema.Array(Skill),
  problems: Schema.Array(Schema.String)
})

/** Those of plugins come and go with them; the others do not change while the location is up. The text is read when it is loaded. */
export interface SkillsShape {
  readonly found: Effect.Effect<SkillsFound>
}

export const Skills: LocalService<SkillsShape> = LocalService.make("bezel.skills.local")

/** The same for people at a client. */
export class SkillList extends RemoteService.make("bezel.skills")({
  methods: { list: { success: SkillsFound } }
}) {}

/** `details` of a result of the `skill` tool. */
export type SkillDetails = typeof SkillDetails.Type
export const SkillDetails = Schema.Struct({ name: Schema.String, folder: Schema.String, files: Schema.Int })

/** Options of the plugin in the manifest. */
export type SkillsOptions = typeof SkillsOptions.Type
export const SkillsOptions = Schema.Struct({
  /** Where the user's `skills/` is; default: the config folder of this user. */
  configDirectory: Schema.optionalKey(Schema.String),
  /** The project is trusted, so its skills count; default: it is not. */
  trusted: Schema.optionalKey(Schema.Boolean)
})
