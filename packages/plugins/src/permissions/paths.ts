/**
 * Path patterns in permission rules.
 *
 * A pattern is relative to the location, below `~/`, or absolute. `*` and `?` stay within one name, `**` spans folders, and a
 * pattern covers everything below what it matches. A pattern without a slash (`*.pem`, `.env`) is for that name in any folder:
 * to deny or ask anywhere, to allow inside the location only. `*` and `**` alone are everything, everywhere.
 */
import * as path from "node:path"

export interface PathPattern {
  readonly source: string
  readonly expression: RegExp | null
  /** Given without a folder, for a name in any folder. */
  readonly isName: boolean
}

const toExpression = (glob: string): string => {
  let out = ""
  for (let index = 0; index < glob.length; index++) {
    const character = glob.charAt(index)
    if (character === "\\" && /[*?\\]/.test(glob.charAt(index + 1))) {
      out += `\\${glob.charAt(++index)}`
    } else if (character === "*") {
      if (glob.charAt(index + 1) !== "*") {
        out += "[^/]*"
        continue
      }
      while (glob.charAt(index + 1) === "*") index++
      // `a/**/b` also matches `a/b`.
      if (glob.charAt(index + 1) === "/" && (index < 2 || glob.charAt(index - 2) === "/")) {
        out += "(?:.*/)?"
        index++
      } else out += ".*"
    } else if (character === "?") {
      out += "[^/]"
    } else {
      out += /[\w/ -]/.test(character) ? character : `\\${character}`
    }
  }
  return out
}

export const pathPattern = (source: string, location: string, home: string): PathPattern => {
  const text = source.trim()
  if (text === "*" || text === "**") return { source, expression: null, isName: false }
  const isName = !text.includes("/") && text !== "~" && text !== "." && text !== ".."
  const from = text === "~" || text.startsWith("~/") ? path.join(escapeGlob(home), text.slice(1)) : text
  const absolute = isName ? text : path.isAbsolute(from) ? from : path.posix.normalize(`${escapeGlob(location)}/${from}`)
  const core = toExpression(absolute.length > 1 ? absolute.replace(/\/+$/, "") : absolute)
  return {
    source,
    isName,
    // What is below the root is below `//…`, which is why the slash is optional there.
    expression: new RegExp(isName ? `(?:^|/)${core}(?:/|$)` : `^${core}(?:/|$)`, "s")
  }
}

const escapeGlob = (text: string): string => text.replace(/[*?\\]/g, "\\$&")

export const isInside = (folder: string, file: string): boolean =>
  file === folder || file.startsWith(folder.endsWith("/") ? folder : `${folder}/`)

/** For `allow`, a mere name holds inside the location only. */
export const matchesPath = (pattern: PathPattern, file: string, verdict: "allow" | "ask" | "deny", location: string): boolean => {
  if (pattern.expression === null) return true
  if (!pattern.isName) return pattern.expression.test(file) || (pattern.source.trim() === "/" && file.startsWith("/"))
  const inside = isInside(location, file)
  if (!inside) return verdict !== "allow" && pattern.expression.test(file)
  // The folders that the location itself lies in have names too; they are not what a rule of this project speaks of.
  return pattern.expression.test(file.slice(location.length))
}
