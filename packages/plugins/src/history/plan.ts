/**
 * What putting files back means: from what a session changed to the steps that undo it, or to what is in the way.
 *
 * A file is put back only if it holds what the session left there, and nobody else changed it between two changes of the
 * session. Everything else is a conflict. Pure but for looking at files; nothing is changed here.
 */
import type { RevertConflict } from "@bezel/core/session"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import { type FileState, observe, sameState } from "./file-state.ts"
import type { Change } from "./journal.ts"

/** One file that goes from what is there to what was there. */
export interface Step {
  readonly path: string
  readonly from: FileState
  readonly to: FileState
}

export interface Plan {
  readonly steps: ReadonlyArray<Step>
  readonly conflicts: ReadonlyArray<RevertConflict>
  /** Files that are left as they are because their content was not kept. */
  readonly left: ReadonlyArray<{ readonly path: string; readonly size: number }>
}

/** What a session did to one path, all together. */
interface Net {
  readonly path: string
  readonly before: FileState
  after: FileState
  isBroken: boolean
  isUncertain: boolean
}

const netOf = (changes: ReadonlyArray<Change>): ReadonlyArray<Net> => {
  const nets = new Map<string, Net>()
  for (const { after, before, path, uncertain } of changes) {
    const net = nets.get(path)
    if (net === undefined) {
      nets.set(path, { path, before, after, isBroken: false, isUncertain: uncertain === true })
      continue
    }
    if (!continues(net.after, before)) net.isBroken = true
    if (uncertain === true) net.isUncertain = true
    net.after = after
  }
  return [...nets.values()]
}

/** What is lost in between is not needed. */
const continues = (after: FileState, before: FileState): boolean =>
  sameState(after, before) || (before.type === "unkept" && "id" in after && before.stamp === after.id)

/** The plan that undoes these changes, oldest first. */
export const planOf = (changes: ReadonlyArray<Change>, maxFileBytes: number): Promise<Plan> =>
  planSteps(
    netOf(changes).map(({ after, before, isBroken, isUncertain, path }) => ({
      path,
      from: after,
      to: before,
      doubt: isBroken
        ? "somebody else changed it between two changes of this session"
        : isUncertain
        ? "it changed while something of this session was cut off, while another session worked here, or when the clock was set back"
        : null
    })),
    maxFileBytes
  )

/** The plan for these steps, of which `doubt` keeps one from being taken unless there is nothing left to do. */
export const planSteps = async (
  wanted: ReadonlyArray<Step & { readonly doubt: string | null }>,
  maxFileBytes: number
): Promise<Plan> => {
  const steps: Array<Step> = []
  const conflicts: Array<RevertConflict> = []
  const left: Array<{ readonly path: string; readonly size: number }> = []
  for (const { doubt, from, path, to } of wanted) {
    const now = await observe(path, maxFileBytes).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error)
    )
    if (typeof now === "string") {
      conflicts.push({ path, reason: `it cannot be read: ${now}` })
      continue
    }
    const { state } = now
    if (sameState(state, to)) continue
    const unkept = [from, to].find((one) => one.type === "unkept")
    if (unkept?.type === "unkept") left.push({ path, size: unkept.size })
    else if (doubt !== null) conflicts.push({ path, reason: doubt })
    else if (sameState(state, from)) steps.push({ path, from: state, to })
    else if (state.type === "unkept" && state.what === "folder" && from.type === "absent") {
      // The files in it go first; whether anything else is in it shows below.
      steps.push({ path, from, to })
    } else conflicts.push({ path, reason: changedSince(from, state) })
  }
  const blocked = await blockedSteps(steps)
  return {
    steps: inOrder(steps.filter(({ path }) => !blocked.has(path))),
    conflicts: [...conflicts, ...[...blocked].map(([path, reason]) => ({ path, reason }))]
      .toSorted((one, other) => one.path < other.path ? -1 : 1),
    left
  }
}

const changedSince = (from: FileState, now: FileState): string => {
  if (now.type === "absent") return "it has been deleted since this session changed it"
  if (from.type === "absent") return "it is there again since this session deleted it"
  if (from.type === "file" && now.type === "file" && from.id === now.id) {
    return "its permissions have been changed since this session changed it"
  }
  return "it has been changed since this session changed it"
}

/** Steps that something in their way keeps from being taken: what is in a folder, or that a folder is none any more. */
const blockedSteps = async (steps: ReadonlyArray<Step>): Promise<ReadonlyMap<string, string>> => {
  const removed = new Set(steps.flatMap(({ path, to }) => to.type === "absent" ? [path] : []))
  const blocked = new Map<string, string>()
  for (const { path, to } of steps) {
    if (to.type === "absent") continue
    const reason = await parentFault(path, removed) ?? await contentFault(path, removed)
    if (reason !== null) blocked.set(path, reason)
  }
  return blocked
}

/** Every folder above must be a real one, or not there, or a file that is removed first. */
const parentFault = async (path: string, removed: ReadonlySet<string>): Promise<string | null> => {
  for (let folder = NodePath.dirname(path);; folder = NodePath.dirname(folder)) {
    const stats = await FileSystem.lstat(folder).catch(() => null)
    if (stats !== null) {
      if (!stats.isDirectory()) return removed.has(folder) ? null : `${folder} is not a folder any more`
      const real = await FileSystem.realpath(folder)
      return real === folder ? null : `a folder above it is now a link, to ${real}`
    }
    if (folder === NodePath.dirname(folder)) return null
  }
}

/** A folder in the place of a file must hold nothing but what is removed first. */
const contentFault = async (path: string, removed: ReadonlySet<string>): Promise<string | null> => {
  const stats = await FileSystem.lstat(path).catch(() => null)
  if (stats?.isDirectory() !== true) return null
  for (const entry of await FileSystem.readdir(path, { withFileTypes: true })) {
    const inside = NodePath.join(path, entry.name)
    if (!entry.isDirectory() && !removed.has(inside)) return `it is a folder now, with ${inside} in it`
    const fault = entry.isDirectory() ? await contentFault(inside, removed) : null
    if (fault !== null) return fault
  }
  return null
}

/** What is removed goes first, the deepest first; then what is put back, from the top. */
const inOrder = (steps: ReadonlyArray<Step>): ReadonlyArray<Step> => {
  const byPath = steps.toSorted((left, right) => left.path < right.path ? -1 : 1)
  return [
    ...byPath.filter(({ to }) => to.type === "absent").toReversed(),
    ...byPath.filter(({ to }) => to.type !== "absent")
  ]
}

/** The steps the other way round. */
export const reversed = (steps: ReadonlyArray<Step>): ReadonlyArray<Step> =>
  inOrder(steps.map(({ from, path, to }) => ({ path, from: to, to: from })))
