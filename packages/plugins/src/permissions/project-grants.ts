/**
 * What a person allowed for a location for good, kept where no repository reaches: one private file per location in the state
 * folder, `grants/<hash of the folder>.json`.
 *
 * The file is read for each question, so that what is taken back, here or by deleting the file, is asked again at once. A file
 * that is damaged or for another folder grants nothing. Of two processes that write in the same moment one may lose a grant,
 * which is then asked again.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { createHash, randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { ProjectGrantsError } from "./contract.ts"

const GrantsFile = Schema.fromJsonString(Schema.Struct({
  version: Schema.Literal(1),
  location: Schema.String,
  rules: Schema.Array(Schema.String)
}))

/** More than a person answers; a larger file is not one of ours. */
const maxBytes = 1024 * 1024

export interface ProjectGrants {
  readonly file: string
  readonly list: Effect.Effect<ReadonlyArray<string>>
  readonly add: (rules: ReadonlyArray<string>) => Effect.Effect<void, ProjectGrantsError>
  readonly remove: (rule: string) => Effect.Effect<void, ProjectGrantsError>
}

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

export const makeProjectGrants = (stateDirectory: string, location: string): ProjectGrants => {
  const folder = path.join(stateDirectory, "grants")
  const file = path.join(folder, `${createHash("sha256").update(location).digest("hex").slice(0, 32)}.json`)

  const read = (): ReadonlyArray<string> => {
    try {
      const found = fs.lstatSync(file)
      if (!found.isFile() || found.size > maxBytes) return []
      const content = Schema.decodeUnknownOption(GrantsFile)(fs.readFileSync(file, "utf8"))
      return Option.isSome(content) && content.value.location === location ? content.value.rules : []
    } catch {
      return []
    }
  }

  const change = (what: (rules: ReadonlyArray<string>) => ReadonlyArray<string>) =>
    Effect.try({
      try: () => {
        fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
        const next = `${file}.${randomUUID()}`
        try {
          const content = JSON.stringify({ version: 1, location, rules: what(read()) }, null, 2)
          fs.writeFileSync(next, `${content}\n`, { mode: 0o600, flag: "wx" })
          fs.renameSync(next, file)
        } finally {
          fs.rmSync(next, { force: true })
        }
      },
      catch: (cause) =>
        new ProjectGrantsError({
          message: `What is allowed in ${location} could not be written to ${file} (${codeOf(cause)}).`
        })
    })

  return {
    file,
    list: Effect.sync(read),
    add: (rules) => change((before) => [...before, ...rules.filter((rule) => !before.includes(rule))]),
    remove: (rule) => change((before) => before.filter((each) => each !== rule))
  }
}
