/** What `git status` says. Pure. */
import type { GitStatus } from "./contract.ts"

/** Reads `git status --porcelain=v2 --branch -z`. */
export const parseStatus = (root: string, output: string): GitStatus => {
  const status = {
    root,
    branch: null as string | null,
    head: null as string | null,
    upstream: null as string | null,
    ahead: 0,
    behind: 0,
    staged: 0,
    changed: 0,
    untracked: 0,
    conflicts: 0
  }
  const records = output.split("\0")
  for (let index = 0; index < records.length; index++) {
    const record = records[index] ?? ""
    const [kind, name, ...rest] = record.split(" ")
    if (kind === "#") {
      const value = rest.join(" ")
      if (name === "branch.oid") status.head = value === "(initial)" ? null : value
      else if (name === "branch.head") status.branch = value === "(detached)" ? null : value
      else if (name === "branch.upstream") status.upstream = value
      else if (name === "branch.ab") {
        status.ahead = Math.abs(Number(rest[0] ?? 0)) || 0
        status.behind = Math.abs(Number(rest[1] ?? 0)) || 0
      }
    } else if (kind === "1" || kind === "2") {
      if (name?.[0] !== ".") status.staged++
      if (name?.[1] !== ".") status.changed++
      // A renamed file's former name is a record of its own.
      if (kind === "2") index++
    } else if (kind === "u") status.conflicts++
    else if (kind === "?") status.untracked++
  }
  return status
}
