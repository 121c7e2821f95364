/**
 * The console while the screen is open: what a plugin or a library prints would land in the middle of a frame, so it goes to
 * whoever wants it instead, until the terminal is given back.
 */
import { format } from "node:util"

const levels = ["debug", "log", "info", "warn", "error"] as const

export type ConsoleLevel = (typeof levels)[number]

/** Gives what puts the console back. */
export const captureConsole = (print: (level: ConsoleLevel, line: string) => void): () => void => {
  const before = levels.map((level) => [level, console[level]] as const)
  for (const level of levels) {
    console[level] = (...values: ReadonlyArray<unknown>) => print(level, format(...values))
  }
  return () => {
    for (const [level, original] of before) console[level] = original
  }
}
