/**
 * What people's prompts get on their way in: plugins see the words that a person wrote, and add files to them.
 *
 * It is done once, where the session is, whichever client the prompt came from, and before it is accepted, so that what was
 * accepted is what the model sees. One that fails or takes too long adds nothing, and is logged. A prompt of a plugin, a
 * sub-agent's for example, is nobody's writing and passes as it is.
 */
import * as Effect from "effect/Effect"
import type { FilePart } from "../model/index.ts"
import type { Prompt } from "./runtime-shape.ts"
import { makeSaid, type Said } from "./said.ts"

/** Words that a person wrote, and what is attached to them already. */
export interface WrittenPrompt {
  readonly words: string
  readonly files: ReadonlyArray<FilePart>
  readonly sessionID: string
  readonly conversationID: string
}

/** Files to attach behind those that are, and sentences for the person. */
export interface PromptAddition {
  readonly files: ReadonlyArray<FilePart>
  readonly notices: ReadonlyArray<string>
}

export type PromptIntake = (
  prompt: WrittenPrompt
) => Effect.Effect<PromptAddition, { readonly message: string }>

export interface Intakes {
  readonly said: Said<PromptIntake>
  /** The prompt with what the intakes add, in the order of their plugins. */
  readonly take: (
    prompt: Prompt,
    at: Pick<WrittenPrompt, "sessionID" | "conversationID">
  ) => Effect.Effect<{ readonly prompt: Prompt; readonly notices: ReadonlyArray<string> }>
}

const limit = "10 seconds"

export const makeIntakes = (): Intakes => {
  const said = makeSaid<PromptIntake>()

  return {
    said,
    take: (prompt, at) =>
      Effect.gen(function*() {
        const words = prompt.written === true ? prompt.text : prompt.written
        if (words === undefined || words === false || words === "") return { prompt, notices: [] }
        let files = prompt.files ?? []
        const notices: Array<string> = []
        for (const { plugin, value: intake } of said.all()) {
          const added = yield* Effect.suspend(() => intake({ ...at, words, files })).pipe(
            Effect.timeout(limit),
            Effect.catchCause((cause) =>
              Effect.as(Effect.logWarning(`The plugin ${plugin} could not add to a prompt.`, cause), null)
            )
          )
          if (added === null) continue
          files = [...files, ...added.files]
          notices.push(...added.notices)
        }
        return { prompt: files.length === 0 ? prompt : { ...prompt, files }, notices }
      })
  }
}
