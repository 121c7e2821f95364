/**
 * What a server asks a person: a form of flat fields becomes one question after the other, by the dialog that the model's
 * questions have. What a person would not answer is declined as a whole; an answer that does not fit its field is asked for
 * again a few times.
 */
import type { InteractionOutcome } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { QuestionRequest, QuestionResponse } from "../question/contract.ts"
import { oneLine } from "./text.ts"

type Value = string | number | boolean | ReadonlyArray<string>

/** What the server is told. */
export type ElicitationAnswer =
  | { readonly action: "accept"; readonly content: { readonly [field: string]: Value } }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

export type Ask = (request: QuestionRequest) => Effect.Effect<InteractionOutcome<QuestionResponse>>

const maxFields = 20
const maxOptions = 50
const attempts = 3

const Choice = Schema.Struct({ const: Schema.String, title: Schema.optionalKey(Schema.String) })

const Field = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  title: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  default: Schema.optionalKey(Schema.Unknown),
  enum: Schema.optionalKey(Schema.Array(Schema.String)),
  enumNames: Schema.optionalKey(Schema.Array(Schema.String)),
  oneOf: Schema.optionalKey(Schema.Array(Choice)),
  items: Schema.optionalKey(Schema.Struct({
    enum: Schema.optionalKey(Schema.Array(Schema.String)),
    anyOf: Schema.optionalKey(Schema.Array(Choice))
  })),
  minItems: Schema.optionalKey(Schema.Finite),
  maxItems: Schema.optionalKey(Schema.Finite),
  minLength: Schema.optionalKey(Schema.Finite),
  maxLength: Schema.optionalKey(Schema.Finite),
  minimum: Schema.optionalKey(Schema.Finite),
  maximum: Schema.optionalKey(Schema.Finite),
  format: Schema.optionalKey(Schema.String)
})
type Field = typeof Field.Type

/** The form of a request, as far as it is one. */
const Form = Schema.Struct({
  message: Schema.String,
  requestedSchema: Schema.Struct({
    properties: Schema.Record(Schema.String, Field),
    required: Schema.optionalKey(Schema.Array(Schema.String))
  })
})

/** Values to choose from, with what a person reads. */
const choicesOf = ({ enum: values, enumNames, items, oneOf, type }: Field) => {
  if (type === "boolean") return [{ value: true, label: "Yes" }, { value: false, label: "No" }]
  const titled = oneOf ?? items?.anyOf
  if (titled !== undefined) return titled.map((one) => ({ value: one.const, label: one.title ?? one.const }))
  return (values ?? items?.enum ?? []).map((value, index) => ({ value, label: enumNames?.[index] ?? value }))
}

const formats: { readonly [format: string]: (text: string) => boolean } = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => URL.canParse(text),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  "date-time": (text) => /^\d{4}-\d\d-\d\d[Tt ]/.test(text) && !Number.isNaN(Date.parse(text))
}

/** What words are as the value of a field, or why they are none. */
const valueOf = (field: Field, words: string): { readonly value: Value } | { readonly problem: string } => {
  const choices = choicesOf(field)
  const chosen = (text: string) =>
    choices.find(({ label, value }) => [label, String(value)].some((one) => one.toLowerCase() === text.toLowerCase()))
  if (field.type === "array") {
    const parts = words.split(",").map((part) => part.trim()).filter((part) => part !== "")
    const found = parts.map(chosen)
    if (choices.length > 0 && found.includes(undefined)) return { problem: "choose among what is offered" }
    const values = choices.length === 0 ? parts : found.flatMap((one) => one === undefined ? [] : [String(one.value)])
    if (values.length < (field.minItems ?? 0)) return { problem: `at least ${field.minItems} of them` }
    if (values.length > (field.maxItems ?? Infinity)) return { problem: `at most ${field.maxItems} of them` }
    return { value: values }
  }
  if (choices.length > 0) {
    const one = chosen(words)
    return one === undefined ? { problem: "choose among what is offered" } : { value: one.value }
  }
  if (field.type === "number" || field.type === "integer") {
    const number = words === "" ? Number.NaN : Number(words)
    if (!Number.isFinite(number)) return { problem: "a number" }
    if (field.type === "integer" && !Number.isSafeInteger(number)) return { problem: "a whole number" }
    if (number < (field.minimum ?? -Infinity)) return { problem: `at least ${field.minimum}` }
    if (number > (field.maximum ?? Infinity)) return { problem: `at most ${field.maximum}` }
    return { value: number }
  }
  if (words.length < (field.minLength ?? 0)) return { problem: `at least ${field.minLength} characters` }
  if (words.length > (field.maxLength ?? Infinity)) return { problem: `at most ${field.maxLength} characters` }
  const fits = field.format === undefined ? undefined : formats[field.format]
  return fits === undefined || fits(words) ? { value: words } : { problem: `of the form ${field.format}` }
}

