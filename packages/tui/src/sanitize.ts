/**
 * The sanitizer: the one place where text that is not ours becomes text that a terminal may be given.
 *
 * Model output, tool output, file names, paths and titles can hold escape sequences that move the cursor, set the window's
 * title, answer queries or write to the clipboard, and characters that reorder or hide what stands on the line. Here each
 * of them becomes visible: control characters as control pictures (`␛`), others by their code point (`<U+202E>`). What
 * comes out has printable characters and line feeds only, so it can be measured, wrapped and painted. Layout calls this
 * for every span; nothing else has to.
 */

/**
 * Characters that never reach the terminal as they are: C0 except line feed, DEL, C1; soft hyphen and other characters
 * that terminals and width tables disagree on; zero-width and bidirectional controls; line separators; tags and variation
 * selectors outside emoji (used to hide text); lone surrogates; interlinear annotations; noncharacters.
 * Kept: joiners and variation selectors that emoji and scripts need, left-to-right and right-to-left marks.
 */
const suspicious = new RegExp(
  [
    "[\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f]",
    "[\\u00ad\\u115f\\u1160\\u200b\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff]",
    "\\u034f|[\\u17b4\\u17b5]|[\\u180b-\\u180f]",
    "[\\ud800-\\udfff]",
    "[\\u{e0000}-\\u{e0fff}]|[\\u{1d173}-\\u{1d17a}]"
  ].join("|"),
  "u"
)

const suspiciousGlobal = new RegExp(suspicious.source, "gu")

/** A flag of a region is a black flag, tag letters and a cancel tag; elsewhere tags only hide text. */
const regionFlag = /\u{1f3f4}[\u{e0020}-\u{e007e}]{1,8}\u{e007f}/gu

const tabStop = 4

const visible = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code === 0x09) return " ".repeat(tabStop)
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd"
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`
}

/** Makes everything in `text` visible that could act on the terminal or mislead a reader. Keeps line feeds. */
export const sanitize = (text: string): string => {
  if (!suspicious.test(text)) return text
  const lines = text.replaceAll("\r\n", "\n")
  if (!lines.includes("\u{1f3f4}")) return lines.replace(suspiciousGlobal, visible)
  let result = ""
  let from = 0
  for (const flag of lines.matchAll(regionFlag)) {
    result += lines.slice(from, flag.index).replace(suspiciousGlobal, visible) + flag[0]
    from = flag.index + flag[0].length
  }
  return result + lines.slice(from).replace(suspiciousGlobal, visible)
}

/** The same on one line: line feeds become visible too. For titles, paths and commands that stand in one row. */
export const sanitizeLine = (text: string): string => sanitize(text).replaceAll("\n", "\u240a")

// eslint-disable-next-line no-control-regex
const sgr = /\u001b\[[0-9;:]*m/g
// eslint-disable-next-line no-control-regex
const overwritten = /[^\n\r]*\r(?=[^\n\r])/g

/**
 * What a program's output would look like on a terminal that knows lines only: colours are dropped and a carriage return
 * starts its line over, as progress bars expect. The result still has to pass `sanitize`; layout does that.
 */
export const plainOutput = (output: string): string =>
  output.includes("\u001b[") || output.includes("\r")
    ? output.replace(sgr, "").replaceAll("\r\n", "\n").replace(overwritten, "").replaceAll("\r", "")
    : output
