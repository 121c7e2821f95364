/**
 * One settings document: JSON with comments and trailing commas, read into a value that remembers where each part stood.
 *
 * Plain synchronous code over `jsonc-parser`. It promises a `SettingsError` with file and line for everything that is not
 * such a document; it knows no key and checks no type.
 */
import { type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser"
import type { JsonObject, JsonValue, Path } from "../json/index.ts"
import { SettingsError } from "./error.ts"

export interface SettingsDocument {
  readonly file: string
  readonly value: JsonObject
  /** Line (from 1) of the value at a path, or of the nearest thing around it that exists. 0: the document has no lines. */
  readonly lineOf: (path: Path) => number
}

/** Larger than any settings file of a person; a bound for what a repository can make us read. */
export const maxSettingsBytes = 1024 * 1024

/** The deepest nesting that is read: far more than any section has, far less than a stack holds. */
const maxDepth = 64

const wording: Partial<Record<ReturnType<typeof printParseErrorCode>, string>> = {
  InvalidSymbol: "this is not JSON (names and text stand in double quotes)",
  InvalidNumberFormat: "this is not a number",
  PropertyNameExpected: "a name in double quotes is expected",
  ValueExpected: "a value is expected",
  ColonExpected: "a colon is expected",
  CommaExpected: "a comma is expected",
  CloseBraceExpected: "a closing } is missing",
  CloseBracketExpected: "a closing ] is missing",
  EndOfFileExpected: "nothing may follow the closing }",
  UnexpectedEndOfComment: "this comment is not closed",
  UnexpectedEndOfString: "this text is not closed",
  InvalidEscapeCharacter: "this escape is not allowed in a text",
  InvalidCharacter: "this character is not allowed here"
}

const lineAt = (text: string, offset: number): number => {
  let line = 1
  for (let index = text.indexOf("\n"); index !== -1 && index < offset; index = text.indexOf("\n", index + 1)) line++
  return line
}

const depthOf = (text: string): number => {
  // Counted on the text, before a recursive parser sees it; brackets inside texts only make the estimate larger.
  let depth = 0
  let deepest = 0
  for (const character of text) {
    if (character === "{" || character === "[") deepest = Math.max(deepest, ++depth)
    else if (character === "}" || character === "]") depth = Math.max(0, depth - 1)
  }
  return deepest
}

/** Where a path stands, for messages: `providers.local.options`, `plugins[0]`, `permissions.bash["git *"]`. */
const formatPath = (path: Path): string =>
  path.map((segment, index) => {
    if (typeof segment === "number") return `[${segment}]`
    if (!/^[\w$-]+$/.test(segment)) return `[${JSON.stringify(segment)}]`
    return index === 0 ? segment : `.${segment}`
  }).join("")

/** `file:line: path: what`, without the parts that are not there. */
export const settingsError = (
  code: SettingsError["code"],
  where: { readonly file: string; readonly line: number; readonly path: Path },
  what: string
): SettingsError => {
  const path = formatPath(where.path)
  const place = where.line > 0 ? `${where.file}:${where.line}` : where.file
  return new SettingsError({
    code,
    file: where.file,
    line: where.line,
    path,
    message: `${place}: ${path === "" ? "" : `${path}: `}${what}`
  })
}

const valueOf = (file: string, text: string, node: Node, path: Path): JsonValue => {
  if (node.type === "array") {
    return (node.children ?? []).map((child, index) => valueOf(file, text, child, [...path, index]))
  }
  if (node.type !== "object") {
    const value: unknown = node.value
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : null
  }
  const members: Record<string, JsonValue> = {}
  for (const property of node.children ?? []) {
    const [name, value] = property.children ?? []
    if (name === undefined || value === undefined) continue
    const key = String(name.value)
    const at = { file, line: lineAt(text, name.offset), path: [...path, key] }
    if (key === "__proto__") throw settingsError("unknown_key", at, "this name cannot be used")
    if (Object.hasOwn(members, key)) throw settingsError("syntax", at, "this name is set twice; keep one of them")
    members[key] = valueOf(file, text, value, at.path)
  }
  return members
}

const nodeAt = (root: Node, path: Path): Node => {
  let node = root
  for (const segment of path) {
    const child = typeof segment === "number"
      ? node.type === "array" ? node.children?.[segment] : undefined
      : node.type === "object"
      ? node.children?.find((property) => property.children?.[0]?.value === segment)?.children?.[1]
      : undefined
    if (child === undefined) return node
    node = child
  }
  return node
}

/** Reads the text of a settings file. An empty file sets nothing. Throws `SettingsError`. */
export const parseSettings = (file: string, source: string): SettingsDocument => {
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source
  if (depthOf(text) > maxDepth) {
    throw settingsError(
      "syntax",
      { file, line: 1, path: [] },
      `nested deeper than ${maxDepth} levels, which no setting is`
    )
  }
  const errors: Array<ParseError> = []
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true, disallowComments: false })
  const error = errors[0]
  if (error !== undefined) {
    // An end that is missing is noticed at the end of the text; the line that counts is the last one that says something.
    const offset = Math.min(error.offset, text.trimEnd().length)
    const what = wording[printParseErrorCode(error.error)] ?? "this is not JSON with comments"
    throw settingsError("syntax", { file, line: lineAt(text, offset), path: [] }, what)
  }
  if (root === undefined) return { file, value: {}, lineOf: () => 1 }
  if (root.type !== "object") {
    throw settingsError(
      "invalid_value",
      { file, line: lineAt(text, root.offset), path: [] },
      "expected an object { … }"
    )
  }
  const value = valueOf(file, text, root, [])
  return {
    file,
    value: typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : {},
    lineOf: (path) => {
      const node = nodeAt(root, path)
      return lineAt(text, node.parent?.type === "property" ? node.parent.offset : node.offset)
    }
  }
}
