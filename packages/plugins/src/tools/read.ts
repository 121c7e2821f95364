/**
 * The `read` tool: lines of a text file with their numbers, an image, the cells of a notebook, the text of a PDF document.
 *
 * What is read is the opened handle, in pieces, so that a file that never ends, grows or lies about its size costs no
 * more than what is shown. Only regular files are read: a pipe without a writer or a device would hang or never end.
 */
import { describeBinary, looksBinary, sizeOf, textOf, tool, ToolFailure, toolResult } from "@bezel/core/tool"
import type { ToolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BigIntStats } from "node:fs"
import { constants } from "node:fs"
import type { FileHandle } from "node:fs/promises"
import * as FileSystem from "node:fs/promises"
import { StringDecoder } from "node:string_decoder"
import type { ReadDetails } from "./contract.ts"
import type { FileState } from "./file-state.ts"
import { imageType } from "./image.ts"
import { notebookText } from "./notebook.ts"
import { attempt, checkPath, resolvePath, showPath } from "./paths.ts"
import { pdfText } from "./pdf.ts"

const DEFAULT_LINES = 2_000
const MAX_SHOWN_BYTES = 60 * 1024
const MAX_LINE_UNITS = 4_000
const MAX_IMAGE_BYTES = 5 * 1024 * 1024
const MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
const PIECE_BYTES = 64 * 1024

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "File to read, relative to the workspace or absolute." }),
  offset: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description: "First line to show, from 1. Default 1."
    })
  ),
  limit: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description: `How many lines to show. Default ${DEFAULT_LINES}.`
    })
  )
})

export const readTool = (directory: string, files: FileState) =>
  tool({
    description:
      "Reads a file. Text comes as lines with their numbers (number, tab, line; numbers and tab are not in the file); " +
      "for long files use offset and limit. Images (PNG, JPEG, GIF, WebP) are shown; of notebooks (.ipynb) the cells, of PDF " +
      "documents the text of the pages. Directories: use list.",
    input: Input,
    replay: "safe",
    // The tool keeps within bytes itself, so that it can say where to read on.
    bounds: { maxLines: MAX_SHOWN_BYTES },
    permission: ({ path }) => ({ access: "read", subjects: [resolvePath(directory, path)] }),
    execute: Effect.fn("tools.read")(function*(input, call) {
      yield* checkPath(input.path)
      const path = resolvePath(directory, input.path)
      const shown = showPath(directory, path)
      return yield* withRegularFile(path, shown, (handle, stats) =>
        Effect.gen(function*() {
          const first = yield* readPiece(handle, shown, 0)
          files.saw(call.sessionID, path, stats)
          if (first.length === 0) return result(`The file ${shown} is empty.`, path, "empty")
          const mediaType = imageType(first)
          if (mediaType !== null) return yield* readImage(handle, path, shown, mediaType, stats)
          const wanted = {
            path,
            shown,
            offset: input.offset ?? 1,
            limit: input.limit ?? DEFAULT_LINES
          }
          if (first.subarray(0, 5).toString("latin1") === "%PDF-") return yield* readPdf(handle, stats, wanted)
          if (/\.ipynb$/i.test(path)) {
            const cells = yield* readNotebook(handle, stats, wanted)
            if (cells !== null) return cells
          }
          if (looksBinary(first)) {
            const size = stats.size === 0n ? "of unknown size" : sizeOf(Number(stats.size))
            return result(
              `The file ${shown} is ${describeBinary(first)} (${size}); it is no text and is not shown.`,
              path,
              "binary"
            )
          }
          return yield* readLines(handle, first, wanted)
        }))
    })
  })

const result = (content: string, path: string, kind: ReadDetails["kind"]): ToolResult =>
  toolResult({ content, details: { path, kind, firstLine: 0, lines: 0, more: false } satisfies ReadDetails })

/** Opens without waiting for anybody and refuses what is no regular file, before and after opening. */
const withRegularFile = <A>(
  path: string,
  shown: string,
  use: (handle: FileHandle, stats: BigIntStats) => Effect.Effect<A, ToolFailure>
): Effect.Effect<A, ToolFailure> =>
  Effect.gen(function*() {
    // Opening a device can have effects of its own, so it is looked at first.
    yield* refuseSpecial(yield* attempt("Cannot read", shown, () => FileSystem.stat(path, { bigint: true })), shown)
    return yield* Effect.acquireUseRelease(
      attempt("Cannot read", shown, () =>
        FileSystem.open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)),
      (handle) =>
        Effect.gen(function*() {
          const stats = yield* attempt("Cannot read", shown, () =>
            handle.stat({ bigint: true }))
          yield* refuseSpecial(stats, shown)
          return yield* use(handle, stats)
        }),
      (handle) =>
        Effect.promise(() => handle.close().catch(() => {}))
    )
  })

