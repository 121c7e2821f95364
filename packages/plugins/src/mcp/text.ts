/**
 * Texts of a server before anybody sees them: bounded, whole Unicode characters, and where a person will read them without
 * control characters. Also the names that its tools get, which are what model providers take.
 */
import { createHash } from "node:crypto"

/** At most so many UTF-16 units, with a mark where something is missing. Never half a character. */
export const bounded = (text: string, length: number): string => {
  const whole = text.toWellFormed()
  return whole.length <= length ? whole : `${whole.slice(0, length - 1).toWellFormed().replace(/\ufffd$/, "")}…`
}

/** One line for people: neither control characters nor those that turn the direction of text. */
export const oneLine = (text: string, length: number): string =>
  bounded(
    text.toWellFormed().replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, " ").trim(),
    length
  )

const maxName = 64

const safe = (name: string): string => name.toWellFormed().replaceAll(/[^a-zA-Z0-9_-]/gu, "_")

/** What the names of all tools of a server begin with. */
export const toolPrefix = (server: string): string => `${safe(server).slice(0, 32)}_`

/** The name that models call a server's tool by. One that is too long is cut, with a hash that keeps it apart from others. */
export const toolName = (server: string, tool: string): string => {
  const name = toolPrefix(server) + safe(tool)
  if (name.length <= maxName) return name
  return `${name.slice(0, maxName - 9)}_${createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, 8)}`
}

/** Whether a value from outside is nested no deeper than this; what recurses over it later must not run out of stack. */
export const isShallow = (value: unknown, depth: number): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let at = 0; at <= depth; at++) {
    const below: Array<unknown> = []
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue
      for (const member of Object.values(item)) if (typeof member === "object" && member !== null) below.push(member)
    }
    if (below.length === 0) return true
    level = below
  }
  return false
}
