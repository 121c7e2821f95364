/**
 * The text of a PDF document, page by page, with Mozilla's pdf.js (through unpdf), which is loaded at first use.
 *
 * Pages are read until enough lines are there, and for some seconds at most; what has no text (a scan) says so.
 */
import { ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"

const maxSeconds = 30

export interface PdfText {
  readonly text: string
  readonly pages: number
  /** Pages whose text is there. */
  readonly read: number
}

const failure = (shown: string, cause: unknown): ToolFailure => {
  const name = cause instanceof Error ? cause.name : ""
  const why = name === "PasswordException"
    ? "it is protected by a password"
    : name === "InvalidPDFException"
    ? "it is no valid PDF document"
    : cause instanceof Error
    ? cause.message.split("\n", 1)[0] ?? ""
    : String(cause)
  return new ToolFailure({ message: `The text of ${shown} cannot be read: ${why}.` })
}

/** Reads pages until the text has so many lines. */
export const pdfText = (bytes: Uint8Array, shown: string, lines: number): Effect.Effect<PdfText, ToolFailure> =>
  Effect.acquireUseRelease(
    Effect.tryPromise({
      try: async () => {
        const { getDocumentProxy } = await import("unpdf")
        return getDocumentProxy(new Uint8Array(bytes), { verbosity: 0, isEvalSupported: false })
      },
      catch: (cause) => failure(shown, cause)
    }),
    (document) =>
      Effect.gen(function*() {
        const until = performance.now() + maxSeconds * 1_000
        const parts: Array<string> = []
        let count = 0
        for (let page = 1; page <= document.numPages && count < lines && performance.now() < until; page++) {
          const text = yield* Effect.tryPromise({
            try: async () => {
              const { items } = await (await document.getPage(page)).getTextContent()
              return items.map((item) => "str" in item ? item.str + (item.hasEOL ? "\n" : "") : "").join("").trim()
            },
            catch: (cause) => failure(shown, cause)
          })
          parts.push(`[Page ${page}]\n${text === "" ? "(no text on this page)" : text}`)
          count += text.split("\n").length + 2
        }
        return { text: parts.join("\n\n"), pages: document.numPages, read: parts.length }
      }),
    (document) => Effect.promise(() => document.destroy().catch(() => undefined))
  )
