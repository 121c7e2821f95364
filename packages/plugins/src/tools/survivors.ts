/**
 * Commands that outlived the Bezel that ran them, because it was killed: found by a mark in their environment that names
 * that process, and ended by the next one. Where there is no `/proc` none are found.
 *
 * Nobody is taken for gone on a guess: a mark that was made in another process namespace, or a process that cannot be looked
 * at, is left alone. So is what this process itself runs in.
 */
import * as Effect from "effect/Effect"
import { readlinkSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { type FoundProcess, killProcesses, MARK, startOf } from "./process-tree.ts"

/** Environment variable that names the Bezel that runs a command. */
export const OWNER = "BEZEL_OWNER"

const namespaceOf = (): string | null => {
  try {
    return readlinkSync("/proc/self/ns/pid")
  } catch {
    return null
  }
}

let own: string | undefined

/** The value of the variable for commands of this process: its id, when it started, and where the id means it. */
export const ownerValue = (): string => own ??= [process.pid, startOf(process.pid) ?? "", namespaceOf() ?? ""].join("/")

const isGone = (owner: string): boolean => {
  const [pid = "", start = "", namespace = ""] = owner.split("/")
  if (!/^[1-9][0-9]*$/.test(pid) || start === "" || namespace === "" || namespace !== namespaceOf()) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH"
  }
  const now = startOf(Number(pid))
  return now !== null && now !== start
}

interface Survivors {
  /** Mark of the command. */
  readonly mark: string
  readonly known: Array<FoundProcess>
}

const variable = (environment: string, name: string): string | null =>
  environment.split("\0").find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1) ?? null

/** The environment of a process that is a command's, else `null`. */
const environmentOf = async (pid: string): Promise<string | null> => {
  try {
    const bytes = await readFile(`/proc/${pid}/environ`)
    return bytes.includes(`${OWNER}=`) ? bytes.toString() : null
  } catch {
    return null
  }
}

/** Beside the work that goes on, which does not wait for a look at every process of the machine. */
const environments: Effect.Effect<ReadonlyArray<readonly [pid: string, environment: string]>> = Effect.gen(function*() {
  if (process.platform !== "linux") return []
  const pids = yield* Effect.promise(() => readdir("/proc").catch((): Array<string> => []))
  const read = yield* Effect.forEach(
    pids.filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid),
    (pid) => Effect.promise(async () => [pid, await environmentOf(pid)] as const),
    { concurrency: 4 }
  )
  return read.flatMap(([pid, environment]) => environment === null ? [] : [[pid, environment] as const])
})

const survivorsIn = (
  environments: ReadonlyArray<readonly [pid: string, environment: string]>
): ReadonlyArray<Survivors> => {
  const outer = (process.env[MARK] ?? "").split(":")
  const gone = new Map<string, boolean>()
  const found = new Map<string, Survivors>()
  for (const [pid, environment] of environments) {
    const owner = variable(environment, OWNER)
    const mark = variable(environment, MARK)?.split(":").at(-1) ?? null
    if (owner === null || mark === null || mark === "" || outer.includes(mark)) continue
    const isOrphan = gone.get(owner) ?? isGone(owner)
    gone.set(owner, isOrphan)
    const start = startOf(Number(pid))
    if (!isOrphan || start === null) continue
    const survivors = found.get(mark) ?? { mark, known: [] }
    survivors.known.push({ pid: Number(pid), command: "", start })
    found.set(mark, survivors)
  }
  return [...found.values()]
}

/** Ends what commands of a Bezel that is gone have left running; gives how many processes that were. */
export const endSurvivors: Effect.Effect<number> = Effect.flatMap(environments, (found) => {
  const all = survivorsIn(found)
  return Effect.forEach(all, ({ known, mark }) => killProcesses({ leader: null, mark, known }), {
    concurrency: "unbounded",
    discard: true
  }).pipe(Effect.as(all.reduce((count, { known }) => count + known.length, 0)))
})
