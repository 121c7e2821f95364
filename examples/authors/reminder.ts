/** A task of one's own kind: it waits, also across a restart, and then tells the model. */
import { noticeKind, TaskKind } from "@bezel/core/harness"
import { Plugin, type SessionContext } from "@bezel/core/host"
import { tool } from "@bezel/core/tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The checkpoint is stored before it is waited: after a crash, what is left of the time is waited. */
const reminder = TaskKind.make("example.reminder", {
  input: Schema.Struct({ text: Schema.String, seconds: Schema.Finite }),
  checkpoint: Schema.Struct({ phase: Schema.Literal("waiting"), until: Schema.Finite }),
  slot: { schema: Schema.Struct({}), initial: {} },
  result: Schema.Null,
  failure: Schema.Null,
  initial: ({ input }) =>
    Effect.map(Clock.currentTimeMillis, (now) => ({
      next: { phase: "waiting" as const, until: now + input.seconds * 1000 }
    })),
  phases: {
    waiting: ({ checkpoint, input }) =>
      Effect.gen(function*() {
        yield* Effect.sleep(Math.max(0, checkpoint.until - (yield* Clock.currentTimeMillis)))
        return {
          done: (tx) => {
            const message = { role: "user", content: [{ type: "text", text: input.text }] } as const
            tx.write(noticeKind, { model: [message], wake: true })
            return { status: "completed", result: null } as const
          }
        }
      })
  }
})

const session = Effect.fn("reminder/session")(function*(ctx: SessionContext) {
  yield* ctx.task(reminder)
  const remind = tool({
    description: "Reminds you of something after a while.",
    input: Schema.Struct({ text: Schema.String, seconds: Schema.Finite }),
    execute: (input, call) => Effect.as(call.task(reminder, input, { background: true }), "You will be reminded.")
  })
  yield* ctx.tool.transform((draft) => draft.set("remind", remind))
})

export default Plugin.define({ id: "example.reminder", version: "1.0.0", session })
