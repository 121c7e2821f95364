/**
 * What a session, with its sub-agents, has done to files: one line of JSON for each thing, appended.
 *
 * A line is there before what it is about is relied on; one that was torn by a crash is cut off at the next opening, and one
 * that cannot be read is counted and left out. `marks` say, for a session and those that it works for, behind which entry of
 * their conversations it happened, so that any of them can take it back.
 */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import { FileState } from "./file-state.ts"

/** Ordinals of the newest entries, by session. */
export const Marks = Schema.Record(Schema.String, Schema.Finite)
export type Marks = typeof Marks.Type

/** One file went from one state to another, by the session. */
export const Change = Schema.Struct({
  type: Schema.Literal("change"),
  path: Schema.String,
  before: FileState,
  after: FileState,
  marks: Marks,
  /** Whether it is only likely that the session did it: what it was doing was cut off. */
  uncertain: Schema.optionalKey(Schema.Boolean)
})
export type Change = typeof Change.Type

const Line = Schema.Union([
  Change,
  /** A command, or (with a path) a write to one file, has begun. */
  Schema.Struct({
    type: Schema.Literal("began"),
    id: Schema.String,
    at: Schema.Finite,
    marks: Marks,
    path: Schema.optionalKey(Schema.String),
    before: Schema.optionalKey(FileState)
  }),
  Schema.Struct({ type: Schema.Literal("ended"), id: Schema.String, at: Schema.Finite }),
  /** All that had ended by then is accounted for. */
  Schema.Struct({ type: Schema.Literal("settled"), open: Schema.Array(Schema.String) }),
  /** A command ran, whatever it did: what that was outside of the folder is not known. */
  Schema.Struct({ type: Schema.Literal("ran"), marks: Marks }),
  /** Entries that git ignores, which commands changed: what was in them is not known. */
  Schema.Struct({ type: Schema.Literal("ignored"), marks: Marks, paths: Schema.Array(Schema.String) }),
  /** A command ran whose changes could not be seen. */
  Schema.Struct({ type: Schema.Literal("unseen"), marks: Marks, why: Schema.String }),
  Schema.Struct({ type: Schema.Literal("reverted"), id: Schema.String, session: Schema.String, from: Schema.Finite }),
  Schema.Struct({ type: Schema.Literal("restored"), id: Schema.String }),
  /** The oldest changes are forgotten, for want of room. */
  Schema.Struct({ type: Schema.Literal("forgotten"), marks: Marks })
])
export type Line = typeof Line.Type

const manyLines = 2_000

const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Line))

/** Work that had begun and was not accounted for when the journal ended. */
export interface Unfinished {
  readonly id: string
  readonly start: number
  /** `null` if its end was never seen. */
  readonly end: number | null
  readonly marks: Marks
  readonly path: string | null
  readonly before: FileState | null
}

export class Journal {
  readonly path: string
  #lines: Array<Line> = []
  #bytes = 0
  /** Lines that could not be read. */
  damaged = 0

  /** Reads what is there; the file is made with the first line. */
  constructor(path: string) {
    this.path = path
    const text = this.#read()
    const end = text.lastIndexOf("\n") + 1
    if (end < text.length) fs.truncateSync(path, Buffer.byteLength(text.slice(0, end)))
    this.#take(text.slice(0, end))
  }

