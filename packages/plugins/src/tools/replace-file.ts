/**
 * Replacing a file's content as one step: write beside it, fsync, rename. Whoever reads sees the old content or the
 * new, never a part, also when the disk is full or the process dies. Mode and, where allowed, owner are kept.
 */
import { randomBytes } from "node:crypto"
import type { BigIntStats } from "node:fs"
import { constants } from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"

/** Replaces or creates the file at a real path; gives the new file's state. */
export const replaceFile = async (
  path: string,
  content: Uint8Array,
  before: BigIntStats | null
): Promise<BigIntStats> => {
  const directory = NodePath.dirname(path)
  const temporary = NodePath.join(
    directory,
    `.${NodePath.basename(path).slice(0, 100)}.${randomBytes(6).toString("hex")}.tmp`
  )
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  let handle: FileSystem.FileHandle
  try {
    handle = await FileSystem.open(temporary, flags, before === null ? 0o666 : 0o600)
  } catch (cause) {
    // A directory that takes no new file may still hold a file that can be written.
    if (before !== null && (hasCode(cause, "EACCES") || hasCode(cause, "EPERM") || hasCode(cause, "EROFS"))) {
      return writeInPlace(path, content)
    }
    throw cause
  }
  try {
    try {
      await handle.writeFile(content)
      if (before !== null) {
        await handle.chown(Number(before.uid), Number(before.gid)).catch(() => {})
        await handle.chmod(Number(before.mode & 0o7777n))
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    await FileSystem.rename(temporary, path)
  } catch (cause) {
    await FileSystem.rm(temporary, { force: true }).catch(() => {})
    throw cause
  }
  await syncDirectory(directory)
  return FileSystem.stat(path, { bigint: true })
}

const writeInPlace = async (path: string, content: Uint8Array): Promise<BigIntStats> => {
  const handle = await FileSystem.open(path, "r+")
  try {
    await handle.writeFile(content)
    await handle.truncate(content.length)
    await handle.sync()
    return await handle.stat({ bigint: true })
  } finally {
    await handle.close()
  }
}

// The rename itself is durable only once the directory is; not every file system can do that.
const syncDirectory = async (directory: string): Promise<void> => {
  try {
    const handle = await FileSystem.open(directory, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch {
    return
  }
}

const hasCode = (cause: unknown, code: string): boolean =>
  typeof cause === "object" && cause !== null && "code" in cause && cause.code === code
