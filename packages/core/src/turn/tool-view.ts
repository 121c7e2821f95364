import type { ConversationState, Transaction } from "../harness/index.ts"

type ToolDraft = NonNullable<ReturnType<Transaction["sticky"]>["turn"]>["tools"][number]

/** Changes how a call shows in the running turn; nothing if it is not part of it. */
export const updateTool = (
  tx: Transaction,
  state: ConversationState,
  taskID: string,
  change: (tool: ToolDraft) => void
): void => {
  const tool = tx.sticky(state).turn?.tools.find((candidate) => candidate.task === taskID)
  if (tool !== undefined) change(tool)
}
