/**
 * Which processes a session host consists of, and ending all of them.
 *
 * A process belongs to a host if the host's mark is in its environment, which children inherit also when they leave the
 * process group or outlive their parent, if it is in the host's process group, or if it descends from one that does. The mark
 * is read from `/proc`, where there is one; elsewhere only descent and the group are known. A session's durable jobs are not
 * of the host, although it has started them: they outlive it, and the session finds them again.
 */
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"

/** Environment variable that carries the mark of a host. It is no secret. */
export const hostMark = "BEZEL_HOST_ID"

/** A process by its number and when it started, which together name one process. */
export interface ProcessName {
  readonly pid: number
  /** In whatever unit the system has. */
  readonly start: string
}

interface Row extends ProcessName {
  readonly parent: number
  readonly group: number
  readonly marked: boolean
}

const hasProc = process.platform === "linux"

// Start times count from the start of the machine, and process ids begin anew with it.
const machineStart = hasProc ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").slice(0, 8) : ""

const procRow = (pid: number, mark: string | null): Row | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    // The name stands in parentheses and may hold anything, parentheses too.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    if (fields[0] === "Z" || fields[0] === "X") return null
    const marked = mark !== null && environmentOf(pid).includes(`${hostMark}=${mark}`)
    return { pid, parent: Number(fields[1]), group: Number(fields[2]), marked, start: `${machineStart}:${fields[19]}` }
  } catch {
    return null
  }
}

const environmentOf = (pid: number): ReadonlyArray<string> => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")
  } catch {
    // Somebody else's process.
    return []
  }
}

const psRows = (only?: number): ReadonlyArray<Row> =>
  spawnSync("ps", [...(only === undefined ? ["-A"] : ["-p", String(only)]), "-o", "pid=,ppid=,pgid=,stat=,lstart="], {
    encoding: "utf8"
  }).stdout.split("\n").flatMap((line): ReadonlyArray<Row> => {
    const found = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+)$/.exec(line)
    if (found === null || found[4]?.startsWith("Z") === true) return []
    const [, pid = "0", parent = "0", group = "0", , start = ""] = found
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), marked: false, start: start.trim() }]
  })

const allRows = (mark: string): ReadonlyArray<Row> =>
  hasProc
    ? readdirSync("/proc").flatMap((name) => {
      const row = /^\d+$/.test(name) ? procRow(Number(name), mark) : null
      return row === null ? [] : [row]
    })
    : psRows()

/** When a process started; `null` if there is none of that number. */
export const startOf = (pid: number): string | null =>
  (hasProc ? procRow(pid, null) : psRows(pid)[0] ?? null)?.start ?? null

/** Whether exactly this process still lives. */
export const isSameProcess = ({ pid, start }: ProcessName): boolean => startOf(pid) === start

/** A durable job works in a folder where it has left its own process id; see the process host of `@bezel/core/turn`. */
const isDurableJob = (pid: number): boolean => {
  if (!hasProc) return false
  try {
    return readFileSync(`/proc/${pid}/cwd/pid`, "utf8").startsWith(`${pid} `)
  } catch {
    return false
  }
}

/** With all that descends from them. */
const grow = (members: Set<number>, rows: ReadonlyArray<Row>): Set<number> => {
  for (let before = -1; members.size !== before;) {
    before = members.size
    for (const { parent, pid } of rows) if (members.has(parent)) members.add(pid)
  }
  return members
}

/** What lives of a host. */
export const membersOf = (mark: string, root: ProcessName | null): ReadonlyArray<ProcessName> => {
  const rows = allRows(mark)
  const rootLives = root !== null && rows.some((row) => row.pid === root.pid && row.start === root.start)
  const isRoot = (row: Row) => row.marked || (rootLives && (row.pid === root.pid || row.group === root.pid))
  const members = grow(new Set(rows.filter(isRoot).map(({ pid }) => pid)), rows)
  members.delete(process.pid)
  const jobs = grow(new Set([...members].filter(isDurableJob)), rows)
  return rows.filter(({ pid }) => members.has(pid) && !jobs.has(pid))
}

const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // Gone already, or not ours.
  }
}

// Processes live in real time, also where the program's clock is a test's.
const pause = (millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

/** Ends a host with everything that it has started: first asked, then killed. Takes two seconds at most. */
export const endProcesses = (mark: string, root: ProcessName | null): Effect.Effect<void> =>
  Effect.gen(function*() {
    const known = new Map<number, ProcessName>()
    for (let round = 0; round < 80; round++) {
      for (const member of membersOf(mark, root)) known.set(member.pid, member)
      const alive = [...known.values()].filter(isSameProcess)
      if (alive.length === 0) return
      // Again and again, because one that forks can be ahead of a single look.
      const signal = round === 0 ? "SIGTERM" : round >= 20 ? "SIGKILL" : null
      if (signal !== null) { for (const { pid } of alive) send(pid, signal) }
      yield* pause(25)
    }
  })