const refuseSpecial = (stats: BigIntStats, shown: string): Effect.Effect<void, ToolFailure> => {
  if (stats.isFile()) return Effect.void
  if (stats.isDirectory()) {
    return Effect.fail(new ToolFailure({ message: `${shown} is a directory. Use list to see what is in it.` }))
  }
  const kind = stats.isFIFO() ? "a named pipe" : stats.isSocket() ? "a socket" : "a device"
  return Effect.fail(new ToolFailure({ message: `${shown} is ${kind}, not a regular file, and is not read.` }))
}

const readPiece = (handle: FileHandle, shown: string, position: number): Effect.Effect<Buffer, ToolFailure> =>
  Effect.map(
    attempt("Cannot read", shown, () => handle.read(Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES, position)),
    ({ buffer, bytesRead }) => buffer.subarray(0, bytesRead)
  )

const readImage = Effect.fnUntraced(function*(
  handle: FileHandle,
  path: string,
  shown: string,
  mediaType: string,
  stats: BigIntStats
): Effect.fn.Return<ToolResult, ToolFailure> {
  if (stats.size > BigInt(MAX_IMAGE_BYTES)) {
    return result(
      `The image ${shown} (${mediaType}, ${sizeOf(Number(stats.size))}) is too large to show; the most is ${
        sizeOf(MAX_IMAGE_BYTES)
      }.`,
      path,
      "image"
    )
  }
  const data = yield* attempt("Cannot read", shown, async () => {
    const buffer = Buffer.alloc(Number(stats.size))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    return buffer.subarray(0, bytesRead)
  })
  return toolResult({
    content: [
      { type: "text", text: `The image ${shown} (${mediaType}, ${sizeOf(data.length)}):` },
      { type: "file", mediaType, fileName: shown, data: data.toString("base64") }
    ],
    details: { path, kind: "image", firstLine: 0, lines: 0, more: false } satisfies ReadDetails
  })
})

interface LinesWanted {
  readonly path: string
  readonly shown: string
  readonly offset: number
  readonly limit: number
}

/** All of a file that was found to be no larger than the bound. */
const readWhole = (handle: FileHandle, shown: string, stats: BigIntStats): Effect.Effect<Buffer, ToolFailure> =>
  attempt("Cannot read", shown, async () => {
    const buffer = Buffer.alloc(Number(stats.size))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    return buffer.subarray(0, bytesRead)
  })

const tooLarge = (shown: string, stats: BigIntStats) =>
  new ToolFailure({
    message: `${shown} has ${sizeOf(Number(stats.size))}, over the limit of ${
      sizeOf(MAX_DOCUMENT_BYTES)
    } for such documents.`
  })

/** Lines of a text that stands for a document; their numbers are of that text. */
const documentResult = (
  text: string,
  wanted: LinesWanted,
  kind: "notebook" | "pdf",
  about: string
): Effect.Effect<ToolResult, ToolFailure> => {
  const taker = new LineTaker(wanted.offset, wanted.limit)
  taker.take(Buffer.from(text))
  taker.end()
  if (taker.lines.length === 0 && text !== "") return Effect.fail(pastEnd(wanted, taker.seen))
  const more = taker.more ? `\n[More lines follow; read on with offset ${wanted.offset + taker.lines.length}.]` : ""
  const details: ReadDetails = {
    path: wanted.path,
    kind,
    firstLine: taker.lines.length === 0 ? 0 : wanted.offset,
    lines: taker.lines.length,
    more: taker.more
  }
  return Effect.succeed(toolResult({ content: `[${about}]\n${taker.lines.join("\n")}${more}`, details }))
}

const readPdf = Effect.fnUntraced(function*(
  handle: FileHandle,
  stats: BigIntStats,
  wanted: LinesWanted
): Effect.fn.Return<ToolResult, ToolFailure> {
  if (stats.size > BigInt(MAX_DOCUMENT_BYTES)) return yield* tooLarge(wanted.shown, stats)
  const bytes = yield* readWhole(handle, wanted.shown, stats)
  const { pages, read, text } = yield* pdfText(bytes, wanted.shown, wanted.offset + wanted.limit)
  const part = read < pages ? `; the text of the first ${read} is here` : ""
  return yield* documentResult(
    text,
    wanted,
    "pdf",
    `The text of the PDF document ${wanted.shown}, ${pages} ${pages === 1 ? "page" : "pages"}${part}`
  )
})

