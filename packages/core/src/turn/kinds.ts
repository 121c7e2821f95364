/** Names of what the core writes into a session; everything under `bezel.` is its own. */
export const taskKinds = {
  generation: "bezel.generation",
  tool: "bezel.tool",
  postTools: "bezel.post_tools",
  collapse: "bezel.collapse"
} as const

export const entryKinds = {
  /** A person's input: one user message. */
  user: "bezel.user",
  /** A model's answer; without `model` it is for display only (it failed, was aborted or said nothing). */
  assistant: "bezel.assistant",
  toolResult: "bezel.tool_result",
  /** What a failed request cost and why it failed. */
  usage: "bezel.usage",
  /** Why inputs stayed unanswered. */
  failure: "bezel.failure",
  /** A user message that a plugin or the host adds: a notice to the model. */
  notice: "bezel.notice",
  /** Where a fresh context starts. */
  handoff: "bezel.handoff",
  /** A summary of what came before: a head. */
  summary: "bezel.summary",
  /** What came after an earlier entry was taken back, or that was brought back: a head. */
  rewind: "bezel.rewind"
} as const

/** Tasks of a turn: they are aborted with it, and they show through it rather than by themselves. */
export const isTurnTask = (kind: string): boolean =>
  kind === taskKinds.generation || kind === taskKinds.tool || kind === taskKinds.postTools
