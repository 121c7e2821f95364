/** What a running call may start beside itself, over the session: tasks, and conversations that the call owns. */
import * as Effect from "effect/Effect"
import type { HarnessError } from "../harness/index.ts"
import { type ConversationState, type Session, type TaskRuntime, type Transaction } from "../harness/index.ts"
import { type ConversationSeed, type OwnedConversation, ToolFailure, type ToolWork } from "../tool/index.ts"
import { makeConversation } from "./conversation.ts"
import { entryKinds } from "./kinds.ts"
import { updateTool } from "./tool-view.ts"

const asFailure = (error: HarnessError): ToolFailure => new ToolFailure({ message: error.message })

export const makeToolWork = (session: Session, runtime: TaskRuntime, taskID: string): ToolWork => {
  const state = runtime.conversation

  const conversation = Effect.fn("ToolCall.conversation")(function*(key: string, seed?: ConversationSeed) {
    // One commit: behind the memo there is always a conversation, with all that it was seeded with.
    const made = yield* runtime.commit((tx) => {
      const slots = tx.sticky(state).slots
      if (!Object.hasOwn(slots, taskID)) slots[taskID] = { memos: {}, data: {} }
      const memos = slots[taskID]?.memos
      const memo = `conversation/${key}`
      const known = memos !== undefined && Object.hasOwn(memos, memo) ? memos[memo] : undefined
      if (typeof known === "string") return known
      const created = session.create(tx, { id: tx.id("c"), parent: null, owner: taskID, createdAt: tx.now })
      if (seed !== undefined) plant(tx, created, seed)
      if (memos !== undefined) memos[memo] = created.record.id
      return created
    })
    return ownedConversation(
      session,
      typeof made === "string" ? yield* session.conversation(made) : session.adopt(made)
    )
  })

  return {
    task: (kind, input, options) =>
      Effect.mapError(
        runtime.commit((tx) => {
          const created = session.transaction(tx, state, { mayCreate: true }).createTask(kind, input, options)
          // What goes on behind this call shows as what the call continues in.
          if (options?.background === true) {
            updateTool(tx, state, taskID, (tool) => {
              tool.continuedBy = created.id
            })
          }
          return created
        }),
        asFailure
      ),
    waitForTask: (ref) =>
      Effect.suspend(() =>
        comesAfter(session, ref.id, taskID)
          ? Effect.fail(
            new ToolFailure({
              message:
                `This call would wait for task ${ref.id}, which itself waits for this call; neither would ever end.`
            })
          )
          : Effect.mapError(makeConversation(session, state).waitForTask(ref), asFailure)
      ),
    slot: (ref) =>
      Effect.mapError(
        session.line.read(() => {
          const slot = session.line.state.tasks.has(ref.id) ? state.sticky.slots[ref.id] : undefined
          return slot === undefined ? null : structuredClone(slot.data)
        }),
        asFailure
      ),
    conversation: (key, seed) => Effect.mapError(conversation(key, seed), asFailure)
  }
}

/** Whether a task is `earlier` or starts only behind it, directly or through others. */
const comesAfter = (session: Session, id: string, earlier: string): boolean => {
  if (id === earlier) return true
  const task = session.line.state.tasks.get(id)
  return task !== undefined && task.after.some((before) => comesAfter(session, before, earlier))
}

const plant = (tx: Transaction, owned: ConversationState, seed: ConversationSeed): void => {
  const { config } = tx.rewindable(owned)
  if (seed.model !== undefined) config.model = { provider: seed.model.provider, model: seed.model.model }
  if (seed.agent !== undefined) config.agent = seed.agent
  if (seed.context !== undefined) {
    tx.appendEntry(owned, {
      kind: entryKinds.notice,
      model: [{ role: "user", content: [{ type: "text", text: seed.context }] }]
    })
  }
}

const ownedConversation = (session: Session, owned: ConversationState): OwnedConversation => {
  const conversation = makeConversation(session, owned)
  return {
    id: conversation.id,
    ask: (content, requestID) =>
      Effect.gen(function*() {
        const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content
        const input = yield* conversation.send({ content: parts, requestID: `${conversation.id}/${requestID}` })
        const outcome = yield* input.wait
        return outcome.status === "done"
          ? { status: "done", text: outcome.text, reason: null } as const
          : { status: "unanswered", text: "", reason: outcome.error?.message ?? outcome.reason } as const
      }).pipe(Effect.mapError(asFailure)),
    abort: Effect.mapError(conversation.abort("aborted by its owner"), asFailure)
  }
}
