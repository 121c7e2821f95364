import * as fs from "node:fs"
import * as path from "node:path"

/** Creates a folder that only its user can enter, with those above it. */
export const privateFolder = (folder: string): void => {
  // One by one: asked to make all of them, Node tries for ever where a folder exists and takes no others (`/proc`).
  const missing: Array<string> = []
  for (let at = path.resolve(folder); !fs.existsSync(at); at = path.dirname(at)) missing.push(at)
  for (const at of missing.toReversed()) {
    try {
      fs.mkdirSync(at, { mode: 0o700 })
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
    }
  }
}
