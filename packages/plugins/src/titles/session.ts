/**
 * The session facet of titles: has a model name a session once its first answer is there, where the settings want that.
 *
 * A session has a title from its first prompt at once; this replaces that one and no other, so what a person or a program has
 * called a session stays. It is asked once, beside the work; where it comes to nothing, the session is called as it was. A host
 * that closes meanwhile waits a moment for it.
 */
import type { SessionContext } from "@bezel/core/host"
import { parseModelRef } from "@bezel/core/model"
import { type OpenSession, titleOf } from "@bezel/core/session"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Stream from "effect/Stream"
import { TitleSetting } from "./contract.ts"

type Context = Pick<SessionContext, "hooks" | "models" | "namespace" | "onDispose" | "onSession" | "settings"> & {
  readonly session: Pick<SessionContext["session"], "get" | "rename">
}

const instructions =
  "Give a title to the work that the user asks for: at most eight words, in the user's language, without quotes and " +
  "without a full stop. Answer with the title alone."

/** How long a host that closes waits for a title that was asked for. */
const closingPatience: Duration.Input = "3 seconds"

/** Characters of a prompt that a title needs to be found for. */
const enough = 4_000

/** The first line, without what models put around a title. */
export const cleanTitle = (answer: string): string =>
  titleOf(
    (answer.trim().split("\n")[0] ?? "").replace(/^(#+\s*|title:\s*)/i, "").replace(/^["'“”*_`]+|["'“”*_`.]+$/g, "")
  )

const firstPrompt = ({ main }: OpenSession) =>
  Effect.map(
    main.entries({ kind: "bezel.user", limit: 1 }),
    ([entry]) =>
      (entry?.model ?? []).flatMap((message) =>
        message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
      ).join("\n")
  )

/** The facet for session hosts. */
export const session = Effect.fn("titles/session")(function*(ctx: Context) {
  const { model: wanted } = ctx.settings.get(TitleSetting)
  if (wanted === undefined) return
  const open = new Map<string, OpenSession>()
  const asked = new Set<string>()
  const naming = yield* FiberSet.make<void>()
  yield* ctx.onDispose(Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(naming), closingPatience)))
  yield* ctx.onSession((opened) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => open.set(opened.identity.sessionID, opened)),
      () => Effect.sync(() => open.delete(opened.identity.sessionID))
    ))
  )

  const modelFor = Effect.fnUntraced(function*(opened: OpenSession) {
    const ref = wanted === "session" ? (yield* opened.main.snapshot).view.config.model : parseModelRef(wanted)
    return yield* ctx.models.resolve(ref !== null && "error" in ref ? null : ref)
  })

  const name = Effect.fnUntraced(function*(sessionID: string, opened: OpenSession) {
    const record = yield* ctx.session.get(sessionID)
    const prompt = yield* firstPrompt(opened)
    // A sub-agent is called by its task, and whoever has a name keeps it.
    if (record.parentID !== null || prompt.trim() === "" || record.title !== titleOf(prompt)) return
    const model = yield* modelFor(opened)
    if (model.info.provider === "bezel") return
    let answer = ""
    yield* Stream.runForEach(
      model.stream({
        messages: [
          { role: "system", content: instructions },
          { role: "user", content: [{ type: "text", text: prompt.slice(0, enough) }] }
        ],
        tools: [],
        thinking: "off",
        maxOutput: 200,
        sessionID
      }),
      (part) =>
        Effect.sync(() => {
          if (part.type === "text-delta" && answer.length < 1_000) answer += part.delta
        })
    )
    const title = cleanTitle(answer)
    if (title !== "" && (yield* ctx.session.get(sessionID)).title === record.title) {
      yield* ctx.session.rename(sessionID, title)
    }
  })

  const namespace = yield* ctx.namespace("titles", {})
  yield* ctx.hooks(namespace, "generation", {
    afterResponse: (message, { sessionID }) =>
      Effect.suspend(() => {
        const opened = open.get(sessionID)
        const isFinal = message.content.every(({ type }) => type !== "tool-call")
        if (!isFinal || opened === undefined || asked.has(sessionID)) return Effect.void
        asked.add(sessionID)
        const named = name(sessionID, opened).pipe(
          Effect.timeout("30 seconds"),
          Effect.catch((error) => Effect.logInfo(`The session keeps its title: ${error.message}`)),
          Effect.annotateLogs({ session: sessionID })
        )
        return Effect.asVoid(FiberSet.run(naming, named))
      })
  })
})
