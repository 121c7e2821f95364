/**
 * What has been taken back and may be brought back: one file, written before anything is done and after it.
 *
 *     (nothing) ─▶ applying ─▶ staged ─▶ clearing ─▶ (nothing)
 *                     └──────── undone when it cannot be finished, or by the next opening after a crash
 */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { FileState } from "./file-state.ts"

const Steps = Schema.Array(Schema.Struct({ path: Schema.String, from: FileState, to: FileState }))

export const Staging = Schema.Struct({
  id: Schema.String,
  session: Schema.String,
  phase: Schema.Literals(["applying", "staged", "clearing"]),
  /** The prompt that is taken back with all behind it: its entry, its ordinal and its text. */
  to: Schema.String,
  from: Schema.Finite,
  prompt: Schema.String,
  /** The entry that marks it in the conversation, once that is there. */
  rewind: Schema.NullOr(Schema.String),
  steps: Steps,
  /** While it is brought back: what that does, with the older ones that are brought back together. */
  clearing: Schema.optionalKey(Steps)
})
export type Staging = typeof Staging.Type

const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Schema.Array(Staging)))

export class StagedFile {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Oldest first. Fails if the file is there and cannot be read. */
  read(): ReadonlyArray<Staging> {
    if (!fs.existsSync(this.path)) return []
    const decoded = decode(fs.readFileSync(this.path, "utf8"))
    if (Exit.isSuccess(decoded)) return decoded.value
    throw new Error(`${this.path} is damaged; what was taken back cannot be brought back. Remove that file to go on.`)
  }

  write(stagings: ReadonlyArray<Staging>): void {
    if (stagings.length === 0) return fs.rmSync(this.path, { force: true })
    const temporary = `${this.path}.tmp`
    const handle = fs.openSync(temporary, "w", 0o600)
    try {
      fs.writeFileSync(handle, JSON.stringify(stagings))
      fs.fsyncSync(handle)
    } finally {
      fs.closeSync(handle)
    }
    fs.renameSync(temporary, this.path)
  }

  /** Puts one in the place of that with its id, or behind all others. */
  put(staging: Staging): void {
    const all = this.read()
    this.write(
      all.some(({ id }) => id === staging.id)
        ? all.map((other) => other.id === staging.id ? staging : other)
        : [...all, staging]
    )
  }

  remove(ids: ReadonlySet<string>): void {
    this.write(this.read().filter(({ id }) => !ids.has(id)))
  }
}
