/**
 * One walk through a folder that finds what may have changed since the last one: the cost is a look at each file's stamp.
 *
 * Known files are looked at wherever they are, like git does with what is in its index; new ones are found where git would
 * not ignore them, and not in repositories inside the folder. Links are never followed. What git ignores is not walked, but
 * the ignored entries themselves are told. Synchronous within a folder, and others get their turn between folders.
 */
import * as fs from "node:fs"
import * as NodePath from "node:path"
import { type IgnoreRules, isIgnored, rulesBelow } from "../tools/ignore.ts"
import { lookAt } from "./file-state.ts"
import { hasStamp, type KnownFile, type KnownFiles } from "./known-files.ts"

export interface Scan {
  /** Files that are new or have another stamp. */
  readonly candidates: ReadonlyArray<string>
  /** Known files that are not there any more, each with the nearest folder that is: what a link leads to is not there. */
  readonly gone: ReadonlyArray<{ readonly path: string; readonly folder: string }>
  /** Entries that git ignores, in folders that it does not ignore; folders end in a separator. */
  readonly ignored: ReadonlyArray<string>
}

export interface ScanPlace {
  readonly location: string
  /** The top of the repository that it is in, or itself. */
  readonly root: string
  /** What is ignored beside `.gitignore` files. */
  readonly top: IgnoreRules
  /** Folders that are left out. */
  readonly excluded: ReadonlySet<string>
}

/** How long nobody else gets a turn. */
const sliceMillis = 8

/** Gives others a turn when it is time; fails once `signal` is aborted. */
export const makePace = (signal: AbortSignal | null): () => Promise<void> | null => {
  let since = performance.now()
  return () => {
    if (performance.now() - since < sliceMillis) return null
    return new Promise((resume, fail) =>
      setImmediate(() => {
        since = performance.now()
        if (signal?.aborted === true) fail(new Error("looking through it takes too long"))
        else resume()
      })
    )
  }
}

const isEntry = (entry: fs.Dirent): boolean => entry.isFile() || entry.isSymbolicLink()

export const scan = async (
  { excluded, location, root, top }: ScanPlace,
  known: KnownFiles,
  pace: () => Promise<void> | null
): Promise<Scan> => {
  const candidates: Array<string> = []
  const gone: Array<{ readonly path: string; readonly folder: string }> = []
  const ignored: Array<string> = []
  const visited = new Set<string>()
  const rulesOfFolder = new Map<string, IgnoreRules | null>()

  /** The rules in a folder; `null` in one that is ignored. Worked out only where something unknown is. */
  const rulesIn = (folder: string): IgnoreRules | null => {
    const had = rulesOfFolder.get(folder)
    if (had !== undefined) return had
    const above = folder === root || !folder.startsWith(root) ? top : rulesIn(NodePath.dirname(folder))
    const isOut = above === null || folder !== root && isIgnored(above, folder, true)
    const rules = isOut ? null : rulesBelow(above, folder)
    rulesOfFolder.set(folder, rules)
    return rules
  }

  const check = (path: string, name: string, file: KnownFile, files: Map<string, KnownFile>): void => {
    const stats = lookAt(path)
    if (stats === null || !hasStamp(file, stats)) candidates.push(path)
    else if (file.stamp?.mode === null) {
      // Git's index has only part of the mode.
      const { ctimeMs, ino, mode, mtimeMs, size } = stats
      const { state } = file
      files.set(name, {
        state: state.type === "file" ? { ...state, mode: mode & 0o7777, size } : state,
        stamp: { ctimeMs, ino, mode, mtimeMs, size }
      })
    }
  }

  const folders = [location]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = entriesOf(folder)
    // A repository inside, or one that may not be read: what is known of it is looked at below.
    if (entries === null || (folder !== location && entries.some(({ name }) => name === ".git"))) continue
    visited.add(folder)
    const files = known.folders.get(folder)
    let present = 0
    const prefix = folder === NodePath.sep ? folder : folder + NodePath.sep
    for (const entry of entries) {
      const path = prefix + entry.name
      if (entry.isDirectory()) {
        if (entry.name === ".git" || excluded.has(path)) continue
        if (known.hasBelow(path)) folders.push(path)
        else {
          const rules = rulesIn(folder)
          if (rules === null) continue
          if (isIgnored(rules, path, true)) ignored.push(path + NodePath.sep)
          else folders.push(path)
        }
        continue
      }
      const file = files?.get(entry.name)
      if (file !== undefined && files !== undefined) {
        present++
        check(path, entry.name, file, files)
      } else if (isEntry(entry)) {
        const rules = rulesIn(folder)
        if (rules === null) continue
        if (isIgnored(rules, path, false)) ignored.push(path)
        else candidates.push(path)
      }
    }
    if (files !== undefined && present < files.size) {
      const names = new Set(entries.flatMap((entry) => entry.isDirectory() ? [] : [entry.name]))
      for (const name of files.keys()) if (!names.has(name)) gone.push({ path: prefix + name, folder })
    }
    const turn = pace()
    if (turn !== null) await turn
  }
  const real = new Map([[location, true]])
  for (const [folder, files] of known.folders) {
    if (visited.has(folder)) continue
    let nearest = folder
    while (!isRealFolder(nearest, real) && nearest !== location) nearest = NodePath.dirname(nearest)
    for (const [name, file] of files) {
      const path = NodePath.join(folder, name)
      if (nearest === folder) check(path, name, file, files)
      else gone.push({ path, folder: nearest })
    }
  }
  return { candidates, gone, ignored }
}

const entriesOf = (folder: string): ReadonlyArray<fs.Dirent> | null => {
  try {
    return fs.readdirSync(folder, { withFileTypes: true })
  } catch {
    return null
  }
}

/** Whether a folder and all above it, up to one that is known to be, are folders and no links to some. */
const isRealFolder = (folder: string, real: Map<string, boolean>): boolean => {
  const had = real.get(folder)
  if (had !== undefined) return had
  const above = NodePath.dirname(folder)
  const isReal = above !== folder && isRealFolder(above, real) && lookAt(folder)?.isDirectory() === true
  real.set(folder, isReal)
  return isReal
}
