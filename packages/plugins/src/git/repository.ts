/** Finds the repository that a folder is in by looking at files, without asking git, which would obey the repository. */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"

/** Where a repository's work tree is, its git folder, and the one that its work trees share, with the objects. */
export interface UserRepository {
  readonly root: string
  readonly gitDirectory: string
  readonly commonDirectory: string
}

/** More is no path. */
const maxBytes = 8 * 1024

/** The beginning of a regular file; what is none is not waited for. */
const readText = async (file: string): Promise<string | null> => {
  const handle = await fs.open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null)
  if (handle === null) return null
  try {
    if (!(await handle.stat()).isFile()) return null
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
    return buffer.toString("utf8", 0, bytesRead)
  } catch {
    return null
  } finally {
    await handle.close()
  }
}

/** `null` outside of a repository. */
export const findRepository = async (location: string): Promise<UserRepository | null> => {
  for (let root = location;; root = path.dirname(root)) {
    const dotGit = path.join(root, ".git")
    const stats = await fs.stat(dotGit).catch(() => null)
    const link = stats?.isFile() === true ? /^gitdir: (.+)$/m.exec(await readText(dotGit) ?? "")?.[1] : undefined
    if (stats?.isFile() === true && link === undefined) return null
    if (stats?.isDirectory() === true || link !== undefined) {
      const gitDirectory = link === undefined ? dotGit : path.resolve(root, link.trim())
      const common = (await readText(path.join(gitDirectory, "commondir")))?.trim()
      return {
        root,
        gitDirectory,
        commonDirectory: common === undefined ? gitDirectory : path.resolve(gitDirectory, common)
      }
    }
    if (root === path.dirname(root)) return null
  }
}
