/**
 * The question in the terminal: a dialog with the options and a field for one's own words, and how a question looks in the
 * transcript. Written against arguments and details as strict JSON of unknown shape: a model sends what it likes.
 */
import {
  type Block,
  outputTail,
  type Span,
  span,
  text,
  type ToolCallView,
  type ToolRenderer,
  type TuiContext
} from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { sayingWhy } from "../chat/closed.ts"
import { Question, QuestionDetails, type QuestionRequest, type QuestionResponse } from "./contract.ts"

/** Choosing this opens the field. */
const otherwise = -1

/** Asks until there is an answer, or the person dismisses the question itself; an empty answer is none. */
const present = (
  ui: TuiContext["ui"],
  request: QuestionRequest
): Effect.Effect<QuestionResponse | "declined"> =>
  Effect.gen(function*() {
    for (;;) {
      if (request.options.length > 0) {
        const index = yield* ui.select({
          title: request.question,
          options: [
            ...request.options.map(({ description, label }, value) => ({
              value,
              label,
              ...(description === null || description === "" ? {} : { description })
            })),
            { value: otherwise, label: "Something else…" }
          ]
        })
        if (index === null) return "declined"
        if (index !== otherwise) return { outcome: "selected", index }
      }
      const words = yield* ui.input({ title: request.question, placeholder: "your answer" })
      const answer = words?.trim() ?? ""
      if (answer !== "") return { outcome: "custom", answer }
      // From the field back to the options; where there are none, leaving the field is leaving the question.
      if (request.options.length === 0 && words === null) return "declined"
    }
  })

const argument = (call: ToolCallView, key: string): unknown =>
  typeof call.args === "object" && call.args !== null && Object.hasOwn(call.args, key)
    ? Reflect.get(call.args, key)
    : undefined

const labelsOf = (call: ToolCallView): ReadonlyArray<string> => {
  const options = argument(call, "options")
  if (!Array.isArray(options)) return []
  return options.flatMap((option: unknown) => {
    const label: unknown = typeof option === "object" && option !== null && "label" in option ? option.label : option
    return typeof label === "string" ? [label] : []
  })
}

const muted = (words: string): Span => span(words, { color: "muted" })

/** How the question shows. */
export const questionRenderer: ToolRenderer = {
  title: (call) => {
    const question = argument(call, "question")
    return [typeof question === "string" ? question : muted(call.argsText)]
  },
  body: (call, options): ReadonlyArray<Block> => {
    const details = Schema.decodeUnknownOption(QuestionDetails)(call.details)
    if (Option.isSome(details)) {
      const { answer, outcome } = details.value
      switch (outcome) {
        case "selected":
          return [text(span(answer ?? "", { color: "accent" }), { indent: 2 })]
        case "custom":
          return [text([muted("in their own words: "), span(answer ?? "", { color: "accent" })], { indent: 2 })]
        case "declined":
          return [text(span("not answered", { color: "warning" }), { indent: 2 })]
        case "expired":
          return [text(span("not answered in time", { color: "warning" }), { indent: 2 })]
        case "unattended":
          return [text(span("not asked: nobody was there", { color: "warning" }), { indent: 2 })]
      }
    }
    if (call.isError) return outputTail(call.output, options, { color: "error" })
    const labels = labelsOf(call)
    return labels.length === 0 ? [] : [text(muted(labels.join(" · ")), { indent: 2 })]
  }
}

/** The terminal facet. */
export const tui = Effect.fn("question/tui")(function*(ctx: TuiContext) {
  yield* ctx.interactions.handle(Question, (request) => sayingWhy(ctx.ui, request.question, present(ctx.ui, request)))
  yield* ctx.toolRenderers.register("question", questionRenderer)
})
