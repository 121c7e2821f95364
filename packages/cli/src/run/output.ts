/** What a run reports to, whatever form its output has. */
import type { ConversationView } from "@bezel/core/harness"
import type { Step } from "./follow.ts"

export interface RunResult {
  readonly status: "done" | "unanswered"
  /** Why there is no answer: the input's reason, `timeout`, `interrupted`, or `error` when no turn came about. */
  readonly reason: string | null
  /** One line for a person; `null` for an answer. */
  readonly message: string | null
  /** The answer, or what there is of one; several stand behind each other, with an empty line between them. */
  readonly text: string
  /** The whole answers that there are, where they may be several or end without the last one. */
  readonly answers?: ReadonlyArray<string>
  readonly sessionID: string | null
}

export interface RunOutput {
  readonly session: (sessionID: string) => void
  readonly step: (step: Step) => void
  /** One line for the person that is no part of the answer. */
  readonly notice: (message: string) => void
  /** The same for something that is wrong although the run goes on. */
  readonly warning: (message: string) => void
  readonly result: (result: RunResult, view: ConversationView | null) => void
}
