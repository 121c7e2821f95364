/**
 * What sessions of the past have kept of files: after a time it is more room than it is worth.
 *
 * What a session needs to go on watching commands is made anew when it does, and goes after two days; what it needs to take
 * something back, after thirty. Both count from the last time that the session wrote there. Where not even the newest other
 * one is younger than that, or one lies ahead, the clock may just be wrong, and the next time decides.
 */
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"

const dayMillis = 24 * 60 * 60 * 1_000
const keepMillis = 30 * dayMillis

const writtenAt = (path: string): Promise<number | null> =>
  FileSystem.stat(path).then((stats) => stats.mtimeMs, () => null)

/** Looks at the snapshots of all sessions beside that of this folder, `<sessions>/<id>/snapshots`. */
export const sweepSnapshots = async (folder: string, now = Date.now()): Promise<void> => {
  const name = NodePath.basename(folder)
  const sessions = NodePath.dirname(NodePath.dirname(folder))
  if (name !== "snapshots") return
  const others: Array<{ readonly path: string; readonly age: number }> = []
  for (const id of await FileSystem.readdir(sessions)) {
    const path = NodePath.join(sessions, id, name)
    const at = path === folder ? null : await writtenAt(NodePath.join(path, "journal.jsonl"))
    if (at !== null) others.push({ path, age: now - at })
  }
  const ages = others.map(({ age }) => age)
  if (Math.min(...ages) > keepMillis || Math.min(...ages) < -dayMillis) return
  const remove = (path: string) => FileSystem.rm(path, { recursive: true, force: true }).catch(() => {})
  for (const { age, path } of others) {
    if (age > keepMillis) await remove(path)
    else if (age > 2 * dayMillis) await remove(NodePath.join(path, "tree"))
  }
}
