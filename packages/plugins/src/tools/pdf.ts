/**
 * The text of a PDF document, page by page, with Mozilla's pdf.js (through unpdf), in a thread.
 *
 * Pages are read until enough lines are there, and for some seconds at most; what has no text (a scan) says so. A document
 * whose page takes too long or too much memory (a small file can say that it is gigabytes) is given up.
 */
import { ToolFailure } from "@bezel/core/tool"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { inThread, type ThreadLimits } from "../threads/index.ts"
import type { PdfAnswer, PdfRequest, PdfText } from "./pdf-worker.ts"

const limits: ThreadLimits = { time: "30 seconds", memory: 1024 ** 3 }

const why = ({ error, name }: { readonly error: string; readonly name: string }): string =>
  name === "PasswordException"
    ? "it is protected by a password"
    : name === "InvalidPDFException"
    ? "it is no valid PDF document"
    : error

const ends = {
  slow: "it takes too long",
  large: "it takes too much memory",
  died: "it takes too much memory",
  missing: "a part of Bezel that reads such documents is not installed"
}

/** Reads pages until the text has so many lines. */
export const pdfText = (
  bytes: Uint8Array,
  shown: string,
  lines: number,
  { memory, time }: ThreadLimits = limits
): Effect.Effect<PdfText, ToolFailure> => {
  const cannot = (reason: string) => new ToolFailure({ message: `The text of ${shown} cannot be read: ${reason}.` })
  // Pages that are many end by themselves in half of the time, with what there is.
  const request: PdfRequest = { data: bytes, lines, millis: Duration.toMillis(time) / 2 }
  return Effect.flatMap(
    inThread<PdfAnswer>("tools/pdf-worker", request, { memory, time }),
    (end) =>
      end.type !== "answered"
        ? Effect.fail(cannot(ends[end.type]))
        : "error" in end.answer
        ? Effect.fail(cannot(why(end.answer)))
        : Effect.succeed(end.answer)
  )
}
