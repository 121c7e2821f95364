/**
 * The words of a bubblewrap sandbox: the whole file system to read, the workspace to write, and nothing of ours in sight.
 *
 * It confines what a command does to files, and to the network if that is wanted. It is no wall against a program that
 * attacks the kernel, and sockets of services on this machine (a container engine, a desktop) stay within reach.
 */
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"

export interface Confinement {
  readonly workspace: string
  readonly temporary: string
  /** Further folders to write. */
  readonly write: ReadonlyArray<string>
  /** Folders with keys and sessions, which nobody sees. */
  readonly hidden: ReadonlyArray<string>
  readonly network: boolean
}

/** What in a workspace decides over what runs outside of it later, and so stays as it is. What is not there: see `guard`. */
const guarded = [
  ".bezel",
  "bezel.jsonc",
  ...["hooks", "config", "config.worktree", "commondir"].map((name) => path.join(".git", name))
]

/** The same of submodules: git looks into them with their settings. */
const guardedModules = (workspace: string): ReadonlyArray<string> => {
  const modules = path.join(".git", "modules")
  try {
    return fs.readdirSync(path.join(workspace, modules)).flatMap((name) =>
      ["hooks", "config"].map((guarded) => path.join(modules, name, guarded))
    )
  } catch {
    return []
  }
}

const binds = (folders: ReadonlyArray<string>): ReadonlyArray<string> =>
  folders.flatMap((folder) => ["--bind-try", folder, folder])

const isBelow = (folder: string, other: string): boolean => folder.startsWith(other + path.sep)

/** The program with its options, in front of the words that it runs. */
export const bubblewrap = (
  { hidden, network, temporary, workspace, write }: Confinement
): readonly [string, ...ReadonlyArray<string>] => [
  "bwrap",
  "--ro-bind",
  "/",
  "/",
  "--dev-bind",
  "/dev",
  "/dev",
  // Later ones lie over earlier ones: what is hidden stays so within a folder that can be written, as the home folder, and
  // only a folder within a hidden one is seen again.
  ...binds([temporary, ...write, workspace]),
  ...hidden.filter((folder) => fs.existsSync(folder)).flatMap((folder) => ["--tmpfs", folder]),
  ...binds([temporary, ...write, workspace].filter((folder) => hidden.some((other) => isBelow(folder, other)))),
  // A mount of its own cannot be moved away and replaced by another that has other hooks.
  ...binds([path.join(workspace, ".git")]),
  ...[...guarded, ...guardedModules(workspace)].flatMap((name) => {
    const file = path.join(workspace, name)
    return ["--ro-bind-try", file, file]
  }),
  ...(network ? [] : ["--unshare-net"]),
  // Of a command of root, what would let it change all this again.
  "--cap-drop",
  "ALL",
  "--"
]

/** Why bubblewrap cannot be used here, in one sentence; `null`: it can. */
export const problemOf = (words: readonly [string, ...ReadonlyArray<string>]): Effect.Effect<string | null> =>
  Effect.callback((resume) => {
    const [program, ...options] = words
    execFile(program, [...options, "true"], { timeout: 10_000, encoding: "utf8" }, (error, _, stderr) => {
      if (error === null) return resume(Effect.succeed(null))
      const said = stderr.trim().split("\n", 1)[0]?.slice(0, 200) ?? ""
      resume(Effect.succeed(
        process.platform !== "linux"
          ? "it works on Linux only"
          : error.code === "ENOENT"
          ? "bubblewrap (bwrap) is not installed"
          : `bubblewrap does not work here${said === "" ? "" : `: ${said}`}`
      ))
    })
  })
