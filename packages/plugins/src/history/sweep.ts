/**
 * What sessions of the past have kept of files: after a time it is more room than it is worth.
 *
 * What a session needs to go on watching commands is made anew when it does, and goes after two days; what it needs to take
 * something back, after thirty. Both count from the last time that the session wrote there.
 */
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"

const dayMillis = 24 * 60 * 60 * 1_000

const writtenAt = (path: string): Promise<number | null> =>
  FileSystem.stat(path).then((stats) => stats.mtimeMs, () => null)

/** Looks at the snapshots of all sessions beside that of this folder, `<sessions>/<id>/snapshots`. */
export const sweepSnapshots = async (folder: string, now = Date.now()): Promise<void> => {
  const name = NodePath.basename(folder)
  const sessions = NodePath.dirname(NodePath.dirname(folder))
  if (name !== "snapshots") return
  for (const id of await FileSystem.readdir(sessions)) {
    const other = NodePath.join(sessions, id, name)
    const at = await writtenAt(NodePath.join(other, "journal.jsonl"))
    if (other === folder || at === null) continue
    const remove = (path: string) => FileSystem.rm(path, { recursive: true, force: true }).catch(() => {})
    if (now - at > 30 * dayMillis) await remove(other)
    else if (now - at > 2 * dayMillis) await remove(NodePath.join(other, "git"))
  }
}
