/** Sessions as a tree: each below the one that it was forked from. Pure. */
import type { PickerEntry } from "./contract.ts"

export interface TreeEntry {
  readonly entry: PickerEntry
  /** How many forks it is away from a session that was not forked, or whose origin is not in the list. */
  readonly depth: number
}

/** In the order of the list, with the forks of each, theirs included, right behind it. */
export const forkTree = (entries: ReadonlyArray<PickerEntry>): ReadonlyArray<TreeEntry> => {
  const listed = new Set(entries.map(({ sessionID }) => sessionID))
  const forks = new Map<string, Array<PickerEntry>>()
  const roots: Array<PickerEntry> = []
  for (const entry of entries) {
    const { forkedFrom, sessionID } = entry
    if (forkedFrom === undefined || forkedFrom === sessionID || !listed.has(forkedFrom)) roots.push(entry)
    else forks.set(forkedFrom, [...forks.get(forkedFrom) ?? [], entry])
  }
  const tree: Array<TreeEntry> = []
  const placed = new Set<string>()
  const place = (entry: PickerEntry, depth: number) => {
    if (placed.has(entry.sessionID)) return
    placed.add(entry.sessionID)
    tree.push({ entry, depth })
    for (const fork of forks.get(entry.sessionID) ?? []) place(fork, depth + 1)
  }
  for (const root of roots) place(root, 0)
  // What only leads in a circle has no root; it is shown all the same.
  for (const entry of entries) place(entry, 0)
  return tree
}

/** Those whose title has every word, in any case; all of them for no words. */
export const searchSessions = (entries: ReadonlyArray<PickerEntry>, words: string): ReadonlyArray<PickerEntry> => {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "")
  return entries.filter(({ sessionID, title }) =>
    wanted.every((word) => title.toLowerCase().includes(word) || sessionID.includes(word))
  )
}
