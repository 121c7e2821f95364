/** Where a session's files are in its folder, and how what is there is kept. */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { journalExists } from "./migrate-jsonl.ts"

/** One SQLite file, or a folder of JSON lines. */
export type SessionFormat = "sqlite" | "jsonl"

/** Where a session of each format is, in its folder. */
export const sessionPaths = (folder: string): { readonly [format in SessionFormat]: string } => ({
  sqlite: nodePath.join(folder, "session.db"),
  jsonl: nodePath.join(folder, "journal")
})

/** How the session in a folder is kept; `null` when nothing has been stored there. */
export const formatIn = (folder: string): SessionFormat | null => {
  const paths = sessionPaths(folder)
  return fs.existsSync(paths.sqlite) ? "sqlite" : journalExists(paths.jsonl) ? "jsonl" : null
}

const sessionIDPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

/** Whether a text can be the id of a session, and so the name of its folder. */
export const isSessionID = (text: string): boolean => sessionIDPattern.test(text)

/** The folder with the sessions of a data directory. */
export const sessionsFolder = (directory: string): string => nodePath.join(directory, "sessions")

/** Ids of the sessions that have files in a data directory, in order. */
export const sessionsIn = (directory: string): ReadonlyArray<string> => {
  const folder = sessionsFolder(directory)
  if (!fs.existsSync(folder)) return []
  return fs.readdirSync(folder).filter((name) => isSessionID(name) && formatIn(nodePath.join(folder, name)) !== null)
    .sort()
}