const askField = (ask: Ask, intro: string, name: string, field: Field, required: boolean) =>
  Effect.gen(function*() {
    const label = oneLine(field.title ?? name, 100)
    const about = field.description === undefined ? label : `${label} (${oneLine(field.description, 300)})`
    const choices = choicesOf(field).slice(0, maxOptions)
    const proposed = typeof field.default === "string" || typeof field.default === "number" ? field.default : null
    const options = [
      ...choices.map((choice) => ({ words: String(choice.value), label: oneLine(choice.label, 100) })),
      ...choices.length === 0 && proposed !== null && proposed !== ""
        ? [{ words: String(proposed), label: oneLine(String(proposed), 100) }]
        : []
    ].filter(({ label: shown }) => shown !== "")
    const leave = required ? [] : [{ label: "Leave it out", description: null }]
    const several = field.type === "array" ? " Several are divided by commas." : ""
    let note = ""
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const outcome = yield* ask({
        question: `${intro} ${about}${note}.${several}`,
        options: [...options.map(({ label: shown }) => ({ label: shown, description: null })), ...leave]
      })
      if (outcome.type !== "answered") return null
      const { response } = outcome
      if (response.outcome === "selected" && response.index === options.length && !required) return {}
      const words = response.outcome === "custom" ? response.answer.trim() : options[response.index]?.words
      const read = words === undefined ? { problem: "choose among what is offered" } : valueOf(field, words)
      if ("value" in read) return { value: read.value }
      note = `: ${read.problem}`
    }
    return null
  })

/** Asks what a server wants to know. `server` is its name. */
export const answerElicitation = Effect.fn("mcp.elicit")(
  function*(server: string, params: unknown, ask: Ask): Effect.fn.Return<ElicitationAnswer> {
    const form = Option.getOrNull(Schema.decodeUnknownOption(Form)(params))
    const fields = form === null ? [] : Object.entries(form.requestedSchema.properties)
    if (form === null || fields.length > maxFields) return { action: "decline" }
    const intro = `The MCP server ${oneLine(server, 100)} asks: ${oneLine(form.message, 1_000)}`
    if (fields.length === 0) {
      const outcome = yield* ask({
        question: intro,
        options: [{ label: "Yes", description: null }, { label: "No", description: null }]
      })
      const yes = outcome.type === "answered" &&
        (outcome.response.outcome === "selected"
          ? outcome.response.index === 0
          : /^(y|yes|ok)$/i.test(outcome.response.answer))
      return yes ? { action: "accept", content: {} } : { action: "decline" }
    }
    const content: Array<[string, Value]> = []
    const required = new Set(form.requestedSchema.required ?? [])
    for (const [name, field] of fields) {
      const answer = yield* askField(ask, intro, name, field, required.has(name))
      if (answer === null) return { action: "decline" }
      if ("value" in answer && answer.value !== undefined) content.push([name, answer.value])
    }
    return { action: "accept", content: Object.fromEntries(content) }
  }
)
