/** `bezel session revert`: takes back turns of a session, with what they did to files, and brings them back. */
import { type RevertReport, SessionStore } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import { isAbsolute, relative, sep } from "node:path"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { Exit, exitCode } from "../exit.ts"
import { locationsLayer, openLocation } from "../host/location.ts"
import { runProcess } from "../host/process.ts"
import { oneLine, printable } from "../run/text.ts"

type Flag = Option<boolean>

/** What is to be done, or is done, in the words of a person; the diff goes before it. */
export interface RevertText {
  readonly out: string
  /** For stderr. */
  readonly notes: ReadonlyArray<string>
  readonly code: number
}

const verbs = {
  change: ["would be changed", "changed"],
  create: ["would be made again", "made again"],
  remove: ["would be removed", "removed"]
} as const

/** As seen from the session's folder, where that is shorter. */
const shownPath = (directory: string, path: string): string => {
  const inside = relative(directory, path)
  return printable(inside.startsWith(`..${sep}`) || isAbsolute(inside) ? path : inside)
}

const count = (number: number, one: string, many: string): string => number === 1 ? `1 ${one}` : `${number} ${many}`

export const revertText = (report: RevertReport, directory: string, isClearing: boolean): RevertText => {
  const isDone = report.status === "staged" || report.status === "cleared"
  const lines: Array<string> = []
  for (const { action, diff, path } of report.files) {
    lines.push(diff === null ? `${shownPath(directory, path)}: ${verbs[action][isDone ? 1 : 0]}\n` : printable(diff))
  }
  const files = count(report.files.length, "file", "files")
  const prompt = JSON.stringify(oneLine(report.prompt, 60))
  const conflicts = report.conflicts.map(({ path, reason }) => `${shownPath(directory, path)}: ${reason}`)
  const notes = [...report.notes]
  if (report.status === "conflict") {
    return {
      out: "",
      notes: [
        ...conflicts,
        ...notes,
        `nothing was ${isClearing ? "brought" : "taken"} back, because of ${
          count(conflicts.length, "file", "files")
        }; --keep leaves such files as they are and does the rest`
      ],
      code: exitCode.failed
    }
  }
  const what = isClearing ? "brought back" : "taken back"
  lines.push(
    report.status === "planned"
      ? `would be ${what}: everything from ${prompt} on, and ${files}\n`
      : `${what}: everything from ${prompt} on, and ${files}\n`
  )
  return {
    out: lines.join(""),
    notes: [...conflicts.map((conflict) => `${conflict}; it ${isDone ? "was" : "would be"} left as it is`), ...notes],
    code: exitCode.answered
  }
}

export const sessionRevert: Execute<{
  readonly to: Option<string | null>
  readonly clear: Flag
  readonly dryRun: Flag
  readonly keep: Flag
  readonly json: Flag
  readonly trust: Flag
}> = async (options, [id = ""], environment) => {
  if (options.clear === (options.to !== null)) {
    throw new Exit(exitCode.usage, "say --to ENTRY (or --to last) to take something back, or --clear to bring it back")
  }
  return runProcess(
    Effect.gen(function*() {
      const record = yield* Effect.flatMap(SessionStore, (store) => store.get(id))
      const { runtime } = yield* openLocation(record.location.directory)
      const how = { dryRun: options.dryRun, ...(options.keep ? { conflicts: "keep" as const } : {}) }
      // Nobody else has the session now: a turn that is there was cut off, and is not gone on with.
      if (!options.dryRun) yield* runtime.interrupt(id, "the turn was cut off before, and is taken back")
      const report = yield* options.to === null
        ? runtime.revert.clear(id, how)
        : runtime.revert.stage(id, { to: options.to, ...how })
      const text = revertText(report, record.location.directory, options.clear)
      if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
      else {
        process.stdout.write(text.out)
        // They name files, and a name may hold anything.
        for (const note of text.notes) process.stderr.write(`bezel: ${printable(note).replaceAll("\n", " ")}\n`)
      }
      return text.code
    }).pipe(Effect.scoped, Effect.provide(locationsLayer({ environment, trust: options.trust, plugins: {} })))
  )
}