/** `null` if it is no notebook after all. */
const readNotebook = Effect.fnUntraced(function*(
  handle: FileHandle,
  stats: BigIntStats,
  wanted: LinesWanted
): Effect.fn.Return<ToolResult | null, ToolFailure> {
  if (stats.size > BigInt(MAX_DOCUMENT_BYTES)) return yield* tooLarge(wanted.shown, stats)
  const text = notebookText((yield* readWhole(handle, wanted.shown, stats)).toString("utf8"))
  return text === null
    ? null
    : yield* documentResult(text, wanted, "notebook", `The cells of the notebook ${wanted.shown}`)
})

const pastEnd = ({ offset, shown }: LinesWanted, seen: number): ToolFailure =>
  new ToolFailure({
    message: `${shown} has only ${seen} ${seen === 1 ? "line" : "lines"}; offset ${offset} is past its end.`
  })

const readLines = Effect.fnUntraced(function*(
  handle: FileHandle,
  first: Buffer,
  wanted: LinesWanted
): Effect.fn.Return<ToolResult, ToolFailure> {
  const taker = new LineTaker(wanted.offset, wanted.limit)
  let position = 0
  for (let piece = first; piece.length > 0 && !taker.full; piece = yield* readPiece(handle, wanted.shown, position)) {
    position += piece.length
    taker.take(piece)
  }
  taker.end()
  const { lines, more, seen } = taker
  if (lines.length === 0) {
    return yield* pastEnd(wanted, seen)
  }
  const lastLine = wanted.offset + lines.length - 1
  const body = lines.map((line, index) => `${wanted.offset + index}\t${line}`).join("\n")
  const rest = more ? `\n[More lines follow; read on with offset ${lastLine + 1}.]` : ""
  const details: ReadDetails = { path: wanted.path, kind: "text", firstLine: wanted.offset, lines: lines.length, more }
  return toolResult({ content: body + rest, details })
})

/**
 * Takes the lines from `offset` on until `limit` lines or the bytes that fit a result are there. Plain code: it sees
 * every byte.
 */
class LineTaker {
  readonly lines: Array<string> = []
  full = false
  more = false
  /** Lines that have ended so far. */
  seen = 0
  readonly #offset: number
  readonly #limit: number
  readonly #decoder = new StringDecoder("utf8")
  #line = ""
  #lineUnits = 0
  #open = false
  #bytes = 0

  constructor(offset: number, limit: number) {
    this.#offset = offset
    this.#limit = limit
  }

  take(piece: Buffer): void {
    for (let from = 0; from < piece.length && !this.full;) {
      const at = piece.indexOf(10, from)
      const end = at === -1 ? piece.length : at
      if (this.#isFull()) return
      this.#open = true
      if (this.seen + 1 >= this.#offset) this.#add(this.#decoder.write(piece.subarray(from, end)))
      if (at !== -1) this.#close()
      from = end + 1
    }
  }

  end(): void {
    if (this.#open && !this.full) this.#close()
  }

  /** Asked only when a further byte is there, so being full means that more follows. */
  #isFull(): boolean {
    if (this.#open || (this.lines.length < this.#limit && this.#bytes < MAX_SHOWN_BYTES)) return false
    this.full = true
    this.more = true
    return true
  }

  #add(text: string): void {
    this.#lineUnits += text.length
    if (this.#line.length < MAX_LINE_UNITS) this.#line += text.slice(0, MAX_LINE_UNITS - this.#line.length)
  }

  #close(): void {
    this.seen++
    this.#open = false
    if (this.seen < this.#offset) return
    this.#add(this.#decoder.end())
    const cut = this.#lineUnits - this.#line.length
    const line = cut > 0
      ? `${this.#line.replace(/[\ud800-\udbff]$/, "")} [… ${cut.toLocaleString("en-US")} more characters in this line]`
      : this.#line.replace(/\r$/, "")
    this.#bytes += Buffer.byteLength(line) + String(this.seen).length + 2
    this.lines.push(line)
    this.#line = ""
    this.#lineUnits = 0
  }
}

/** Text of a file's bytes for diffs, or `null` if it is no text. */
export const diffText = (bytes: Buffer): string | null =>
  bytes.length > 1024 * 1024 || looksBinary(bytes) ? null : textOf(bytes)
