/**
 * A line matcher for search: compiles a model's regular expression and looks for it, in bounded time.
 *
 * JavaScript's regular expressions can take exponential time and cannot be interrupted from JavaScript, so they run
 * under a watchdog that ends the execution. Lines are matched one by one, as ripgrep does.
 */
import * as Result from "effect/Result"
import { createContext, Script } from "node:vm"

export interface LineMatch {
  /** From 1. */
  readonly line: number
  readonly text: string
}

export interface Matcher {
  /** Matching lines of a text, at most `limit`; `null` if the expression takes too long on it. */
  readonly match: (text: string, limit: number) => ReadonlyArray<LineMatch> | null
}

const WATCHDOG_MS = 400
const MAX_PATTERN_UNITS = 4_096
/** Longer lines are searched as far as this; what prints longer ones is no source text. */
const MAX_LINE_UNITS = 64 * 1024

/** Fails with one sentence if the pattern is no regular expression. */
export const makeMatcher = (pattern: string): Result.Result<Matcher, string> => {
  if (pattern === "") return Result.fail("The pattern is empty. Give a regular expression to look for.")
  if (pattern.length > MAX_PATTERN_UNITS) return Result.fail("The pattern is too long; the most is 4,096 characters.")
  const expression = compile(pattern)
  if (Result.isFailure(expression)) {
    return Result.fail(
      `The pattern is not a regular expression: ${expression.failure}. To look for plain text, escape its special characters with \\.`
    )
  }
  let subject = ""
  let most = 0
  let found: Array<LineMatch> = []
  const run = () => {
    found = []
    let line = 0
    for (let from = 0; from < subject.length && found.length < most;) {
      line++
      const at = subject.indexOf("\n", from)
      const end = at === -1 ? subject.length : at
      const text = subject.slice(from, subject[end - 1] === "\r" && end > from ? end - 1 : end)
      if (expression.success.test(text.length > MAX_LINE_UNITS ? text.slice(0, MAX_LINE_UNITS) : text)) {
        found.push({ line, text })
      }
      from = end + 1
    }
  }
  const context = createContext({ run })
  const script = new Script("run()")
  const match: Matcher["match"] = (text, limit) => {
    subject = text
    most = limit
    try {
      script.runInContext(context, { timeout: WATCHDOG_MS })
      return found
    } catch {
      return null
    } finally {
      subject = ""
    }
  }
  return Result.succeed({ match })
}

/** Unicode mode where the pattern allows it; a leading `(?i)`, which others take, means the same here. */
const compile = (pattern: string): Result.Result<RegExp, string> => {
  const leading = /^\(\?([ims]+)\)/.exec(pattern)
  const source = leading === null ? pattern : pattern.slice(leading[0].length)
  const flags = leading === null ? "" : [...new Set(leading[1])].join("")
  try {
    return Result.succeed(new RegExp(source, `${flags}u`))
  } catch {
    try {
      return Result.succeed(new RegExp(source, flags))
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      return Result.fail(message.slice(message.lastIndexOf(": ") + 2).replace(/\.$/, ""))
    }
  }
}
