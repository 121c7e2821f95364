/**
 * The file system as settings need it: bounded reads that cannot hang, atomic private writes, the chain of project folders.
 *
 * A repository may hold a FIFO or a device under a name that we look for, so a file is judged on its opened handle.
 */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { maxSettingsBytes } from "./document.ts"

export interface FileProblem {
  readonly reason: string
}

const codeOf = (cause: unknown): string | null => cause instanceof Error && "code" in cause ? String(cause.code) : null

const wording: Record<string, string> = {
  EACCES: "no permission",
  EDQUOT: "no more room is left to this user on the disk",
  EFBIG: "it would be larger than files may be here",
  EPERM: "no permission",
  EISDIR: "it is a folder",
  ELOOP: "its links go in a circle",
  ENXIO: "it is not a regular file",
  ENOSPC: "the disk is full",
  EROFS: "the disk is read-only"
}

const problemOf = (cause: unknown): FileProblem => {
  const code = codeOf(cause)
  return { reason: code === null ? "it cannot be read" : wording[code] ?? code }
}

const isAbsent = (cause: unknown): boolean => {
  const code = codeOf(cause)
  return code === "ENOENT" || code === "ENOTDIR"
}

/** Said of a project's file that stands for one elsewhere: a cloned repository could name any file of its user that way. */
export const leadsOutOfProject = "it is a link that leads out of the project"

/**
 * The real path of a file, or `null` if it does not lie in `root`, which is a real path itself. Rejects as `realpath` does
 * where there is no such file.
 */
export const realPathWithin = async (root: string, file: string): Promise<string | null> => {
  const real = await fs.realpath(file)
  return real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep) ? real : null
}

/**
 * Text of a regular file of at most `maxBytes`, or `null` if there is none. With `root`, the real path of a project, a link
 * that leads out of it is refused.
 */
export const readRegularFile = (
  file: string,
  maxBytes: number = maxSettingsBytes,
  root: string | null = null
): Effect.Effect<string | null, FileProblem> =>
  Effect.acquireUseRelease(
    Effect.tryPromise({
      try: async () => {
        try {
          const real = root === null ? file : await realPathWithin(root, file)
          // Without O_NONBLOCK, opening a FIFO waits for a writer that may never come.
          return real === null ? "outside" : await fs.open(real, constants.O_RDONLY | constants.O_NONBLOCK)
        } catch (cause) {
          if (isAbsent(cause)) return null
          throw cause
        }
      },
      catch: problemOf
    }),
    (handle) =>
      handle === null ? Effect.succeed(null) : Effect.gen(function*() {
        if (handle === "outside") return yield* Effect.fail({ reason: leadsOutOfProject })
        const stat = yield* Effect.tryPromise({ try: () => handle.stat(), catch: problemOf })
        if (stat.isDirectory()) return yield* Effect.fail({ reason: "it is a folder" })
        if (!stat.isFile()) return yield* Effect.fail({ reason: "it is not a regular file" })
        if (stat.size > maxBytes) return yield* Effect.fail({ reason: `it is larger than ${maxBytes} bytes` })
        const bytes = yield* Effect.tryPromise({ try: () => handle.readFile(), catch: problemOf })
        return yield* Effect.try({
          try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
          catch: () => ({ reason: "it is not UTF-8 text" })
        })
      }),
    (handle) =>
      handle === null || handle === "outside"
        ? Effect.void
        : Effect.promise(() => handle.close().catch(() => undefined))
  )

/** Replaces a file as a whole, readable by this user only: after a crash it has its old or its new content, never half. */
export const writePrivateFile = (file: string, content: string): Effect.Effect<void, FileProblem> =>
  Effect.tryPromise({
    try: async () => {
      const next = `${file}.${process.pid}.${randomUUID()}.tmp`
      const handle = await fs.open(next, "wx", 0o600)
      try {
        await handle.writeFile(content)
        await handle.sync()
      } catch (cause) {
        await fs.rm(next, { force: true })
        throw cause
      } finally {
        await handle.close()
      }
      await fs.rename(next, file)
      // The name is durable only once its folder is.
      const folder = await fs.open(path.dirname(file), "r")
      await folder.sync().finally(() => folder.close())
    },
    catch: problemOf
  })

/** The real path of a directory, or the path itself, made absolute, if it does not exist. */
export const realDirectory = (directory: string): Effect.Effect<string> =>
  Effect.promise(() => fs.realpath(directory).catch(() => path.resolve(directory)))

const exists = (file: string): Effect.Effect<boolean> =>
  Effect.promise(() => fs.lstat(file).then(() => true, () => false))

/**
 * The directories whose project files hold in a location, outermost first: from the root of the git work tree that
 * contains it down to the location. Outside a work tree only the location itself.
 */
export const projectFolders = Effect.fnUntraced(function*(directory: string) {
  const location = yield* realDirectory(directory)
  const chain = [location]
  for (let current = location;; current = path.dirname(current)) {
    if (current !== location) chain.unshift(current)
    if (yield* exists(path.join(current, ".git"))) return chain
    if (path.dirname(current) === current) return [location]
  }
})
