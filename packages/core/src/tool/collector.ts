/**
 * An output collector: takes any amount of output and gives text within bounds.
 *
 * Memory is constant: the first `maxBytes` and, in a ring, the last ones. As soon as a bound is passed everything goes
 * to an artifact, which is bounded itself. Characters are never torn. Binary output is described and saved, not shown;
 * text given as a string (a tool's own remarks) is then kept beside the description. Counting and copying are plain
 * synchronous code.
 */
import * as Effect from "effect/Effect"
import {
  countNewlines,
  describeBinary,
  headOf,
  lineCount,
  looksBinary,
  SAMPLE_BYTES,
  sizeOf,
  tailOf,
  textOf
} from "./text.ts"
import type { ArtifactWriter, OutputBounds } from "./tool.ts"

export interface OutputCollector {
  /** Takes a chunk; returns when what must be saved of it is written. */
  readonly write: (chunk: string | Uint8Array) => Effect.Effect<void>
  /** Closes the artifact and gives the text; an empty text if nothing was written. May be run again. */
  readonly finish: Effect.Effect<CollectedOutput>
  /** Whether what came so far shows that this is no text. */
  readonly isBinary: () => boolean
}

export interface CollectedOutput {
  readonly text: string
  readonly bytes: number
  readonly lines: number
  readonly truncated: boolean
  readonly binary: boolean
  /** Where everything is, if it did not fit. */
  readonly artifact: string | null
}

export interface CollectorOptions {
  readonly bounds: OutputBounds
  /** Opens the artifact; called once, when it is needed. */
  readonly artifact: Effect.Effect<ArtifactWriter>
}

/** Room for the sentence that says what was left out. */
const NOTICE_BYTES = 512
const REMARK_UNITS = 4_096

