/**
 * The ledger: which session host processes a coordinator has running, on disk, so that the next one can end what a killed one
 * has left behind.
 *
 * One file per process in `run/hosts` of the state folder, written before the process starts and removed when all of it is
 * gone. It names the coordinator by process id and start time: what belongs to one that lives is left alone.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { endProcesses, isSameProcess, type ProcessName, startOf } from "./process-table.ts"

const Name = Schema.Struct({ pid: Schema.Int, start: Schema.String })
const Entry = Schema.Struct({
  mark: Schema.String,
  owner: Name,
  /** `null` from before it was started. */
  process: Schema.NullOr(Name),
  socket: Schema.String
})
type Entry = typeof Entry.Type

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Entry))

export interface Ledger {
  /** Writes down that a process is about to start; gives what completes the entry and what removes it. */
  readonly open: (
    mark: string,
    socket: string
  ) => { readonly started: (process: ProcessName) => void; readonly close: () => void }
}

/** This process by name. */
const self = (): ProcessName => ({ pid: process.pid, start: startOf(process.pid) ?? "" })

const write = (file: string, entry: Entry): void => {
  const temporary = `${file}.${process.pid}.new`
  try {
    fs.writeFileSync(temporary, JSON.stringify(entry), { mode: 0o600 })
    fs.renameSync(temporary, file)
  } catch (error) {
    // What a full disk took half of.
    fs.rmSync(temporary, { force: true })
    throw error
  }
}

/** A ledger in a folder that is there. */
export const makeLedger = (folder: string): Ledger => {
  const owner = self()
  return {
    open: (mark, socket) => {
      const file = path.join(folder, `${mark}.json`)
      write(file, { mark, owner, process: null, socket })
      return {
        started: (name) => write(file, { mark, owner, process: name, socket }),
        close: () => fs.rmSync(file, { force: true })
      }
    }
  }
}

/** Ends what coordinators that are gone have left running. Gives how many processes' entries were swept. */
export const sweep = (folder: string): Effect.Effect<number> =>
  Effect.gen(function*() {
    let swept = 0
    for (const name of fs.readdirSync(folder)) {
      const file = path.join(folder, name)
      if (!name.endsWith(".json")) continue
      const entry = yield* Effect.exit(
        Effect.flatMap(Effect.try(() => fs.readFileSync(file, "utf8")), (text) => decode(text))
      )
      if (Exit.isFailure(entry)) {
        // Another coordinator that starts now has swept it.
        if (!fs.existsSync(file)) continue
        // Written whole or not at all, so this is not one of ours.
        yield* Effect.logWarning(`${file} is no record of a session host and is left as it is.`)
        continue
      }
      const { mark, owner, process: root, socket } = entry.value
      if (isSameProcess(owner)) continue
      yield* endProcesses(mark, root)
      fs.rmSync(socket, { force: true })
      fs.rmSync(file, { force: true })
      swept++
    }
    if (swept > 0) {
      const what = swept === 1 ? "a session host" : `${swept} session hosts`
      yield* Effect.logInfo(`Ended ${what} that an earlier coordinator had left behind.`)
    }
    return swept
  })
