/**
 * Reads the status of a repository without obeying it.
 *
 *     the user's git folder   ── branch, head, upstream ──▶ git that sees neither index nor files
 *                             ── how files are compared ──▶ a few settings by name (line ends, modes)
 *     a git folder of our own ── what has changed       ──▶ git with the user's index and objects, without filters
 *
 * The second run reads content of the work tree, where a repository's attributes and settings would run its filters. Its git
 * folder has neither: settings that name programs never reach it, also those that are written between two runs. So a file
 * that a filter converts (git-lfs) and that was touched counts as changed until its owner's git has looked at it.
 */
import { readRegularFile } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import { tmpdir } from "node:os"
import * as path from "node:path"
import type { GitStatus } from "./contract.ts"
import { type GitOptions, spawnGit } from "./process.ts"
import { findRepository, type UserRepository } from "./repository.ts"
import { parseStatus } from "./status.ts"

const maxBytes = 16 * 1024 * 1024
const limitMillis = 20_000

/** Output of a git command; `null` where it fails, takes too long or says too much. */
const runGit = (
  args: ReadonlyArray<string>,
  options: Omit<GitOptions, "limitMillis">
): Effect.Effect<string | null> =>
  Effect.callback((resume) => {
    const child = spawnGit(args, { ...options, limitMillis })
    const chunks: Array<Buffer> = []
    let size = 0
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) child.kill("SIGKILL")
      else chunks.push(chunk)
    })
    child.stderr.resume()
    child.stdin.on("error", () => {})
    child.stdin.end()
    child.once("error", () => resume(Effect.succeed(null)))
    child.once("close", (code) =>
      resume(Effect.succeed(code === 0 && size <= maxBytes ? Buffer.concat(chunks).toString() : null)))
    return Effect.sync(() =>
      child.kill("SIGKILL")
    )
  })

/** Settings that say how files are compared with what git knows of them. None of them names a program or a file. */
const comparing = "core\\.(autocrlf|checkstat|eol|filemode|ignorecase|precomposeunicode|symlinks|trustctime)"
const isComparing = new RegExp(`^${comparing}$`)
const wanted = `^(${comparing}|extensions\\.objectformat)$`

interface Comparing {
  readonly config: ReadonlyArray<string>
  readonly objectFormat: "sha1" | "sha256"
}

/** Reads `git config -z --get-regexp`. */
const readComparing = (output: string): Comparing => {
  const entries = output.split("\0").flatMap((record) => {
    const at = record.indexOf("\n")
    // A name alone means yes.
    return record === ""
      ? []
      : [at < 0 ? [record, "true"] as const : [record.slice(0, at), record.slice(at + 1)] as const]
  })
  const isSha256 = entries.some(([name, value]) => name === "extensions.objectformat" && value === "sha256")
  return {
    config: entries.flatMap(([name, value]) => isComparing.test(name) ? [`${name}=${value}`] : []),
    objectFormat: isSha256 ? "sha256" : "sha1"
  }
}

const settingsText = (objectFormat: Comparing["objectFormat"]): string =>
  "[core]\n\trepositoryformatversion = 1\n\tbare = false\n" +
  (objectFormat === "sha1" ? "" : "[extensions]\n\tobjectFormat = sha256\n")

/** Without renames, which are found by reading contents that may not be here. */
const status = ["status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=all"]

/** A git folder of our own, gone with the scope. */
const makeFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = await fs.mkdtemp(path.join(tmpdir(), "bezel-git-"))
    for (const part of ["objects", "refs/heads", "info"]) await fs.mkdir(path.join(folder, part), { recursive: true })
    await fs.writeFile(path.join(folder, "info/attributes"), "* -filter\n")
    return folder
  }),
  (folder) => Effect.promise(() => fs.rm(folder, { recursive: true, force: true }).catch(() => {}))
)

const prepare = (
  folder: string,
  { commonDirectory, gitDirectory }: UserRepository,
  head: string | null,
  objectFormat: Comparing["objectFormat"]
) =>
  Effect.gen(function*() {
    const exclude = yield* Effect.orElseSucceed(
      readRegularFile(path.join(commonDirectory, "info", "exclude")),
      () => null
    )
    yield* Effect.promise(async () => {
      await fs.writeFile(path.join(folder, "config"), settingsText(objectFormat))
      await fs.writeFile(path.join(folder, "HEAD"), head === null ? "ref: refs/heads/none\n" : `${head}\n`)
      await fs.writeFile(path.join(folder, "info/exclude"), exclude ?? "")
      // A split index is looked for in the git folder.
      for (const name of await fs.readdir(gitDirectory).catch(() => [])) {
        if (!/^sharedindex\.[0-9a-f]+$/.test(name)) continue
        await fs.symlink(path.join(gitDirectory, name), path.join(folder, name)).catch(() => {})
      }
    })
  })

/** What nobody has: git says how the branch is and lists nothing. */
const noPath = `:(literal)${randomUUID()}`

/** `null` outside of a repository, and where there is no git or it cannot read this one. */
export type ReadStatus = (directory: string) => Effect.Effect<GitStatus | null>

/** A reader of statuses, for the life of the scope. Its folder is made at the first look inside a repository. */
export const makeReadStatus: Effect.Effect<ReadStatus, never, Scope.Scope> = Effect.gen(function*() {
  const scope = yield* Effect.scope
  const made = yield* Effect.cached(Scope.provide(makeFolder, scope))
  return (directory) =>
    Effect.gen(function*() {
      const repository = yield* Effect.promise(() => findRepository(directory))
      if (repository === null) return null
      const { commonDirectory, gitDirectory, root } = repository
      const folder = yield* made
      // Git finds the repository by itself, so that it looks at whose it is; it finds no other.
      const theirs = {
        directory: root,
        workTree: root,
        environment: {
          GIT_CEILING_DIRECTORIES: path.dirname(root),
          GIT_WORK_TREE: root,
          GIT_INDEX_FILE: path.join(folder, "no-index")
        }
      }
      const [place, settings] = yield* Effect.all([
        runGit([...status, "--branch", "--untracked-files=no", "--", noPath], theirs),
        runGit(["config", "-z", "--get-regexp", wanted], theirs)
      ], { concurrency: 2 })
      if (place === null) return null
      const { config, objectFormat } = readComparing(settings ?? "")
      yield* prepare(folder, repository, parseStatus(root, place).head, objectFormat)
      const changes = yield* runGit(
        [...status, "--untracked-files=normal"],
        {
          directory: root,
          workTree: root,
          config,
          environment: {
            GIT_DIR: folder,
            GIT_WORK_TREE: root,
            GIT_INDEX_FILE: path.join(gitDirectory, "index"),
            GIT_OBJECT_DIRECTORY: path.join(commonDirectory, "objects")
          }
        }
      )
      return changes === null ? null : parseStatus(root, place + changes)
    })
})