export const makeCollector = (options: CollectorOptions): OutputCollector => {
  const { bounds } = options
  const budget = Math.max(0, bounds.maxBytes - Math.min(NOTICE_BYTES, Math.floor(bounds.maxBytes / 4)))
  const headBytes = bounds.keep === "tail" ? 0 : bounds.keep === "both" ? Math.floor(budget / 2) : budget
  const tailBytes = budget - headBytes
  // One line is left for the notice.
  const budgetLines = Math.max(1, bounds.maxLines - 1)
  const headLines = bounds.keep === "both" ? Math.ceil(budgetLines / 2) : budgetLines
  const tailLines = bounds.keep === "both" ? budgetLines - headLines : budgetLines

  let first = new Uint8Array(Math.min(4_096, bounds.maxBytes))
  let firstLength = 0
  let ring: Uint8Array | null = null
  let ringEnd = 0
  let total = 0
  let newlines = 0
  let last: number | undefined
  let binary = false
  let remarks = ""
  let writer: ArtifactWriter | "failed" | null = null
  let saved = 0
  let complete = true
  let closed = false

  const keepFirst = (bytes: Uint8Array) => {
    const part = bytes.subarray(0, bounds.maxBytes - firstLength)
    if (part.length === 0) return
    if (firstLength + part.length > first.length) {
      const grown = new Uint8Array(Math.min(bounds.maxBytes, Math.max(first.length * 2, firstLength + part.length)))
      grown.set(first.subarray(0, firstLength))
      first = grown
    }
    first.set(part, firstLength)
    firstLength += part.length
  }

  const keepLast = (bytes: Uint8Array) => {
    if (tailBytes === 0) return
    ring ??= new Uint8Array(tailBytes)
    const part = bytes.subarray(Math.max(0, bytes.length - tailBytes))
    const room = tailBytes - ringEnd
    ring.set(part.subarray(0, room), ringEnd)
    if (part.length > room) ring.set(part.subarray(room), 0)
    ringEnd = (ringEnd + part.length) % tailBytes
  }

  const lastBytes = (): Uint8Array => {
    if (ring === null) return new Uint8Array(0)
    if (total < tailBytes) return ring.subarray(0, ringEnd)
    const joined = new Uint8Array(tailBytes)
    joined.set(ring.subarray(ringEnd), 0)
    joined.set(ring.subarray(0, ringEnd), tailBytes - ringEnd)
    return joined
  }

  const sampleIsBinary = () => looksBinary(first.subarray(0, firstLength))

  const overflows = () => total > bounds.maxBytes || lineCount(newlines, last) > bounds.maxLines

  const save = Effect.fnUntraced(function*(bytes: Uint8Array) {
    if (writer === "failed" || writer === null || !complete || bytes.length === 0) return
    complete = yield* writer.write(bytes)
    if (complete) saved += bytes.length
  })

  // What is saved must begin with what came before the overflow.
  const open = Effect.fnUntraced(function*(before: Uint8Array) {
    writer = yield* Effect.catchCause(
      options.artifact,
      (cause) => Effect.as(Effect.logWarning("An output file could not be opened", cause), "failed" as const)
    )
    yield* save(before)
  })

  const take = (bytes: Uint8Array): Effect.Effect<void> => {
    const before = writer === null ? first.slice(0, firstLength) : null
    const hadAll = total === firstLength
    keepFirst(bytes)
    keepLast(bytes)
    total += bytes.length
    newlines += countNewlines(bytes)
    last = bytes.at(-1) ?? last
    // A NUL decides at once; the rest of the judgement waits for a whole sample, or it would depend on the chunks.
    if (!binary && total - bytes.length < SAMPLE_BYTES) {
      binary = total < SAMPLE_BYTES
        ? bytes.includes(0)
        : sampleIsBinary()
    }
    if (writer !== null) return save(bytes)
    return (overflows() || binary) && hadAll && before !== null
      ? Effect.andThen(open(before), Effect.suspend(() => save(bytes)))
      : Effect.void
  }

  const write: OutputCollector["write"] = (chunk) =>
    Effect.suspend(() => {
      if (chunk.length === 0) return Effect.void
      if (typeof chunk !== "string") {
        remarks = ""
        return take(chunk)
      }
      remarks = (remarks + chunk).slice(-REMARK_UNITS)
      return binary ? Effect.void : take(encoder.encode(chunk))
    })

  const place = () => {
    if (writer === null || writer === "failed") return "The rest could not be saved."
    const part = complete ? "All of it" : `Its first ${sizeOf(saved)}`
    return `${part} is in ${writer.path}${binary ? "" : ", which the read tool can read in parts (offset, limit)"}.`
  }

  const text = (): string => {
    if (binary) {
      const kind = describeBinary(first.subarray(0, firstLength))
      return `[The output is ${kind}, ${sizeOf(total)}, and is not shown. ${place()}]\n${remarks.replace(/^\n/, "")}`
    }
    const all = first.subarray(0, firstLength)
    if (!overflows()) return textOf(all)
    const head = headBytes === 0 ? "" : textOf(headOf(all, headBytes, headLines))
    const end = total === firstLength ? all : lastBytes()
    const tail = tailBytes === 0 ? "" : textOf(tailOf(end, tailBytes, tailLines))
    const kept = bounds.keep === "both"
      ? "its beginning and end are"
      : bounds.keep === "head"
      ? "its beginning is"
      : "its end is"
    const size = `${sizeOf(total)}, ${lineCount(newlines, last).toLocaleString("en-US")} lines`
    const notice = `[The output is longer than fits here (${size}); only ${kept} shown. ${place()}]`
    return [head, notice, tail].filter((part) => part !== "").map((part, index, parts) =>
      index < parts.length - 1 && !part.endsWith("\n") ? `${part}\n` : part
    ).join("")
  }

  const finish = Effect.gen(function*() {
    if (!binary && total < SAMPLE_BYTES && sampleIsBinary()) {
      binary = true
      if (writer === null) yield* open(first.subarray(0, firstLength))
    }
    if (!closed && writer !== null && writer !== "failed") {
      closed = true
      yield* writer.close
    }
    return {
      text: text(),
      bytes: total,
      lines: lineCount(newlines, last),
      truncated: overflows(),
      binary,
      artifact: writer === null || writer === "failed" ? null : writer.path
    }
  })

  return { write, finish, isBinary: () => binary }
}

const encoder = new TextEncoder()
