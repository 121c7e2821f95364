/**
 * `bezel run` for people and pipes: the answer on stdout, everything else on stderr.
 *
 * In a pipe the answer is printed once, at the end, so that a failed attempt leaves no trace there; on a terminal it is
 * printed as it comes. On stderr there is a line for each tool call that ended; on a terminal also a spinner.
 */
import type { ViewTool } from "@bezel/core/harness"
import { waitingText } from "./background.ts"
import type { Step } from "./follow.ts"
import type { RunOutput, RunResult } from "./output.ts"
import { callTitle, oneLine, printable } from "./text.ts"

export interface PlainOptions {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  /** The answer streams, without what a terminal would obey. */
  readonly stdoutIsTerminal: boolean
  /** A spinner turns while something runs. */
  readonly stderrIsTerminal: boolean
  readonly color: boolean
  readonly columns: number
  /** Milliseconds since the epoch; the machine's clock by default. */
  readonly now?: () => number
}

/** How long a wait takes, in words; nothing for one that is over before it is read. */
const waitText = (until: unknown, now: number): string => {
  const seconds = typeof until === "number" ? Math.ceil((until - now) / 1_000) : 0
  if (seconds < 3) return ""
  return seconds < 100 ? ` in ${seconds} s` : ` in ${Math.ceil(seconds / 60)} min`
}

/** Of an event `warning` of a plugin. */
const messageOf = (data: unknown): string | null =>
  typeof data === "object" && data !== null && "message" in data && typeof data.message === "string"
    ? data.message
    : null

/** What the line of a call says that did not run, or not to its end, by the code of its result. */
const reasons = new Map<unknown, string>([
  ["denied_by_rule", "denied"],
  ["blocked", "blocked"],
  ["interrupted", "interrupted"],
  ["unattended", "nobody could be asked"]
])

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

export class Plain implements RunOutput {
  readonly #options: PlainOptions
  readonly #reported = new Set<string>()
  /** Text of the running request's answer that stdout has, on a terminal. */
  #streamed = ""
  #atLineStart = true
  #frame = 0
  #activity: string | null = null
  #spinning = false

  constructor(options: PlainOptions) {
    this.#options = options
  }

  session(): void {
    this.#activity = "starting"
  }

  step(step: Step): void {
    if (step.text !== "" && this.#options.stdoutIsTerminal) this.#stream(step.text)
    const { turn } = step.view
    const codes = new Map(
      step.events.flatMap((event) => event.type === "tool.finished" ? [[event.callId, event.code] as const] : [])
    )
    for (const tool of turn?.tools ?? []) {
      if (tool.entry === null || this.#reported.has(tool.task)) continue
      this.#reported.add(tool.task)
      this.#line(this.#toolLine(tool, codes.get(tool.callId)))
    }
    for (const event of step.events) {
      if (event.type === "generation.started") this.#endStream()
      if (event.type === "generation.retrying") {
        this.#endStream()
        const error = turn?.generation?.error?.message ?? "the request failed"
        const when = waitText(event.retryAt, this.#options.now?.() ?? Date.now())
        this.#line(`${this.#paint(33, "↻")} trying again${when}: ${oneLine(error, this.#room())}`)
      }
      if (event.type === "warning" && typeof event.message === "string") this.notice(event.message)
      const told = /^plugin\..*\.warning$/.test(event.type) ? messageOf(event.data) : null
      if (told !== null) this.notice(told)
    }
    const running = turn?.tools.filter((tool) => tool.entry === null) ?? []
    this.#activity = turn === null
      ? waitingText(step.view)
      : running[0] !== undefined
      ? callTitle(running[0].name, running[0].args, this.#room())
      : turn.generation?.stage ?? "working"
  }

  notice(message: string): void {
    this.#line(`bezel: ${printable(message)}`)
  }

  warning(message: string): void {
    this.notice(message)
  }

  result(result: RunResult): void {
    this.#activity = null
    this.#clearSpinner()
    const { answers = result.status === "done" ? [result.text] : [] } = result
    const last = answers.at(-1) ?? ""
    if (!this.#options.stdoutIsTerminal) {
      const text = answers.join("\n\n")
      this.#options.stdout(text === "" || text.endsWith("\n") ? text : `${text}\n`)
    } else if (result.status === "done") {
      if (!last.startsWith(this.#streamed)) this.#endStream()
      this.#stream(last.slice(this.#streamed.length))
      this.#breakLine()
    }
    if (result.status === "done") return
    this.#endStream()
    if (result.message !== null) this.#options.stderr(`bezel: ${oneLine(result.message, 2_000)}\n`)
  }

  /** Turns the spinner by one frame; for whoever has the clock. Does nothing where stderr is no terminal. */
  tick(): void {
    if (!this.#options.stderrIsTerminal || this.#activity === null || !this.#atLineStart) return
    this.#frame = (this.#frame + 1) % frames.length
    this.#options.stderr(`\r\u001b[2K${frames[this.#frame]} ${this.#activity}`)
    this.#spinning = true
  }

  #stream(text: string): void {
    const shown = printable(text)
    if (shown === "") return
    this.#clearSpinner()
    this.#options.stdout(shown)
    this.#streamed += text
    this.#atLineStart = shown.endsWith("\n")
  }

  /** What was streamed is complete, or void: what follows starts on a line of its own. */
  #endStream(): void {
    this.#breakLine()
    this.#streamed = ""
  }

  #breakLine(): void {
    if (this.#options.stdoutIsTerminal && !this.#atLineStart) this.#options.stdout("\n")
    this.#atLineStart = true
  }

  #line(text: string): void {
    this.#clearSpinner()
    if (this.#options.stderrIsTerminal) this.#breakLine()
    this.#options.stderr(`${text}\n`)
  }

  #toolLine(tool: ViewTool, code: unknown): string {
    const title = callTitle(tool.name, tool.args, this.#room())
    if (tool.status === "completed") return `${this.#paint(32, "✓")} ${title}`
    const why = reasons.get(code) ?? (tool.status === "aborted" ? "aborted" : "failed")
    return `${this.#paint(31, "✗")} ${title} (${why})`
  }

  #clearSpinner(): void {
    if (this.#spinning) this.#options.stderr("\r\u001b[2K")
    this.#spinning = false
  }

  #paint(code: number, text: string): string {
    return this.#options.color && this.#options.stderrIsTerminal ? `\u001b[${code}m${text}\u001b[0m` : text
  }

  #room(): number {
    return Math.max(20, Math.min(this.#options.columns, 160) - 14)
  }
}