  #read(): string {
    return fs.existsSync(this.path) ? fs.readFileSync(this.path, "utf8") : ""
  }

  #take(text: string): void {
    this.#lines = []
    this.damaged = 0
    this.#bytes = Buffer.byteLength(text)
    for (const line of text.split("\n")) {
      if (line === "") continue
      const decoded = decode(line)
      if (Exit.isSuccess(decoded)) this.#lines.push(decoded.value)
      else this.damaged++
    }
  }

  /** Takes in what another process has written: one in which a sub-agent's session was opened by itself. */
  refresh(): void {
    const size = fs.statSync(this.path, { throwIfNoEntry: false })?.size ?? 0
    if (size !== this.#bytes) this.#take(this.#read())
  }

  /** Gives when they were written by the clock of the file system, which is that of the times of files. */
  append(...lines: ReadonlyArray<Line>): number {
    const file = fs.openSync(this.path, "a", 0o600)
    try {
      const text = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
      fs.appendFileSync(file, text)
      this.#lines.push(...lines)
      this.#bytes += text.length
      return fs.fstatSync(file).mtimeMs
    } finally {
      fs.closeSync(file)
    }
  }

  /** Puts these lines in the place of all that is there. */
  replace(lines: ReadonlyArray<Line>): void {
    const temporary = `${this.path}.tmp`
    const text = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
    fs.writeFileSync(temporary, text, { mode: 0o600 })
    fs.renameSync(temporary, this.path)
    this.#lines = [...lines]
    this.#bytes = text.length
  }

  /** Forgets what is accounted for, once the lines are many: only what changed is needed then. */
  tidy(): void {
    if (this.#lines.length < manyLines) return
    const unfinished = new Set(this.unfinished.map(({ id }) => id))
    // Of all commands that ran, the newest says as much as all.
    const newest = this.#lines.findLast(({ type }) => type === "ran")
    const kept = this.#lines.filter((line) =>
      line.type === "began" || line.type === "ended"
        ? unfinished.has(line.id)
        : line.type === "ran"
        ? line === newest
        : line.type !== "settled"
    )
    if (kept.length < this.#lines.length / 2) this.replace(kept)
  }

  get lines(): ReadonlyArray<Line> {
    return this.#lines
  }

  /** Changes that still stand, oldest first: what was taken back, and not brought back, is left out. */
  get changes(): ReadonlyArray<Change> {
    const restored = new Set(this.#lines.flatMap((line) => line.type === "restored" ? [line.id] : []))
    let standing: Array<Change> = []
    for (const line of this.#lines) {
      if (line.type === "change") standing.push(line)
      else if (line.type === "reverted" && !restored.has(line.id)) {
        standing = standing.filter(({ marks }) => !((marks[line.session] ?? -1) >= line.from))
      }
    }
    return standing
  }

  /** Whether the changes of a session from a place on are all here. */
  reachesBack(session: string, from: number): boolean {
    return !this.#lines.some((line) => line.type === "forgotten" && (line.marks[session] ?? -1) >= from)
  }

  /** Whether a command ran from a place on. */
  hasRun(session: string, from: number): boolean {
    return this.#lines.some((line) => line.type === "ran" && (line.marks[session] ?? -1) >= from)
  }

  /** Why commands from a place on could not be seen, each reason once. */
  unseen(session: string, from: number): ReadonlyArray<string> {
    const reasons = this.#lines.flatMap((line) =>
      line.type === "unseen" && (line.marks[session] ?? -1) >= from ? [line.why] : []
    )
    return [...new Set(reasons)]
  }

  /** Ignored entries that commands from a place on changed, each once. */
  ignored(session: string, from: number): ReadonlyArray<string> {
    return [
      ...new Set(
        this.#lines.flatMap((line) => line.type === "ignored" && (line.marks[session] ?? -1) >= from ? line.paths : [])
      )
    ]
  }

  /** Those that are said of a place already. */
  ignoredSince(marks: Marks): ReadonlySet<string> {
    const places = Object.entries(marks)
    return new Set(
      this.#lines.flatMap((line) =>
        line.type === "ignored" && places.every(([session, mark]) => (line.marks[session] ?? -1) >= mark)
          ? line.paths
          : []
      )
    )
  }

  get unfinished(): ReadonlyArray<Unfinished> {
    const open = new Map<string, Unfinished>()
    for (const line of this.#lines) {
      if (line.type === "began") {
        open.set(line.id, {
          id: line.id,
          start: line.at,
          end: null,
          marks: line.marks,
          path: line.path ?? null,
          before: line.before ?? null
        })
      } else if (line.type === "ended") {
        const began = open.get(line.id)
        // A write to one file is accounted for by its own change, which is in the journal before its end.
        if (began?.path != null) open.delete(line.id)
        else if (began !== undefined) open.set(line.id, { ...began, end: line.at })
      } else if (line.type === "settled") {
        for (const [id, { end }] of open) if (end !== null && !line.open.includes(id)) open.delete(id)
      }
    }
    return [...open.values()]
  }
}
