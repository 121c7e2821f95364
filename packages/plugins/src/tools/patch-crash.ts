/**
 * What became of a patch that a crash cut off: written down before the first file is written, and compared with the files
 * when the call is taken up again.
 *
 * Nothing is finished or undone on its own: between the crash and now, somebody may have gone on with the files. The model is
 * told which of them are changed and which are not. Contents are written before files are removed, so that of a file that is
 * moved there is always one.
 */
import type { JsonValue } from "@bezel/core/json"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import * as FileSystem from "node:fs/promises"

/** Digests of a file's content; `null` for a file that there is not. */
const PlannedFile = Schema.Struct({
  path: Schema.String,
  before: Schema.NullOr(Schema.String),
  after: Schema.NullOr(Schema.String)
})
export type PlannedFile = typeof PlannedFile.Type

const decode = Schema.decodeUnknownExit(Schema.Array(PlannedFile))

export const digestOf = (content: Uint8Array | null): string | null =>
  content === null ? null : createHash("sha256").update(content).digest("base64")

export interface Outcome {
  readonly changed: ReadonlyArray<PlannedFile>
  readonly unchanged: ReadonlyArray<PlannedFile>
  /** Files that are neither as they were nor as they were to be. */
  readonly other: ReadonlyArray<PlannedFile>
}

/** Looks at the files of a plan that was written down; `null` if that is none. */
export const outcomeOf = async (planned: JsonValue, maxFileBytes: number): Promise<Outcome | null> => {
  const decoded = decode(planned)
  if (!Exit.isSuccess(decoded)) return null
  const changed: Array<PlannedFile> = []
  const unchanged: Array<PlannedFile> = []
  const other: Array<PlannedFile> = []
  for (const file of decoded.value) {
    const now = await digestAt(file.path, maxFileBytes)
    const where = now === file.after ? changed : now === file.before ? unchanged : other
    where.push(file)
  }
  return { changed, unchanged, other }
}

/** `undefined` for what cannot be read. */
const digestAt = async (path: string, maxFileBytes: number): Promise<string | null | undefined> => {
  try {
    const stats = await FileSystem.stat(path)
    if (!stats.isFile() || stats.size > maxFileBytes) return undefined
    return digestOf(await FileSystem.readFile(path))
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")
    return isAbsent ? null : undefined
  }
}

const mark = ({ after, before }: PlannedFile): string => before === null ? "A" : after === null ? "D" : "M"

/** For the model: what is done, what is not, and what to do. */
export const cutOffText = ({ changed, other, unchanged }: Outcome, show: (path: string) => string): string => {
  const list = (files: ReadonlyArray<PlannedFile>) => files.map((file) => `${mark(file)} ${show(file.path)}`).join("\n")
  return [
    "Bezel ended while this patch was being written, so it is done only in part.",
    `Done:\n${list(changed) || "nothing"}`,
    `Not done:\n${list(unchanged) || "nothing"}`,
    ...(other.length === 0 ? [] : [`Not known, for these have been changed since or cannot be read:\n${list(other)}`]),
    "Make another patch for what is not done; read the files first."
  ].join("\n")
}
