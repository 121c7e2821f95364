/**
 * The `question` tool: the model asks, a person answers.
 *
 *     memo? ─ yes ─▶ that answer
 *       └ no ─▶ asked ─▶ answered (remembered, first writer wins) · declined · expired · unattended (not remembered)
 *
 * Asking twice is harmless, so a call that a crash or a reload has cut off asks again; one that was answered does not. The four
 * outcomes read differently for the model, carry different codes for clients, and never hang where nobody is.
 */
import type { SessionContext } from "@bezel/core/host"
import { tool, type ToolCall, ToolFailure, type ToolResult, toolResult, type ToolResultCode } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { answerLimit, LimitsSetting } from "../settings/contract.ts"
import {
  Question,
  type QuestionDetails,
  type QuestionOutcome,
  type QuestionRequest,
  QuestionResponse
} from "./contract.ts"

type Context = Pick<SessionContext, "settings" | "tool"> & {
  readonly interactions: Pick<SessionContext["interactions"], "request">
}

const Input = Schema.Struct({
  question: Schema.NonEmptyString.annotate({ description: "What you want to know, as one clear question." }),
  options: Schema.optionalKey(
    Schema.Array(
      Schema.Union([
        Schema.NonEmptyString,
        Schema.Struct({
          label: Schema.NonEmptyString,
          description: Schema.optionalKey(Schema.NullOr(Schema.String))
        })
      ])
    ).annotate({
      description: "Answers to choose from, best first. The user may always write something else, so do not offer that."
    })
  )
})

const requestOf = ({ options = [], question }: typeof Input.Type): QuestionRequest => ({
  question,
  options: options.map((option) =>
    typeof option === "string"
      ? { label: option, description: null }
      : { label: option.label, description: option.description ?? null }
  )
})

/** How often an answer that names no option may come before the question is given up. */
const attempts = 3

const ask = Effect.fnUntraced(function*(
  ctx: Context,
  request: QuestionRequest,
  call: ToolCall
) {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const outcome = yield* ctx.interactions.request(Question, request, {
      sessionID: call.sessionID,
      ...answerLimit(ctx.settings.get(LimitsSetting))
    })
    if (outcome.type !== "answered") return outcome.type
    if (isAnswer(request, outcome.response)) return outcome.response
  }
  return yield* new ToolFailure({
    message: "The client that shows the question answers with options that were not offered. Go on without an answer."
  })
})

const isAnswer = (request: QuestionRequest, response: QuestionResponse): boolean =>
  response.outcome === "custom" || Object.hasOwn(request.options, response.index)

const withoutAnswer: { readonly [code in ToolResultCode]: string } = {
  declined:
    "The user was asked and would not answer. Do not ask the same again; go on with what you know, or stop here.",
  expired: "The user was asked and did not answer in time. Go on with what you know; it can be asked again later.",
  unattended:
    "Nobody is here to answer, so the question was not asked. Go on with what you know, and say in your answer " +
    "what you would have asked."
}

const result = (request: QuestionRequest, ended: QuestionResponse | ToolResultCode): ToolResult => {
  const details = (outcome: QuestionOutcome, answer: string | null): QuestionDetails => ({
    question: request.question,
    options: request.options.map(({ label }) => label),
    outcome,
    answer
  })
  if (typeof ended === "string") {
    return toolResult({ content: withoutAnswer[ended], isError: true, code: ended, details: details(ended, null) })
  }
  if (ended.outcome === "custom") {
    return toolResult({ content: `The user answered: ${ended.answer}`, details: details("custom", ended.answer) })
  }
  const label = request.options[ended.index]?.label ?? ""
  return toolResult({ content: `The user chose: ${label}`, details: details("selected", label) })
}

/** The tool over whatever asks. */
const questionTool = (ctx: Context) =>
  tool({
    description:
      "Asks the user a question and waits for the answer: one of the given options, or their own words. For what " +
      "you cannot find out yourself and should not guess. Ask one thing at a time.",
    input: Input,
    replay: "safe",
    executionMode: "sequential",
    execute: Effect.fn("question")(function*(input, call) {
      const request = requestOf(input)
      const remembered = Schema.decodeUnknownOption(QuestionResponse)(yield* call.memo("answer"))
      if (Option.isSome(remembered) && isAnswer(request, remembered.value)) return result(request, remembered.value)
      const ended = yield* ask(ctx, request, call)
      if (typeof ended === "string") return result(request, ended)
      // Two answers that race both get the one that was first.
      return result(request, yield* call.memo("answer", ended))
    })
  })

/** The facet for session hosts. */
export const session = Effect.fn("question/session")(function*(ctx: Context) {
  yield* ctx.tool.transform((draft) => draft.set("question", questionTool(ctx)))
})
