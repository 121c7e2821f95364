/** Contracts that the matrix serves and consumes. */
import { Interaction, RemoteService } from "@bezel/core/service"
import { Schema } from "effect"

export class Unknown extends Schema.TaggedError<Unknown>()("Unknown", { model: Schema.String }) {}

export const ModelsState = Schema.Struct({
  current: Schema.NullOr(Schema.String),
  revision: Schema.Int,
  list: Schema.Array(Schema.Struct({ id: Schema.String, note: Schema.String }))
})
export type ModelsState = typeof ModelsState.Type

export const Changed = Schema.Struct({ type: Schema.Literal("changed"), model: Schema.String })

export class Models extends RemoteService.make("test.models")({
  state: { state: ModelsState },
  events: { changed: Changed },
  methods: {
    select: {
      payload: Schema.Struct({ model: Schema.String, options: Schema.Array(Schema.Struct({ label: Schema.String })) }),
      error: Unknown
    },
    count: { success: Schema.Int },
    /** Since epoch; crosses as text. */
    at: { payload: Schema.DateFromString, success: Schema.DateFromString },
    wait: {},
    fail: {},
    lie: { success: Schema.Int },
    who: { success: Schema.NullOr(Schema.String) }
  }
}) {}

export class Job extends RemoteService.make("test.job")({
  state: { progress: Schema.Int, title: Schema.String },
  methods: { name: { success: Schema.String } }
}) {}

export const Question = Interaction.make("test.question")({
  request: Schema.Struct({ question: Schema.String }),
  response: Schema.Struct({ answer: Schema.String }),
  unattended: "wait"
})

export const Confirm = Interaction.make("test.confirm")({
  request: Schema.Struct({ action: Schema.String }),
  response: Schema.Literals(["yes", "no"]),
  unattended: "deny",
  confirm: (response) => response === "yes"
})

export const Secret = Interaction.make("test.secret")({
  request: Schema.Struct({ hint: Schema.String }),
  response: Schema.Struct({ secret: Schema.String.check(Schema.isMinLength(4)) }),
  unattended: "wait",
  sensitive: true
})
