/**
 * Tools that a client offers to a session, as others see them: the client says what there is and is told of each call; the
 * offer is its own and ends with it.
 */
import { RemoteReference, RemoteService } from "@bezel/core/service"
import * as Schema from "effect/Schema"

/** Characters of a description, and of a schema as JSON. */
export const longestDescription = 4_096
export const longestSchema = 65_536

/** Characters of a result as JSON. What a model sees of it is bounded as for every tool. */
export const longestAnswer = 1_048_576

/** A call that waits for the client. */
export const ClientToolCall = Schema.Struct({
  /** Known to the client alone that offers the tool; what it answers under. */
  id: Schema.String,
  /** The model's own id of the call. */
  callID: Schema.String,
  sessionID: Schema.String,
  conversationID: Schema.String,
  input: Schema.Json
})
export type ClientToolCall = typeof ClientToolCall.Type

/** What came of it; the message of an error is for the model. */
export const ClientToolAnswer = Schema.Union([
  Schema.Struct({ type: Schema.Literal("result"), value: Schema.Json }),
  Schema.Struct({ type: Schema.Literal("error"), message: Schema.String })
])
export type ClientToolAnswer = typeof ClientToolAnswer.Type

/** An offer, held by who made it: given back or lost with its connection, the tool is gone and open calls have failed. */
export class ToolOffer extends RemoteService.make("bezel.client-tools.offer")({
  state: { calls: Schema.Array(ClientToolCall), isOver: Schema.Boolean },
  methods: {
    /** `false`: nobody waits for this call any more. */
    answer: { payload: Schema.Struct({ id: Schema.String, answer: ClientToolAnswer }), success: Schema.Boolean }
  }
}) {}

/** Why a tool cannot be offered. */
export class OfferRefused extends Schema.TaggedError<OfferRefused>()("OfferRefused", {
  code: Schema.Literals(["taken", "invalid", "too_many"]),
  message: Schema.String
}) {}

export const OfferedTool = Schema.Struct({
  sessionID: Schema.String,
  name: Schema.String,
  description: Schema.String,
  /** JSON Schema of the arguments: an object. */
  inputSchema: Schema.Record(Schema.String, Schema.Json),
  /** How long a call waits for its answer. */
  timeLimitSeconds: Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 3_600 }))
})
export type OfferedTool = typeof OfferedTool.Type

/** For clients of a host that may do everything. */
export class ClientTools extends RemoteService.make("bezel.client-tools")({
  methods: { offer: { payload: OfferedTool, success: RemoteReference.of(ToolOffer), error: OfferRefused } }
}) {}
