/**
 * Paint: roles and styles as terminal sequences, by the current theme.
 *
 * The default theme uses the terminal's own sixteen colours, so it is readable on dark and light backgrounds alike.
 * `NO_COLOR` leaves weight, slant and underline only. These are, beside pi-tui's own, the only escape sequences written.
 */
import type { Span, SpanStyle, ThemeColor } from "./block.ts"
import type { Theme } from "./contributions.ts"
import { sanitize, sanitizeLine } from "./sanitize.ts"

export const terminalTheme: Theme = {
  colors: {
    accent: 6,
    user: 4,
    success: 2,
    warning: 3,
    error: 1,
    added: 2,
    removed: 1,
    code: 6,
    heading: 5,
    link: 4
  }
}

export const darkTheme: Theme = {
  colors: {
    muted: "#8a8f98",
    accent: "#7dcfff",
    user: "#7aa2f7",
    success: "#9ece6a",
    warning: "#e0af68",
    error: "#f7768e",
    added: "#9ece6a",
    removed: "#f7768e",
    code: "#7dcfff",
    heading: "#bb9af7",
    link: "#7aa2f7",
    border: "#4a5068"
  }
}

export const lightTheme: Theme = {
  colors: {
    muted: "#6b7280",
    accent: "#00667a",
    user: "#1d4ed8",
    success: "#2f6f1f",
    warning: "#8a5a00",
    error: "#b3261e",
    added: "#2f6f1f",
    removed: "#b3261e",
    code: "#00667a",
    heading: "#6d28a8",
    link: "#1d4ed8",
    border: "#b8bcc6"
  }
}

/** Roles that a terminal without a colour for them shows faint. */
const faint: ReadonlySet<ThemeColor> = new Set<ThemeColor>(["muted", "border"])

const colorSequence = (color: number | string): string => {
  if (typeof color === "number") {
    if (color < 8) return `3${color}`
    if (color < 16) return `9${color - 8}`
    return `38;5;${color}`
  }
  const value = Number.parseInt(color.slice(1), 16)
  if (!/^#[0-9a-f]{6}$/i.test(color) || Number.isNaN(value)) return "39"
  return `38;2;${(value >> 16) & 255};${(value >> 8) & 255};${value & 255}`
}

export interface Painter {
  readonly style: (painted: string, style: SpanStyle) => string
  /** A span, sanitized and painted. Line feeds stay. */
  readonly span: (span: Span) => string
  /** Spans of one row: line feeds become visible. */
  readonly line: (spans: ReadonlyArray<Span>) => string
}

export const makePainter = (theme: Theme, useColor: boolean): Painter => {
  const style = (painted: string, look: SpanStyle): string => {
    if (painted === "") return painted
    let open = ""
    let close = ""
    const role = look.color
    const color = role === undefined || !useColor ? undefined : theme.colors[role]
    if (color !== undefined) {
      open += `\x1b[${colorSequence(color)}m`
      close = "\x1b[39m"
    }
    if (look.bold === true) {
      open += "\x1b[1m"
      close = `\x1b[22m${close}`
    }
    if (look.dim === true || (role !== undefined && color === undefined && faint.has(role))) {
      open += "\x1b[2m"
      close = `\x1b[22m${close}`
    }
    if (look.italic === true) {
      open += "\x1b[3m"
      close = `\x1b[23m${close}`
    }
    if (look.underline === true) {
      open += "\x1b[4m"
      close = `\x1b[24m${close}`
    }
    if (look.inverse === true) {
      open += "\x1b[7m"
      close = `\x1b[27m${close}`
    }
    if (look.strikethrough === true) {
      open += "\x1b[9m"
      close = `\x1b[29m${close}`
    }
    return open === "" ? painted : open + painted + close
  }
  const span = (content: Span): string =>
    typeof content === "string" ? sanitize(content) : style(sanitize(content.text), content)
  const line = (spans: ReadonlyArray<Span>): string => {
    let result = ""
    for (const content of spans) {
      result += typeof content === "string" ? sanitizeLine(content) : style(sanitizeLine(content.text), content)
    }
    return result
  }
  return { style, span, line }
}
