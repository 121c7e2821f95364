/**
 * `bezel run --json`: one JSON object per line on stdout.
 *
 * First `session`; then the view's events as they are, with the answer's text as `text.delta` (void when a
 * `generation.retrying` follows); last `result`. A `warning` or `notice` may stand anywhere, also first. Other
 * types may be added; a reader skips those that it does not know.
 */
import type { ConversationView } from "@bezel/core/harness"
import type { Step } from "./follow.ts"
import type { RunOutput, RunResult } from "./output.ts"

export class JsonLines implements RunOutput {
  readonly #write: (line: string) => void

  constructor(write: (text: string) => void) {
    this.#write = (line) => write(`${line}\n`)
  }

  session(sessionID: string): void {
    this.#write(JSON.stringify({ type: "session", sessionID }))
  }

  step(step: Step): void {
    if (step.text !== "") this.#write(JSON.stringify({ type: "text.delta", text: step.text }))
    for (const event of step.events) this.#write(JSON.stringify(event))
  }

  notice(message: string): void {
    this.#write(JSON.stringify({ type: "notice", message }))
  }

  warning(message: string): void {
    this.#write(JSON.stringify({ type: "warning", message }))
  }

  result(result: RunResult, view: ConversationView | null): void {
    this.#write(JSON.stringify({
      type: "result",
      status: result.status,
      ...(result.status === "done" ? {} : { reason: result.reason, message: result.message }),
      text: result.text,
      usage: view?.usage ?? null,
      sessionID: result.sessionID
    }))
  }
}
