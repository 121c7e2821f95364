/**
 * The card of a tool call: a row with its state, name and title, and below what it did. A renderer may give title and
 * body; what it leaves out, and every tool without one, is shown by what stands here.
 */
import { type Block, type Span, span, type SpanStyle, text } from "./block.ts"
import type { ToolCallView, ToolRenderer, ToolRenderOptions } from "./contributions.ts"
import { plainOutput } from "./sanitize.ts"

/** Rows of output that stand below a call that is not expanded. */
export const outputRows = 6

const marks: { readonly [status in ToolCallView["status"]]: readonly [string, SpanStyle] } = {
  writing: ["…", { color: "muted" }],
  pending: ["○", { color: "muted" }],
  waiting: ["?", { color: "warning", bold: true }],
  running: ["●", { color: "accent" }],
  completed: ["✓", { color: "success" }],
  failed: ["✗", { color: "error" }],
  aborted: ["⊘", { color: "warning" }]
}

/** The last rows of an output, with how many stand above them. */
export const outputTail = (
  output: string,
  options: ToolRenderOptions,
  style: SpanStyle = { color: "muted" }
): ReadonlyArray<Block> => {
  const lines = plainOutput(output).replace(/\n+$/, "").split("\n")
  if (lines.length === 1 && lines[0] === "") return []
  if (options.expanded || lines.length <= outputRows) {
    return [text(span(lines.join("\n"), style), { wrap: "clip", indent: 2 })]
  }
  return [
    text(span(`… ${lines.length - outputRows} lines above`, { color: "muted", italic: true }), {
      wrap: "clip",
      indent: 2
    }),
    text(span(lines.slice(-outputRows).join("\n"), style), { wrap: "clip", indent: 2 })
  ]
}

/** Arguments on one row, shortest form that still says what the call is about. */
const defaultTitle = (call: ToolCallView): ReadonlyArray<Span> => {
  const { args } = call
  if (args === null) return [span(call.argsText, { color: "muted" })]
  if (typeof args !== "object" || Array.isArray(args)) return [span(JSON.stringify(args), { color: "muted" })]
  return [span(
    Object.entries(args).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join(" "),
    { color: "muted" }
  )]
}

/**
 * How far a call is, in one row: a text, or an object with a `message`, how much is done (`progress`) and of how much
 * (`total`). Other progress is for a renderer to show.
 */
const progressRow = ({ progress, status }: ToolCallView): ReadonlyArray<Block> => {
  if (status !== "running" || progress === null) return []
  if (typeof progress === "string") return [text(span(progress, { color: "accent" }), { wrap: "clip", indent: 2 })]
  if (typeof progress !== "object" || Array.isArray(progress)) return []
  const member = (name: string): unknown => Object.hasOwn(progress, name) ? Reflect.get(progress, name) : undefined
  const [message, done, total] = [member("message"), member("progress"), member("total")]
  const words = [
    ...(typeof done === "number" ? [typeof total === "number" ? `${done}/${total}` : `${done}`] : []),
    ...(typeof message === "string" ? [message] : [])
  ]
  return words.length === 0 ? [] : [text(span(words.join("  "), { color: "accent" }), { wrap: "clip", indent: 2 })]
}

export const toolCard = (
  call: ToolCallView,
  renderer: ToolRenderer | null,
  options: ToolRenderOptions
): ReadonlyArray<Block> => {
  const [mark, style] = marks[call.status]
  const title = renderer?.title?.(call) ?? defaultTitle(call)
  const body = renderer?.body === undefined
    ? [
      ...outputTail(call.output, options, call.isError ? { color: "error" } : { color: "muted" }),
      ...progressRow(call)
    ]
    : renderer.body(call, options)
  return [
    text([span(call.name, { bold: true }), " ", ...title], { wrap: "clip", marker: span(`${mark} `, style) }),
    ...body
  ]
}
