/**
 * Whether something can be kept in a folder: found out by keeping something there, because rights, quotas, limits of the
 * process and full disks show in no other way. What was written is taken away again.
 */
import { closeSync, fsyncSync, openSync, statfsSync, unlinkSync, writeSync } from "node:fs"
import { join } from "node:path"

/** Less than this is soon full, in bytes: sessions grow, and settings are replaced by whole new files. */
export const littleRoom = 64 * 1024 * 1024

/** What a session needs at least to begin, in bytes. */
const sampleBytes = 256 * 1024

export const mebibytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(bytes < 10 * 1024 * 1024 ? 1 : 0)

const words: { readonly [code: string]: string } = {
  ENOSPC: "its disk is full",
  EDQUOT: "this user's quota of its disk is used up",
  EFBIG: "this process may write no files of this size",
  EROFS: "its disk can only be read",
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EIO: "its disk has failed"
}

const problemOf = (error: unknown): string => {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
  return words[code] ?? code
}

const writeAll = (file: number, bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at)
}

/** Bytes that are free for this user, or `null` where that is not known; and why nothing can be written, if so. */
export const tryFolder = (folder: string): { readonly free: number | null; readonly problem: string | null } => {
  const sample = join(folder, `.doctor-${process.pid}`)
  let problem: string | null = null
  try {
    const file = openSync(sample, "wx", 0o600)
    try {
      writeAll(file, new Uint8Array(sampleBytes).fill(0x2e))
      fsyncSync(file)
    } finally {
      closeSync(file)
      unlinkSync(sample)
    }
  } catch (error) {
    problem = problemOf(error)
  }
  try {
    const { bavail, bsize } = statfsSync(folder)
    return { free: bavail * bsize, problem }
  } catch {
    return { free: null, problem }
  }
}
