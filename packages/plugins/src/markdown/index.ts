/**
 * Markdown files with front matter (YAML between two lines of `---`), as agents, skills and commands are written in.
 *
 * A file is bounded, and so is a folder of them. What is wrong with one is told in a few words, with the line where that is
 * known; nothing of it is used then. A project's file must lie in the project: what a link leads to is for nobody else.
 */
import { readRegularFile } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Yaml from "effect/encoding/Yaml"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"

/** What is wrong with a file, in a few words; `line` is counted from 1. */
export interface MarkdownFault {
  readonly what: string
  readonly line: number | null
}

export interface Markdown {
  /** The members of the front matter; none where there is none. */
  readonly head: { readonly [member: string]: unknown }
  /** What follows it, without blank space around. */
  readonly body: string
  /** The front matter as it is written, for the lines of its members. */
  readonly written: string
}

/** More than any text that a model should be given at once. */
export const maxMarkdownBytes = 256 * 1024

const frontMatter = /^\uFEFF?---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/

const oneLine = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).replace(/\s*\n\s*/g, " ").slice(0, 300)

const fault = (what: string, line: number | null = null) => Result.fail<MarkdownFault>({ what, line })

/** Takes a file apart. */
export const parseMarkdown = (text: string): Result.Result<Markdown, MarkdownFault> => {
  const match = frontMatter.exec(text)
  if (match === null) {
    return /^\uFEFF?---[ \t]*\r?\n/.test(text)
      ? fault("its front matter is not ended by a line of ---", 1)
      : Result.succeed({ head: {}, body: text.replace(/^\uFEFF/, "").trim(), written: "" })
  }
  const written = match[1] ?? ""
  let head: unknown = {}
  if (written.trim() !== "") {
    try {
      head = Yaml.parse(written)
    } catch (cause) {
      const message = oneLine(cause)
      const line = / at line (\d+)$/.exec(message)
      return line === null
        ? fault(`its front matter is not YAML (${message})`, 2)
        : fault(`its front matter is not YAML (${message.slice(0, line.index)})`, Number(line[1]) + 1)
    }
  }
  if (typeof head !== "object" || head === null || Array.isArray(head)) {
    return fault('its front matter is no list of members, such as "description: …"', 2)
  }
  return Result.succeed({ head: { ...head }, body: text.slice(match[0].length).trim(), written })
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The line of a member of the front matter, from 1 in the file, or `null`. */
export const lineOfMember = (markdown: Markdown, member: string): number | null => {
  const at = markdown.written.split(/\r?\n/).findIndex((line) => line.replace(/["']/g, "").startsWith(`${member}:`))
  return at === -1 ? null : at + 2
}

/** The front matter as a schema has it. `strict` refuses members that the schema does not know. */
export const decodeHead = <A, I>(
  schema: Schema.Codec<A, I>,
  markdown: Markdown,
  strict: boolean,
  head: unknown = markdown.head
): Result.Result<A, MarkdownFault> => {
  const decoded = Schema.decodeUnknownResult(schema, { onExcessProperty: strict ? "error" : "ignore" })(head)
  if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
  const [issue] = format(decoded.failure.issue).issues
  const path = (issue?.path ?? []).map((segment) =>
    String(typeof segment === "object" && segment !== null ? segment.key : segment)
  )
  const [member] = path
  return fault(
    issue?.message === "Expected no excess property"
      ? `its front matter has a member that is not known here: ${path.join(".")}`
      : `its front matter is not valid: ${oneLine(decoded.failure)}`,
    member === undefined ? null : lineOfMember(markdown, member)
  )
}

/** One sentence: where, and what is wrong. */
export const describeFault = (file: string, { line, what }: MarkdownFault): string =>
  `${file}${line === null ? "" : `:${line}`}: ${what}`

/**
 * A file taken apart; `null` if there is none. With `root`, the real path of a project, one that lies outside of it is
 * refused.
 */
export const readMarkdown = (
  file: string,
  root: string | null
): Effect.Effect<Result.Result<Markdown, MarkdownFault> | null> =>
  Effect.match(readRegularFile(file, maxMarkdownBytes, root), {
    onSuccess: (text) => text === null ? null : parseMarkdown(text),
    onFailure: ({ reason }) =>
      fault(
        reason.startsWith("it is larger") ? `it is larger than ${maxMarkdownBytes / 1024} KiB` : reason
      )
  })
