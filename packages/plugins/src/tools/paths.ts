/**
 * Paths of tools: relative to the location, resolved to where they really lead.
 *
 * A path is resolved before permission rules see it, so that a symlink or `..` cannot name one file and touch another.
 * Of a path that does not exist yet, the nearest existing parent is resolved and the rest appended.
 */
import { ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import { readlinkSync, realpathSync } from "node:fs"
import { homedir } from "node:os"
import * as NodePath from "node:path"

/**
 * The real absolute path of what `path` names, seen from `directory`; `~/` is the home folder, as for a shell. Synchronous,
 * because permission rules need it.
 */
export const resolvePath = (directory: string, path: string): string => {
  let absolute = NodePath.resolve(directory, /^~(?:\/|$)/.test(path) ? homedir() + path.slice(1) : path)
  // A dangling symlink is followed by hand: writing to it creates its target.
  for (let hops = 0; hops < 40; hops++) {
    const found = nearest(absolute)
    const target = found.rest === "" ? null : linkTarget(found.parent, found.rest)
    if (target === null) return found.rest === "" ? found.parent : NodePath.join(found.parent, found.rest)
    absolute = target
  }
  return absolute
}

const nearest = (absolute: string): { readonly parent: string; readonly rest: string } => {
  let parent = absolute
  let rest = ""
  for (;;) {
    try {
      return { parent: realpathSync.native(parent), rest }
    } catch {
      const up = NodePath.dirname(parent)
      if (up === parent) return { parent, rest }
      rest = NodePath.join(NodePath.basename(parent), rest)
      parent = up
    }
  }
}

const linkTarget = (parent: string, rest: string): string | null => {
  const [first = "", ...deeper] = rest.split(NodePath.sep)
  try {
    return NodePath.join(NodePath.resolve(parent, readlinkSync(NodePath.join(parent, first))), ...deeper)
  } catch {
    return null
  }
}

/** Refuses what no file system takes. */
export const checkPath = (path: string): Effect.Effect<void, ToolFailure> =>
  path === ""
    ? Effect.fail(new ToolFailure({ message: "The path is empty. Name a file or directory." }))
    : path.includes("\u0000")
    ? Effect.fail(new ToolFailure({ message: "The path contains a NUL character, which no file name can." }))
    : Effect.void

/** As a person would name it: relative inside the directory, absolute outside. */
export const showPath = (directory: string, path: string): string => {
  const relative = NodePath.relative(directory, path)
  if (relative === "") return "."
  return relative === ".." || relative.startsWith(`..${NodePath.sep}`) || NodePath.isAbsolute(relative)
    ? path
    : relative
}

/** A path that is longer is named by its beginning. */
const shownUnits = 300

/** What went wrong with a file, in one sentence that says what to do. */
export const fileFailure = (what: string, path: string, cause: unknown): ToolFailure => {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""
  const reason = reasons[code] ?? (cause instanceof Error ? cause.message : String(cause))
  return new ToolFailure({
    message: `${what} ${path.length > shownUnits ? `${path.slice(0, shownUnits)}…` : path}: ${reason}.`
  })
}

const reasons: { readonly [code: string]: string } = {
  ENOENT: "there is no such file or directory",
  EACCES: "permission denied by the file system",
  EPERM: "the operation is not permitted",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of the path is a file, not a directory",
  ELOOP: "its symbolic links go in a circle",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EMFILE: "too many files are open; try again",
  ETXTBSY: "it is a program that is running",
  EEXIST: "it exists already",
  ENXIO: "it is a device or a pipe that nobody answers"
}

/** Runs file-system work; what it throws becomes a failure that names the path. */
export const attempt = <A>(what: string, path: string, run: () => Promise<A>): Effect.Effect<A, ToolFailure> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => cause instanceof ToolFailure ? cause : fileFailure(what, path, cause)
  })
