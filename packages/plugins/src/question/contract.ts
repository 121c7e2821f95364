/**
 * The question plugin as others see it: what the model may ask, what a person may answer, and what is left of it in the
 * result's `details`. All of it is strict JSON.
 */
import { Interaction } from "@bezel/core/service"
import * as Schema from "effect/Schema"

/** One offered answer, with what speaks for it. */
export const QuestionOption = Schema.Struct({ label: Schema.NonEmptyString, description: Schema.NullOr(Schema.String) })
export type QuestionOption = typeof QuestionOption.Type

/** What a person is asked. Without options any text is an answer; with options text is one too. */
export const QuestionRequest = Schema.Struct({
  question: Schema.String,
  options: Schema.Array(QuestionOption)
})
export type QuestionRequest = typeof QuestionRequest.Type

/** An answer. Who would rather not give one declines, which is no answer. */
export const QuestionResponse = Schema.Union([
  /** Place of the option in the request, from 0. */
  Schema.Struct({ outcome: Schema.Literal("selected"), index: Schema.Int }),
  Schema.Struct({ outcome: Schema.Literal("custom"), answer: Schema.NonEmptyString })
])
export type QuestionResponse = typeof QuestionResponse.Type

/** The host asks a person to choose or to write. */
export const Question = Interaction.make("bezel.question")({
  request: QuestionRequest,
  response: QuestionResponse,
  unattended: "wait"
})

/** How a question ended: an answer in two forms, or one of three ways of there being none. */
export const QuestionOutcome = Schema.Literals(["selected", "custom", "declined", "expired", "unattended"])
export type QuestionOutcome = typeof QuestionOutcome.Type

/** `details` of a question's result. */
export const QuestionDetails = Schema.Struct({
  question: Schema.String,
  /** The labels that were offered. */
  options: Schema.Array(Schema.String),
  outcome: QuestionOutcome,
  /** The chosen label or the text; `null` without an answer. */
  answer: Schema.NullOr(Schema.String)
})
export type QuestionDetails = typeof QuestionDetails.Type
