/**
 * Takes the steps of a plan, all of them or none.
 *
 * Each looks again right before it acts, and writes beside the file and renames, so that nobody sees half a file. If one
 * cannot be taken, those before it are undone. What a step replaces has been kept before the first one is taken.
 */
import { randomBytes } from "node:crypto"
import { constants } from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import { type FileState, observe, sameState } from "./file-state.ts"
import type { KeptContent } from "./kept-content.ts"
import { reversed, type Step } from "./plan.ts"

/** A step that could not be taken; nothing of the plan was done, unless `left` names files that could not be put back. */
export class NotApplied extends Error {
  readonly path: string
  readonly left: ReadonlyArray<string>

  constructor(path: string, why: string, left: ReadonlyArray<string>) {
    super(`${path}: ${why}`)
    this.path = path
    this.left = left
  }
}

const why = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** Keeps what these steps replace, and makes sure that what they put back is there. Gives those that lack it. */
export const keepContents = async (
  steps: ReadonlyArray<Step>,
  kept: KeptContent,
  maxFileBytes: number
): Promise<ReadonlyArray<string>> => {
  const missing: Array<string> = []
  for (const { from, path, to } of steps) {
    if (from.type === "file" || from.type === "link") {
      const { content, state } = await observe(path, maxFileBytes)
      if (content !== null && sameState(state, from)) await kept.put(from.id, content)
    }
    if ((to.type === "file" || to.type === "link") && !kept.has(to.id)) missing.push(path)
  }
  return missing
}

/** Takes the steps in order. `isResumed` lets pass those that were taken already. */
export const applySteps = async (
  steps: ReadonlyArray<Step>,
  kept: KeptContent,
  maxFileBytes: number,
  isResumed = false
): Promise<void> => {
  const taken: Array<Step> = []
  for (const step of steps) {
    try {
      const { state } = await observe(step.path, maxFileBytes)
      if (isResumed && sameState(state, step.to)) continue
      if (!isAs(state, step.from)) throw new Error("it has been changed meanwhile")
      await take(step, kept)
      taken.push(step)
    } catch (error) {
      throw new NotApplied(step.path, why(error), await undo(taken, kept, maxFileBytes))
    }
  }
}

/** A folder that is empty by now counts as nothing. */
const isAs = (now: FileState, expected: FileState): boolean =>
  sameState(now, expected) || now.type === "unkept" && now.what === "folder" && expected.type === "absent"

/** Takes back what can be of these steps; gives the paths that are not as they were. */
export const undo = async (
  taken: ReadonlyArray<Step>,
  kept: KeptContent,
  maxFileBytes: number
): Promise<ReadonlyArray<string>> => {
  const left: Array<string> = []
  for (const step of reversed(taken)) {
    try {
      const { state } = await observe(step.path, maxFileBytes)
      if (sameState(state, step.to)) continue
      if (!isAs(state, step.from)) throw new Error("it has been changed meanwhile")
      await take(step, kept)
    } catch {
      left.push(step.path)
    }
  }
  return left
}

const take = async ({ from, path, to }: Step, kept: KeptContent): Promise<void> => {
  if (to.type === "absent") {
    await FileSystem.unlink(path)
    return prune(NodePath.dirname(path), to.below)
  }
  if (to.type === "unkept") throw new Error("its content was not kept")
  const content = await kept.get(to.id)
  if (content === null) throw new Error("what was in it is not kept any more")
  await FileSystem.mkdir(NodePath.dirname(path), { recursive: true })
  await removeEmptyFolder(path)
  const temporary = NodePath.join(NodePath.dirname(path), `.${randomBytes(6).toString("hex")}.bezel.tmp`)
  try {
    if (to.type === "link") await FileSystem.symlink(content, temporary)
    else await writeNew(temporary, content, to.mode, from.type === "file" ? path : null)
    await FileSystem.rename(temporary, path)
  } catch (error) {
    await FileSystem.rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}

const writeNew = async (path: string, content: Buffer, mode: number, ownedLike: string | null): Promise<void> => {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const handle = await FileSystem.open(path, flags, 0o600)
  try {
    await handle.writeFile(content)
    const like = ownedLike === null ? null : await FileSystem.lstat(ownedLike)
    if (like !== null) await handle.chown(like.uid, like.gid).catch(() => {})
    await handle.chmod(mode)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** A folder that stands where a file belongs, with nothing in it but empty folders. */
const removeEmptyFolder = async (path: string): Promise<void> => {
  const stats = await FileSystem.lstat(path).catch(() => null)
  if (stats?.isDirectory() !== true) return
  for (const name of await FileSystem.readdir(path)) await removeEmptyFolder(NodePath.join(path, name))
  await FileSystem.rmdir(path)
}

/** Removes folders that were not there before, as far as they are empty; `below` was there. */
const prune = async (folder: string, below: string | undefined): Promise<void> => {
  if (below === undefined || !folder.startsWith(`${below}${NodePath.sep}`)) return
  try {
    await FileSystem.rmdir(folder)
  } catch {
    return
  }
  return prune(NodePath.dirname(folder), below)
}
