/**
 * Reads the text of a PDF document in a thread. Answers one request, `{ data, lines, millis }`, with the text, or with the
 * error that its library gives.
 */
import { parentPort } from "node:worker_threads"
import { getDocumentProxy } from "unpdf"

export interface PdfRequest {
  readonly data: Uint8Array
  /** Pages are read until the text has so many lines, */
  readonly lines: number
  /** or for so long. */
  readonly millis: number
}

export interface PdfText {
  readonly text: string
  readonly pages: number
  /** Pages whose text is there. */
  readonly read: number
}

export type PdfAnswer = PdfText | { readonly error: string; readonly name: string }

const textOf = async ({ data, lines, millis }: PdfRequest): Promise<PdfText> => {
  const document = await getDocumentProxy(data, { verbosity: 0, isEvalSupported: false })
  const until = performance.now() + millis
  const parts: Array<string> = []
  let count = 0
  for (let page = 1; page <= document.numPages && count < lines && performance.now() < until; page++) {
    const { items } = await (await document.getPage(page)).getTextContent()
    const text = items.map((item) => "str" in item ? item.str + (item.hasEOL ? "\n" : "") : "").join("").trim()
    parts.push(`[Page ${page}]\n${text === "" ? "(no text on this page)" : text}`)
    count += text.split("\n").length + 2
  }
  return { text: parts.join("\n\n"), pages: document.numPages, read: parts.length }
}

parentPort?.once("message", async (request: PdfRequest) => {
  let answer: PdfAnswer
  try {
    answer = await textOf(request)
  } catch (error) {
    answer = error instanceof Error
      ? { name: error.name, error: error.message.split("\n", 1)[0] ?? "" }
      : { name: "", error: String(error) }
  }
  parentPort?.postMessage(answer, [])
})
