/**
 * What a look has seen, kept for the process that comes after a crash: the index of git that it began with, and a line for
 * each file that is or became different, the last one counts.
 */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as NodePath from "node:path"
import { FileState } from "./file-state.ts"
import { type KnownFile, Stamp } from "./known-files.ts"

const Head = Schema.Struct({
  version: Schema.Literal(1),
  /** When git had written the index; `null` where there was none. */
  indexMtimeMs: Schema.NullOr(Schema.Finite)
})

/** A path from the folder's top with what is there. */
const Line = Schema.Tuple([Schema.String, FileState, Schema.NullOr(Stamp)])

const decodeHead = Schema.decodeUnknownExit(Schema.fromJsonString(Head))
const decodeLine = Schema.decodeUnknownExit(Schema.fromJsonString(Line))

export type SeenLine = readonly [path: string, state: FileState, stamp: Stamp | null]

export interface Seen {
  readonly index: { readonly content: Buffer; readonly mtimeMs: number } | null
  readonly lines: ReadonlyArray<SeenLine>
}

export const seenLine = (path: string, { stamp, state }: KnownFile): SeenLine => [path, state, stamp]

const textOf = (lines: ReadonlyArray<SeenLine>): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("")

export class SeenFiles {
  readonly #index: string
  readonly #lines: string

  constructor(folder: string) {
    this.#index = NodePath.join(folder, "index")
    this.#lines = NodePath.join(folder, "seen.jsonl")
  }

  /** Begins anew. */
  write({ index, lines }: Seen): void {
    fs.mkdirSync(NodePath.dirname(this.#lines), { recursive: true, mode: 0o700 })
    fs.rmSync(this.#lines, { force: true })
    if (index !== null) fs.writeFileSync(this.#index, index.content, { mode: 0o600 })
    const head: typeof Head.Type = { version: 1, indexMtimeMs: index?.mtimeMs ?? null }
    const temporary = `${this.#lines}.tmp`
    fs.writeFileSync(temporary, `${JSON.stringify(head)}\n${textOf(lines)}`, { mode: 0o600 })
    fs.renameSync(temporary, this.#lines)
  }

  append(lines: ReadonlyArray<SeenLine>): void {
    if (lines.length > 0) fs.appendFileSync(this.#lines, textOf(lines))
  }

  /** `null` if there is nothing, or something in it is damaged; a line that a crash has torn is left out. */
  read(): Seen | null {
    if (!fs.existsSync(this.#lines)) return null
    const [first = "", ...rest] = fs.readFileSync(this.#lines, "utf8").split("\n")
    const torn = rest.pop()
    if (torn !== "" && torn !== undefined) fs.truncateSync(this.#lines, sizeWithout(this.#lines, torn))
    const head = decodeHead(first)
    if (!Exit.isSuccess(head)) return null
    const lines: Array<SeenLine> = []
    for (const text of rest) {
      const line = decodeLine(text)
      if (!Exit.isSuccess(line)) return null
      lines.push(line.value)
    }
    const { indexMtimeMs } = head.value
    if (indexMtimeMs === null) return { index: null, lines }
    if (!fs.existsSync(this.#index)) return null
    return { index: { content: fs.readFileSync(this.#index), mtimeMs: indexMtimeMs }, lines }
  }
}

const sizeWithout = (path: string, tail: string): number => fs.statSync(path).size - Buffer.byteLength(tail)
