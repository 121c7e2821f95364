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

export const toolCard = (
  call: ToolCallView,
  renderer: ToolRenderer | null,
  options: ToolRenderOptions
): ReadonlyArray<Block> => {
  const [mark, style] = marks[call.status]
  const title = renderer?.title?.(call) ?? defaultTitle(call)
  const body = renderer?.body === undefined
    ? outputTail(call.output, options, call.isError ? { color: "error" } : { color: "muted" })
    : renderer.body(call, options)
  return [
    text([span(call.name, { bold: true }), " ", ...title], { wrap: "clip", marker: span(`${mark} `, style) }),
    ...body
  ]
}
