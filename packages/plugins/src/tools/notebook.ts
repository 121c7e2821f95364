/**
 * Jupyter notebooks as text: cells in order with their sources, and the text of their outputs. Pure.
 *
 * Pictures and other data in outputs are named with their size; what a program coloured comes without its escape codes.
 */
import { sizeOf } from "@bezel/core/tool"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const Text = Schema.Union([Schema.String, Schema.Array(Schema.String)])

const Output = Schema.Struct({
  output_type: Schema.String,
  text: Schema.optionalKey(Text),
  data: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  ename: Schema.optionalKey(Schema.String),
  evalue: Schema.optionalKey(Schema.String),
  traceback: Schema.optionalKey(Schema.Array(Schema.String))
})
type Output = typeof Output.Type

const Notebook = Schema.Struct({
  cells: Schema.Array(
    Schema.Struct({
      cell_type: Schema.String,
      source: Text,
      outputs: Schema.optionalKey(Schema.Array(Output))
    })
  )
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Notebook))

const maxOutputUnits = 8_000

const textOf = (text: string | ReadonlyArray<string>): string => typeof text === "string" ? text : text.join("")

// eslint-disable-next-line no-control-regex
const escapes = /\u001b\[[0-9;?]*[ -/]*[@-~]/g

const cut = (text: string): string =>
  text.length <= maxOutputUnits
    ? text
    : `${text.slice(0, maxOutputUnits).replace(/[\ud800-\udbff]$/, "")}\n[… ${
      text.length - maxOutputUnits
    } more characters]`

const isText = (value: unknown): value is string | ReadonlyArray<string> =>
  typeof value === "string" || (Array.isArray(value) && value.every((part) => typeof part === "string"))

const outputText = ({ data, ename, evalue, text, traceback }: Output): string => {
  if (traceback !== undefined && traceback.length > 0) return traceback.join("\n").replaceAll(escapes, "")
  if (ename !== undefined) return `${ename}: ${evalue ?? ""}`
  if (text !== undefined) return textOf(text).replaceAll(escapes, "")
  const plain = data?.["text/plain"]
  const others = Object.entries(data ?? {}).flatMap(([type, value]) =>
    type.startsWith("text/") || !isText(value) ? [] : [`[${type}, ${sizeOf(Math.floor(textOf(value).length * 3 / 4))}]`]
  )
  return [...(isText(plain) ? [textOf(plain)] : []), ...others].join("\n")
}

/** The notebook as text, or `null` if that is no notebook. */
export const notebookText = (json: string): string | null => {
  const notebook = decode(json)
  if (Option.isNone(notebook)) return null
  return notebook.value.cells.map(({ cell_type, outputs, source }, index) => {
    const shown = (outputs ?? []).map((output) => cut(outputText(output))).filter((text) => text !== "")
    return [
      `[Cell ${index + 1}, ${cell_type}]`,
      textOf(source),
      ...(shown.length === 0 ? [] : [`[Output of cell ${index + 1}]`, ...shown])
    ].join("\n").trimEnd()
  }).join("\n\n")
}
