/**
 * What goes on in the background of a conversation, as `bezel run` sees it.
 *
 * Sub-agents live in this process and come to an end, and the model that is told of their answer has more to say: a run waits
 * for them. Jobs go on without it, and many never end (a server): a run names them and leaves them, and the next run of the
 * session finds them. Other plugins' tasks may rest for days; they are left and named too.
 */
import type { ConversationView } from "@bezel/core/harness"
import type { TaskRef } from "@bezel/core/tool"
import { backgroundKindName, SubagentStatus } from "@bezel/plugins/subagent/contract"
import { JobStatus } from "@bezel/plugins/tools/contract"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { oneLine } from "./text.ts"

export interface AwaitedSubagent {
  readonly task: TaskRef
  readonly sessionID: string
  readonly description: string
}

/** The sub-agents in the background that work. */
export const awaitedIn = ({ tasks }: Pick<ConversationView, "tasks">): ReadonlyArray<AwaitedSubagent> =>
  Object.entries(tasks).flatMap(([id, { kind, status }]) => {
    const subagent = kind === backgroundKindName
      ? Schema.decodeUnknownOption(SubagentStatus)(status)
      : Option.none()
    return Option.isNone(subagent)
      ? []
      : [{ task: { id, kind }, sessionID: subagent.value.sessionID, description: subagent.value.description }]
  })

/** What a person is told while a run waits; `null`: it waits for nobody. */
export const waitingText = (view: Pick<ConversationView, "tasks">): string | null => {
  const awaited = awaitedIn(view)
  if (awaited.length === 0) return null
  const names = awaited.map(({ description }) => oneLine(description, 60)).join(", ")
  return `waiting for ${
    awaited.length === 1 ? "a sub-agent" : `${awaited.length} sub-agents`
  } in the background: ${names}`
}

/** What is left behind, one line each. */
export const leftTexts = ({ tasks }: Pick<ConversationView, "tasks">, sessionID: string): ReadonlyArray<string> =>
  Object.entries(tasks).flatMap(([id, { background, kind, status }]) => {
    if (!background || kind === backgroundKindName) return []
    const job = kind === "bezel.job" ? Schema.decodeUnknownOption(JobStatus)(status) : Option.none()
    return Option.isSome(job)
      ? [
        `the job ${id} (${
          oneLine(job.value.command.at(-1) ?? "", 60)
        }) goes on in the background; its end is told to the ` +
        `next bezel run --session ${sessionID}, which can also stop it`
      ]
      : [
        `something in the background (${oneLine(kind, 60)}) rests until the next bezel run --session ${sessionID}`
      ]
  })
