/**
 * What a command has said: exit code 0 is a yes, with what it printed as JSON; exit code 2 is a no, with its error output as
 * the reason; everything else is a failure, which whoever asked takes as they must. Pure.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { HookOutcome } from "./command.ts"
import { HookAnswer } from "./contract.ts"

export const Said = Schema.Union([
  Schema.Struct({ type: Schema.Literal("yes"), answer: HookAnswer }),
  Schema.Struct({ type: Schema.Literal("no"), reason: Schema.String }),
  Schema.Struct({ type: Schema.Literal("failed"), problem: Schema.String })
])
export type Said = typeof Said.Type

// What is not known might be another program's way of saying no.
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(HookAnswer), { onExcessProperty: "error" })

const maxReason = 4_000

const cut = (text: string): string => {
  const whole = text.trim()
  return whole.length <= maxReason ? whole : `${whole.slice(0, maxReason).toWellFormed()}…`
}

/** The last line of its error output, for a message about a failure. */
const lastLine = (text: string): string => {
  const line = text.trim().split("\n").at(-1) ?? ""
  return line.replaceAll(/\p{Cc}+/gu, " ").trim().slice(0, 300).toWellFormed()
}

export const readOutcome = (outcome: HookOutcome, timeoutMs: number): Said => {
  const { exitCode, signal, stderr, stdout, timedOut } = outcome
  const words = lastLine(stderr)
  const because = words === "" ? "" : `: ${words}`
  if (timedOut) return { type: "failed", problem: `it took longer than ${timeoutMs / 1_000} s and was ended` }
  if (exitCode === 2) return { type: "no", reason: cut(stderr) }
  if (exitCode === null) return { type: "failed", problem: `it was ended by ${signal}${because}` }
  if (exitCode !== 0) return { type: "failed", problem: `it ended with exit code ${exitCode}${because}` }
  // Programs print things; only what looks like an answer is one.
  if (!stdout.trimStart().startsWith("{")) return { type: "yes", answer: {} }
  const answer = decode(stdout)
  if (Option.isNone(answer)) {
    return { type: "failed", problem: "what it printed is JSON, but not an answer that is known" }
  }
  const { decision, reason } = answer.value
  return decision === "block" ? { type: "no", reason: cut(reason ?? "") } : { type: "yes", answer: answer.value }
}
