/**
 * The lines around the editor: what the session does now, what waits, and which model at which place.
 *
 * Pure functions of the view and of the time, in milliseconds since the epoch.
 */
import type { ConversationView, ViewInput } from "@bezel/core/harness"
import type { ReplicaStatus } from "@bezel/core/service"
import { type Block, row, type Span, span, text } from "@bezel/tui"

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] as const
/** How long one picture of the spinner stays. */
export const frameMillis = 120

export type Activity =
  | { readonly type: "idle" }
  | { readonly type: "working"; readonly what: string }
  | { readonly type: "waiting"; readonly what: string }
  | { readonly type: "retrying"; readonly at: number; readonly attempt: number; readonly error: string | null }
  | { readonly type: "summarizing"; readonly retryAt: number | null }
  | { readonly type: "disconnected" }

/** What the turn does, in one word or two. */
export const activityOf = (view: ConversationView): Activity => {
  const { compaction, turn } = view
  // It runs between the requests of a turn, and without one.
  if (typeof compaction === "object" && compaction !== null && !Array.isArray(compaction)) {
    const { retryAt } = compaction as { readonly retryAt?: unknown }
    return { type: "summarizing", retryAt: typeof retryAt === "number" ? retryAt : null }
  }
  if (turn === null) return { type: "idle" }
  const { generation } = turn
  if (generation?.stage === "retrying") {
    return {
      type: "retrying",
      at: generation.retryAt ?? 0,
      attempt: generation.attempt,
      error: generation.error?.message ?? null
    }
  }
  const waiting = turn.tools.find((tool) => tool.status === "waiting")
  if (waiting !== undefined) return { type: "waiting", what: `${waiting.name} waits for you` }
  const running = turn.tools.filter((tool) => tool.status === "running")
  if (running.some(({ name }) => name === "question")) return { type: "waiting", what: "a question waits for you" }
  const first = running[0]
  if (first !== undefined) {
    return { type: "working", what: running.length === 1 ? `Running ${first.name}` : `Running ${running.length} tools` }
  }
  return {
    type: "working",
    what: generation?.stage === "requesting" || generation?.stage === "preparing" ? "Thinking" : "Working"
  }
}

const seconds = (millis: number): string => {
  const whole = Math.max(0, Math.round(millis / 1000))
  return whole < 60 ? `${whole}s` : `${Math.floor(whole / 60)}m ${whole % 60}s`
}

/** Columns below which the row says only what it must. */
const narrow = 40

/** The row above the editor. */
export const activityBlock = (activity: Activity, since: number, now: number, columns = 80): Block => {
  const picture = spinner[Math.floor(now / frameMillis) % spinner.length] ?? "⠋"
  const interrupt = span(columns < narrow ? "esc" : "esc to interrupt", { color: "muted" })
  switch (activity.type) {
    case "idle":
      return text("")
    case "disconnected":
      return row([
        span("⏸ ", { color: "warning" }),
        span(columns < narrow ? "Disconnected" : "Disconnected; trying to connect again", { color: "warning" })
      ])
    case "working":
      return row([
        span(`${picture} `, { color: "accent" }),
        `${activity.what} `,
        span(seconds(now - since), { color: "muted" })
      ], [interrupt])
    case "waiting":
      return row([span("? ", { color: "warning", bold: true }), activity.what], [interrupt])
    case "summarizing":
      return row([
        span(`${picture} `, { color: "accent" }),
        "Summarizing the older part ",
        span(activity.retryAt === null ? seconds(now - since) : `again in ${seconds(activity.retryAt - now)}`, {
          color: "muted"
        })
      ], [interrupt])
    case "retrying":
      return row([
        span(`${picture} `, { color: "warning" }),
        span(`Retry in ${seconds(activity.at - now)} (attempt ${activity.attempt + 1})`, { color: "warning" }),
        ...(activity.error === null ? [] : [span(`: ${activity.error}`, { color: "muted" })])
      ], [interrupt])
  }
}

const marks: { readonly [how in ViewInput["whenBusy"]]: string } = {
  steer: "↳ next: ",
  followUp: "↳ later: ",
  reject: "↳ "
}

/** Inputs that wait for a boundary, oldest first. Behind a turn that was interrupted they wait for the next prompt. */
export const queueBlocks = (inbox: ReadonlyArray<ViewInput>, isBusy = true): ReadonlyArray<Block> => {
  const shown = inbox.slice(0, 5)
  const blocks: Array<Block> = shown.map((input) =>
    text(span(input.text.replaceAll("\n", " "), { color: "muted" }), {
      wrap: "clip",
      marker: span(marks[input.whenBusy], { color: "muted" })
    })
  )
  if (inbox.length === 0) return blocks
  const more = inbox.length - shown.length
  blocks.push(
    text(
      span(
        `  ${more > 0 ? `${more} more; ` : ""}${isBusy ? "" : "they wait for your next prompt; "}/queue changes them`,
        { color: "muted" }
      ),
      { wrap: "clip" }
    )
  )
  return blocks
}

const tokens = (count: number): string =>
  count < 1000 ? `${count}` : count < 100_000 ? `${(count / 1000).toFixed(1)}k` : `${Math.round(count / 1000)}k`

export interface StatusParts {
  readonly view: ConversationView | undefined
  readonly status: ReplicaStatus
  readonly location: string | null
  /** The model that answers next, as the session says; `null` while it has not. */
  readonly model?: string | null
  /** Tokens that fit into a request of that model; `null` while that is not known. */
  readonly window?: number | null
  readonly home: string | null
  /** Of the terminal: where they are few, the model stands before what it costs. */
  readonly columns?: number
  /** What others have to say behind the place. */
  readonly more?: ReadonlyArray<Block>
}

/** The model that answers next: the chosen one, the one that answers, what the session says, else what answered last. */
const modelName = (view: ConversationView, next: string | null): string => {
  const model = view.config.model ?? view.turn?.generation?.model ?? null
  if (model !== null) return `${model.provider}/${model.model}`
  if (next !== null) return next
  const data = view.entries.findLast((entry) => entry.kind === "bezel.assistant" && entry.model !== null)?.data
  return typeof data === "object" && data !== null && "model" in data && typeof data.model === "string"
    ? data.model
    : "default model"
}

/** Columns that the place has at least. */
const leastPlace = 6

/** The row below the editor. */
export const statusBlock = (
  { columns = 80, home, location, model, more, status, view, window }: StatusParts
): Block => {
  const place = location === null
    ? ""
    : home !== null && (location === home || location.startsWith(`${home}/`))
    ? `~${location.slice(home.length)}`
    : location
  const left: Array<Span> = [span(place, { color: "muted" })]
  for (const block of more ?? []) if (block.kind === "text") left.push("  ", ...block.spans)
  if (status === "stale") left.push(span("  disconnected, shown as last known", { color: "warning" }))
  if (status === "hydrating") left.push(span("  connecting", { color: "muted" }))
  if (view === undefined) return row(left)
  const { config, usage } = view
  const right: Array<string> = []
  if (usage.context > 0) {
    const share = window == null ? "" : ` (${Math.min(100, Math.round(100 * usage.context / window))}%)`
    right.push(`${tokens(usage.context)} context${share}`)
  }
  if (usage.cost > 0) right.push(`$${usage.cost.toFixed(usage.cost < 1 ? 3 : 2)}`)
  if (config.agent !== null) right.push(config.agent)
  right.push(modelName(view, model ?? null))
  while (right.length > 1 && right.join(" · ").length > columns - leastPlace) right.shift()
  return row(left, [span(right.join(" · "), { color: "muted" })])
}
