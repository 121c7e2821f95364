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
