/**
 * The scripted session as a process: `program.ts <backend> <folder> [before|after <commit>]`. It says what it was told,
 * one line each, and kills itself at the commit it was given; without one it runs to the end of the script.
 */
import type { Storage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { type Backend, runLife } from "./session-script.ts"

const [backend = "sqlite", folder = ".", when = "never", commit = "0"] = process.argv.slice(2)

// Written before the next step: what a pipe has, a kill does not take back.
const say = (line: string): void => {
  fs.writeSync(1, `${line}\n`)
}

const die = (): void => {
  process.kill(process.pid, "SIGKILL")
}

let commits = 0
const wrap = (storage: Storage): Storage => ({
  ...storage,
  commit: (batch) =>
    Effect.suspend(() => {
      commits++
      const here = commits === Number(commit)
      if (here && when === "before") die()
      return Effect.map(storage.commit(batch), (sequence) => {
        if (here && when === "after") die()
        return sequence
      })
    })
})

say("ready")
await Effect.runPromise(runLife({ backend: backend as Backend, folder, say, wrap }))
say(`end ${commits}`)
