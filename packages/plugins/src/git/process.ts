/**
 * The one way in which Bezel runs git by itself.
 *
 * A repository's own settings can name programs: hooks, a file system monitor, filters, pagers, transports, aliases. None of
 * them is run from here: what can be switched off is, and no transport is allowed, so that nothing is fetched behind a command
 * that only reads. Two rules are left to who calls: content of the work tree is only looked at with a git folder of our own
 * (`look.ts`, and the snapshots of history), since nothing else keeps a repository's filters from running; and a comparison
 * that prints contents takes `--no-ext-diff --no-textconv`.
 *
 * Nor does the environment decide: variables of git are not handed on, and the program is not looked for in relative folders
 * of `PATH` or in those of the work tree, where a repository may bring a `git` of its own.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { realpathSync } from "node:fs"
import { devNull } from "node:os"
import * as path from "node:path"

export interface GitOptions {
  /** Where it runs. */
  readonly directory: string
  /** Root of the work tree: programs in it are not taken for git. */
  readonly workTree: string
  /** Settings for this run, `name=value`. */
  readonly config?: ReadonlyArray<string>
  /** Variables of git for this run. */
  readonly environment?: { readonly [name: string]: string }
  readonly signal?: AbortSignal
  readonly limitMillis: number
}

const always = [
  "core.fsmonitor=false",
  `core.hooksPath=${devNull}`,
  "core.pager=cat",
  "protocol.allow=never",
  "safe.bareRepository=explicit"
]

const isWithin = (folder: string, file: string): boolean => {
  const relative = path.relative(folder, file)
  return relative === "" || (!path.isAbsolute(relative) && relative.split(path.sep)[0] !== "..")
}

const realPath = (folder: string): string => {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

/** The folders of a `PATH` in which a program may be looked for. */
export const trustedPath = (list: string | undefined, workTree: string): string => {
  const root = realPath(workTree)
  return (list ?? "").split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder) && !isWithin(root, realPath(folder)))
    .join(path.delimiter)
}

const environmentOf = ({ environment = {}, workTree }: GitOptions): NodeJS.ProcessEnv => {
  const kept: NodeJS.ProcessEnv = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (!name.toUpperCase().startsWith("GIT_")) kept[name] = value
  }
  return {
    ...kept,
    PATH: trustedPath(process.env.PATH, workTree),
    LC_ALL: "C",
    GIT_ALLOW_PROTOCOL: "none",
    GIT_NO_LAZY_FETCH: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    ...environment
  }
}

/** Starts git with its streams open. It is ended when its time is over. */
export const spawnGit = (args: ReadonlyArray<string>, options: GitOptions): ChildProcessWithoutNullStreams =>
  spawn("git", [...[...always, ...options.config ?? []].flatMap((setting) => ["-c", setting]), ...args], {
    cwd: options.directory,
    stdio: ["pipe", "pipe", "pipe"],
    timeout: options.limitMillis,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    env: environmentOf(options)
  })
