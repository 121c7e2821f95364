/**
 * A process host whose jobs outlive it: each runs under a small shell of its own, and what happens to it is in files.
 *
 *   <folder>/<key>/started/   made by the job's shell before it runs the command: whoever makes it, runs it, once
 *   <folder>/<key>/pid        its process id and start time, which together name one process
 *   <folder>/<key>/output     what it writes
 *   <folder>/<key>/exit       its exit code, there only when it has ended in good order
 *
 * A job whose shell was killed together with the machine has neither a live process nor an exit code, and is `unknown`.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { type ProcessHost, ProcessHostError, type ProcessSpec, type ProcessStatus } from "./process-host.ts"

/** Claims the folder, names itself, runs the command, and says how it ended; each file appears whole. */
const script = [
  "mkdir started 2>/dev/null || exit 0",
  "echo \"$$ $(cut -d' ' -f22 /proc/$$/stat 2>/dev/null)\" > pid.new && mv pid.new pid",
  "directory=$1; shift",
  "folder=$PWD",
  '(cd "$directory" && exec "$@") > output 2>&1 < /dev/null',
  "code=$?",
  'cd "$folder" && echo $code > exit.new && mv exit.new exit'
].join("\n")

const graceMillis = 2_000

export const makeFileProcessHost = (folder: string): ProcessHost => {
  const folderOf = (key: string): string => path.join(folder, encodeURIComponent(key))

  const read = (key: string, name: string): string | null => {
    try {
      return fs.readFileSync(path.join(folderOf(key), name), "utf8")
    } catch {
      return null
    }
  }

  const statusOf = (key: string): ProcessStatus => {
    const exit = read(key, "exit")
    if (exit !== null) return exited(Number(exit.trim()))
    const named = read(key, "pid")
    if (named === null) return { state: "unknown" }
    const [pid = "", startTime = ""] = named.trim().split(" ")
    if (isAlive(Number(pid), startTime)) return { state: "running", pid: Number(pid) }
    // It may have ended between the two reads.
    const late = read(key, "exit")
    return late === null ? { state: "unknown" } : exited(Number(late.trim()))
  }

  const hasStarted = (key: string): boolean => fs.existsSync(path.join(folderOf(key), "started"))

  const launch = (key: string, spec: ProcessSpec): void => {
    fs.mkdirSync(folderOf(key), { recursive: true, mode: 0o700 })
    const child = spawn("/bin/sh", ["-c", script, "sh", spec.directory, ...spec.command], {
      cwd: folderOf(key),
      env: { ...process.env, ...spec.env },
      detached: true,
      stdio: "ignore"
    })
    child.on("error", () => {})
    child.unref()
  }

  const start = Effect.fn("ProcessHost.start")(function*(key: string, spec: ProcessSpec) {
    if (spec.command.length === 0) return yield* new ProcessHostError({ message: "A job needs a command." })
    if (!fs.existsSync(spec.directory)) {
      return yield* new ProcessHostError({ message: `The directory ${spec.directory} of the job does not exist.` })
    }
    if (!hasStarted(key)) yield* attempt(() => launch(key, spec))
    for (let tries = 0; tries < 1_000 && read(key, "pid") === null && read(key, "exit") === null; tries++) {
      yield* Effect.sleep(10)
    }
    return statusOf(key)
  })

  const kill = Effect.fn("ProcessHost.kill")(function*(key: string) {
    const status = statusOf(key)
    if (status.state !== "running") return
    yield* attempt(() => signalGroup(status.pid, "SIGTERM"))
    for (let waited = 0; waited < graceMillis; waited += 50) {
      if (statusOf(key).state !== "running") return
      yield* Effect.sleep(50)
    }
    yield* attempt(() => signalGroup(status.pid, "SIGKILL"))
  })

  return {
    start,
    status: (key) => Effect.sync(() => statusOf(key)),
    kill,
    output: (key, maxCharacters) => attempt(() => tailOf(path.join(folderOf(key), "output"), maxCharacters))
  }
}

const attempt = <A>(run: () => A): Effect.Effect<A, ProcessHostError> =>
  Effect.try({
    try: run,
    catch: (error) => new ProcessHostError({ message: error instanceof Error ? error.message : String(error) })
  })

/** A shell reports a signal as 128 and its number. */
const exited = (code: number): ProcessStatus =>
  code > 128 && code < 160
    ? { state: "exited", code, signal: signalNames[code - 128] ?? `signal ${code - 128}` }
    : { state: "exited", code, signal: null }

const signalNames: { readonly [number: number]: string } = {
  1: "SIGHUP",
  2: "SIGINT",
  6: "SIGABRT",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  15: "SIGTERM"
}

/** A process id is used again after its process; the start time tells them apart where the system shows it. */
const isAlive = (pid: number, startTime: string): boolean => {
  if (!Number.isInteger(pid) || pid <= 1) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
  if (startTime === "") return true
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[19] === startTime && fields[0] !== "Z"
  } catch {
    return false
  }
}

const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error
  }
}

const tailOf = (file: string, maxCharacters: number): string => {
  let handle: number
  try {
    handle = fs.openSync(file, "r")
  } catch {
    return ""
  }
  try {
    const size = fs.fstatSync(handle).size
    const length = Math.min(size, maxCharacters * 4)
    const bytes = Buffer.alloc(length)
    fs.readSync(handle, bytes, 0, length, size - length)
    return bytes.toString("utf8").slice(-maxCharacters)
  } finally {
    fs.closeSync(handle)
  }
}
