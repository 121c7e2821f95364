/** `bezel session repair ID`: makes a session whose files are damaged usable again, and says what was lost. */
import { AppPaths } from "@bezel/core/settings"
import {
  type Findings,
  inspectSession,
  isSessionID,
  type RepairReport,
  repairSession,
  sessionsFolder,
  sessionsIn
} from "@bezel/core/storage"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Execute } from "../arguments/command.ts"
import type { Option } from "../arguments/option.ts"
import { Exit, exitCode } from "../exit.ts"
import { runProcess } from "../host/process.ts"

export const sessionRepair: Execute<{ readonly dryRun: Option<boolean>; readonly json: Option<boolean> }> = (
  options,
  [id = ""]
) =>
  runProcess(
    Effect.gen(function*() {
      const { data } = yield* AppPaths
      const folder = join(sessionsFolder(data), id)
      if (!isSessionID(id) || !existsSync(folder)) {
        return yield* Effect.fail(
          new Exit(
            exitCode.usage,
            `there are no files of a session ${
              JSON.stringify(id.slice(0, 200))
            }; \`bezel session list --all\` shows those that there are`
          )
        )
      }
      const report = yield* repairSession(folder, { dryRun: options.dryRun, at: yield* Clock.currentTimeMillis }).pipe(
        Effect.catchTag("SessionInUse", ({ holder }) =>
          Effect.fail(
            new Exit(
              exitCode.failed,
              `session ${id} is open in process ${holder.pid} (${holder.command}); end that first`
            )
          ))
      )
      process.stdout.write(
        options.json ? `${JSON.stringify(summary(id, report))}\n` : repairText(id, report, options.dryRun)
      )
      return report.findings.unreadable ? exitCode.failed : exitCode.answered
    }).pipe(Effect.provide(AppPaths.layer))
  )

/** What a script gets: the report without the records that it is about. */
const summary = (id: string, { findings, format, kept, steps }: RepairReport) => ({
  session: id,
  format,
  faults: findings.faults,
  losses: findings.losses,
  steps,
  kept
})

/** The report for a person. */
export function repairText(id: string, report: RepairReport, dryRun: boolean): string {
  const { findings, kept, steps } = report
  if (findings.faults.length === 0) return `session ${id} is whole; nothing to repair\n`
  const lines = findings.faults.map((fault) => `✗ ${fault}`)
  lines.push(...steps.map((step) => `→ ${step}`))
  if (kept !== null) lines.push(`as it was, it is kept in ${kept}`)
  if (dryRun && !findings.unreadable) lines.push(`nothing was changed; \`bezel session repair ${id}\` does it`)
  return `${lines.join("\n")}\n`
}

/** A session that cannot be gone on with, and why. */
export interface DamagedSession {
  readonly id: string
  readonly message: string
}

export interface SessionCheck {
  readonly looked: number
  readonly all: number
  readonly damaged: ReadonlyArray<DamagedSession>
}

const describe = (id: string, { faults, unreadable }: Findings): string => {
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : ""
  const advice = unreadable
    ? `restore the file from a backup, or remove the session: bezel session remove ${id}`
    : `run: bezel session repair ${id}`
  return `session ${id}: ${faults[0] ?? ""}${more}; ${advice}`
}

/** Looks at the files of every session, newest first, for as long as it may take. */
export const checkSessions = Effect.fnUntraced(function*(directory: string, limitMillis: number) {
  const ids = sessionsIn(directory).toReversed()
  const start = yield* Clock.currentTimeMillis
  const damaged: Array<DamagedSession> = []
  let looked = 0
  for (const id of ids) {
    if ((yield* Clock.currentTimeMillis) - start > limitMillis) break
    looked++
    yield* Effect.match(inspectSession(join(sessionsFolder(directory), id)), {
      onSuccess: (findings) => {
        if (findings.faults.length > 0) damaged.push({ id, message: describe(id, findings) })
      },
      onFailure: (error) => void damaged.push({ id, message: `session ${id}: ${error.message}` })
    })
    // Looking is synchronous work: let a signal through.
    yield* Effect.yieldNow
  }
  return { looked, all: ids.length, damaged } satisfies SessionCheck
})
