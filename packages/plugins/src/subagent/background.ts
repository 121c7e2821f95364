/**
 * Sub-agents in the background: a durable task of the parent's conversation that waits for the child's answer and hands it on
 * as a notice, for which the parent is woken.
 *
 * It outlives the turn that began it, an interrupt of that turn, and the process: a session that is opened again goes on with
 * the child where it was. The answer is told in the commit that ends the task, so once. Aborting the task aborts the child.
 */
import { noticeKind, TaskKind } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import { tool, ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SubagentStatus } from "./contract.ts"
import { backgroundKindName } from "./contract.ts"

type Context = Pick<SessionContext, "session" | "interactions">

const Input = Schema.Struct({
  sessionID: Schema.String,
  inputID: Schema.String,
  description: Schema.String,
  agent: Schema.String
})

export const backgroundKind = (ctx: Context) =>
  TaskKind.make(backgroundKindName, {
    input: Input,
    checkpoint: Schema.Struct({ phase: Schema.Literal("waiting") }),
    slot: { schema: Schema.Struct({}), initial: {} },
    result: Schema.Null,
    failure: Schema.Struct({ message: Schema.String }),
    initial: () => Effect.succeed({ next: { phase: "waiting" as const } }),
    phases: {
      waiting: ({ input: { description, inputID, sessionID } }, api) =>
        Effect.scoped(Effect.gen(function*() {
          yield* ctx.interactions.relay({ from: sessionID, to: api.sessionID })
          yield* ctx.session.resume(sessionID)
          const outcome = yield* ctx.session.wait(sessionID, inputID)
          const said = outcome.status === "done"
            ? `has answered:\n\n${outcome.text}`
            : `gave no answer: ${outcome.error?.message ?? `its turn ended (${outcome.reason})`}`
          return {
            done: (tx) => {
              const text = `The sub-agent in the background for ${JSON.stringify(description)} ${said}`
              tx.write(noticeKind, { model: [{ role: "user", content: [{ type: "text", text }] }], wake: true })
              return { status: "completed", result: null }
            }
          } as const
        }))
    },
    abort: ({ input: { sessionID } }) =>
      Effect.ignore(ctx.session.interrupt(sessionID, "the task that it works for was aborted")),
    describe: ({ input: { agent, description, sessionID } }): SubagentStatus => ({ sessionID, description, agent })
  })
export type BackgroundKind = ReturnType<typeof backgroundKind>

/** `subagent_stop`: only for a session's own sub-agents. */
export const stopTool = (ctx: Pick<Context, "session">) =>
  tool({
    description: "Ends a sub-agent that works in the background. You are told how far it came.",
    input: Schema.Struct({
      session: Schema.String.annotate({ description: "Its session, as subagent gave it." })
    }),
    permission: () => ({ access: "subagent", subjects: [] }),
    execute: Effect.fn("subagent.stop")(function*({ session }, call) {
      const found = yield* Effect.option(ctx.session.get(session))
      if (found._tag === "None" || found.value.parentID !== call.sessionID) {
        return yield* new ToolFailure({ message: `${session} is no sub-agent of this session.` })
      }
      yield* ctx.session.interrupt(session, "stopped by the agent that it works for")
      return "It is being ended."
    })
  })
