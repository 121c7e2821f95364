/**
 * The processes that one command has started, and ending all of them.
 *
 * A process belongs to a command if the command's mark is in its environment, which children inherit also when they
 * leave the process group or outlive their parent, or if it descends from one that does. The mark is read from `/proc`,
 * where there is one; elsewhere only descent and the process group are known. A process that clears its environment and
 * outlives its parent is not found.
 */
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"

/** Environment variable that carries the mark of a command, after those of the commands that it runs in. */
export const MARK = "BEZEL_CALL_ID"

/** The value of the variable for a command of this process. */
export const markValue = (mark: string, outer: string | undefined): string =>
  outer === undefined || outer === "" ? mark : `${outer}:${mark}`

export interface FoundProcess {
  readonly pid: number
  readonly command: string
  /** When it started, in whatever unit the system has: with the process id, its identity. */
  readonly start: string
}

export interface CommandProcesses {
  /**
   * Process id of the shell, which leads its own process group; `null` once the shell is gone, as ids are used again.
   */
  readonly leader: number | null
  readonly mark: string
  /** Processes that are known to belong to it, mark or not. */
  readonly known: ReadonlyArray<FoundProcess>
}

/** What is alive of a command, by process id; the shell itself included. */
export const findProcesses = (of: CommandProcesses): ReadonlyArray<FoundProcess> =>
  membersOf(of).map(({ command, pid, start }) => ({ pid, command, start }))

const membersOf = (of: CommandProcesses): ReadonlyArray<Row> => {
  const all = hasProc ? procTable(of.mark) : psTable()
  const isKnown = (row: Row) => of.known.some(({ pid, start }) => pid === row.pid && start === row.start)
  const isRoot = (row: Row) => row.marked || row.pid === of.leader || row.group === of.leader || isKnown(row)
  const members = new Set(all.filter(isRoot).map(({ pid }) => pid))
  for (let grown = true; grown;) {
    const before = members.size
    for (const { parent, pid } of all) if (members.has(parent)) members.add(pid)
    grown = members.size > before
  }
  return all.filter(({ alive, pid }) => alive && members.has(pid))
}

const TERM_WAIT_MS = 500
const KILL_WAIT_MS = 1_000
const ROUND_MS = 25

/** Ends all of them: first asked, then killed. Takes about a second at most, normally much less. */
export const killProcesses = (of: CommandProcesses): Effect.Effect<void> =>
  Effect.gen(function*() {
    signal(of, membersOf(of), "SIGTERM")
    if (!(yield* isEmptyWithin(of, TERM_WAIT_MS, null))) {
      // Again and again, because one that forks can be ahead of a single look.
      yield* isEmptyWithin(of, KILL_WAIT_MS, "SIGKILL")
    }
    signal(of, [], "SIGKILL")
  })

/**
 * Looks until two looks in a row find nothing: while one is being made, a process that lives shortly can hand on to its
 * child unseen.
 */
const isEmptyWithin = (of: CommandProcesses, ms: number, name: NodeJS.Signals | null): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    const until = performance.now() + ms
    let empty = 0
    for (;;) {
      const left = membersOf(of)
      empty = left.length === 0 ? empty + 1 : 0
      if (empty === 2) return true
      if (name !== null) signal(of, left, name)
      if (performance.now() > until) return false
      yield* realSleep(empty > 0 ? 5 : ROUND_MS)
    }
  })

// Processes live in real time, also where the program's clock is a test's.
const realSleep = (ms: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), ms)
    return Effect.sync(() => clearTimeout(timer))
  })

// Whole groups first, whether or not a look has found anybody: a signal to a group is atomic, none of it can fork away.
const signal = (of: CommandProcesses, found: ReadonlyArray<Row>, name: NodeJS.Signals): void => {
  const groups = new Set(found.map(({ group }) => group).filter((group) => group > 1))
  if (of.leader !== null) groups.add(of.leader)
  for (const group of groups) send(-group, name)
  for (const { pid } of found) send(pid, name)
}

const send = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch {
    // Gone already, or not ours.
    return
  }
}

interface Row {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly alive: boolean
  readonly marked: boolean
  readonly command: string
  readonly start: string
}

const hasProc = process.platform === "linux"

const procTable = (mark: string): ReadonlyArray<Row> => {
  const isMark = (variable: string) =>
    variable.startsWith(`${MARK}=`) && variable.slice(MARK.length + 1).split(":").includes(mark)
  return readdirSync("/proc").flatMap((name): ReadonlyArray<Row> => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1")
      // The name stands in parentheses and may hold anything, parentheses too.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      const [state = "", parent = "0", group = "0"] = fields
      const environment = readable(`/proc/${name}/environ`)
      const marked = environment.split("\0").some(isMark)
      const comm = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"))
      const command = marked ? readable(`/proc/${name}/cmdline`).split("\0").join(" ").trim() || comm : comm
      const alive = state !== "Z" && state !== "X"
      return [{
        pid: Number(name),
        parent: Number(parent),
        group: Number(group),
        alive,
        marked,
        command,
        start: fields[19] ?? ""
      }]
    } catch {
      return []
    }
  })
}

/** When a process started, by the system's own count, which with its id is its identity; `null` if it cannot be told. */
export const startOf = (pid: number): string | null => {
  const stat = readable(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null
}

const readable = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const psTable = (): ReadonlyArray<Row> =>
  spawnSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart=,command="], { encoding: "utf8" }).stdout.split("\n")
    .flatMap((line) => {
      const found = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.{24})\s+(.*)$/.exec(line)
      if (found === null) return []
      const [, pid = "0", parent = "0", group = "0", state = "", start = "", command = ""] = found
      const alive = !state.startsWith("Z")
      return [{ pid: Number(pid), parent: Number(parent), group: Number(group), alive, marked: false, command, start }]
    })
