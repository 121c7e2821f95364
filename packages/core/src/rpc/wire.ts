/**
 * The wire: one small static `effect/rpc` group that carries every service, whose tokens are known only at run time.
 *
 * `effect/rpc` does correlation, streaming, acknowledgement and interruption. Calls are the same messages without its
 * codecs and fibers, which would cost as much again as the call. Payloads are opaque to it: what goes in is encoded, and
 * what comes out decoded, by the codecs here and by each token's own schemas, inside the handlers. So a payload that does
 * not fit gets a precise code, never an untyped defect that ends every call of the client.
 */
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as Schema from "effect/Schema"
import { decodeOperations, isParsedJson, JsonValue } from "../json/index.ts"
import type { Operation } from "../json/index.ts"
import type { ServiceError } from "../service/index.ts"
import { issueOf, refusal, ServiceErrorCode, SpanCarrier } from "../service/index.ts"

/** The erasure point of the wire: `effect/rpc` passes these as they are. */
const Opaque: Schema.Codec<unknown> = Schema.Any

export const ServiceGroup = RpcGroup.make(
  Rpc.make("watch", { payload: Opaque, success: Opaque, error: Opaque, stream: true }),
  Rpc.make("control", { payload: Opaque, success: Opaque, error: Opaque })
)

/** Which instance of a service. */
const Address = {
  service: Schema.String,
  key: Schema.optionalKey(Schema.String),
  /** Only this generation of the key; its successor answers `stale_reference`. */
  generation: Schema.optionalKey(Schema.Int),
  /** A session that the connection is attached to; the selected one if left out. */
  session: Schema.optionalKey(Schema.String),
  /** A reference that this connection holds, instead of an instance. */
  reference: Schema.optionalKey(Schema.Int)
}

export const Call = Schema.Struct({
  ...Address,
  member: Schema.String,
  payload: JsonValue,
  /** The number of the reference that the call returns, for methods that do; the caller counts. */
  hold: Schema.optionalKey(Schema.Int),
  trace: Schema.optionalKey(SpanCarrier)
})
export type Call = typeof Call.Type

export const Watch = Schema.Union([
  /** All states of one instance, and whether it is there. */
  Schema.Struct({ type: Schema.Literal("states"), ...Address }),
  /** One event source. */
  Schema.Struct({
    type: Schema.Literal("events"),
    ...Address,
    member: Schema.String,
    /** Of a durable source: the id of the last event that was seen; from now on if left out. */
    after: Schema.optionalKey(Schema.String)
  }),
  /** The live keyed instances of a service. */
  Schema.Struct({ type: Schema.Literal("instances"), service: Schema.String }),
  /** What the host asks people, as far as this client handles it. */
  Schema.Struct({ type: Schema.Literal("interactions") })
])
export type Watch = typeof Watch.Type

/** Of the messages of this file. A host answers a client of another one with a refusal that says both. */
export const protocolVersion = 1

/** A plugin of a manifest, as the two sides compare it. */
export const PluginVersion = Schema.Struct({ id: Schema.String, version: Schema.optionalKey(Schema.String) })
export type PluginVersion = typeof PluginVersion.Type

export const Control = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("hello"),
    label: Schema.String,
    /** What this client speaks; {@link protocolVersion} if left out. */
    protocol: Schema.optionalKey(Schema.Int),
    manifest: Schema.optionalKey(Schema.Array(PluginVersion))
  }),
  /** Attach to a session and show it; null detaches. */
  Schema.Struct({
    type: Schema.Literal("select"),
    session: Schema.NullOr(Schema.String),
    /** `false`: its work is not started by this. */
    resume: Schema.optionalKey(Schema.Boolean)
  }),
  /** Attach to a session beside the one that is shown, and leave it. */
  Schema.Struct({
    type: Schema.Literal("attach"),
    session: Schema.String,
    /** `false`: its work is not started by this. */
    resume: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literal("detach"), session: Schema.String }),
  Schema.Struct({ type: Schema.Literal("catalogue") }),
  /** Gives back a reference, also one whose call is still open. */
  Schema.Struct({ type: Schema.Literal("release"), reference: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("handles"), interactions: Schema.Array(Schema.String) }),
  Schema.Struct({
    type: Schema.Literal("answer"),
    id: Schema.String,
    answer: Schema.Union([
      Schema.Struct({ type: Schema.Literal("answered"), response: JsonValue }),
      Schema.Struct({ type: Schema.Literal("declined") }),
      Schema.Struct({ type: Schema.Literal("failed") })
    ])
  })
])
export type Control = typeof Control.Type

export const Hello = Schema.Struct({
  client: Schema.String,
  epoch: Schema.String,
  /** Contract versions by service, of those that the host knows. */
  contracts: Schema.optionalKey(Schema.Record(Schema.String, Schema.Int)),
  manifest: Schema.optionalKey(Schema.Array(PluginVersion))
})
export type Hello = typeof Hello.Type
/** The result of a method that returns a reference: the number that its call has given. */
export const Held = Schema.Struct({ reference: Schema.Int })
export const Catalogue = Schema.Array(Schema.String)
/** What a client has before it, as the answer to what it handles. */
export const Offered = Schema.Array(
  Schema.Struct({ id: Schema.String, interaction: Schema.String, session: Schema.String, request: JsonValue })
)

const Operations = Schema.declare(
  (value: unknown): value is ReadonlyArray<Operation> => Result.isSuccess(decodeOperations(value)),
  { expected: "operations on a JSON document" }
)

const Cause = Schema.optionalKey(SpanCarrier)

/** Items of a watch. One chunk holds all that waited; an acknowledgement per chunk is the back-pressure. */
export const Item = Schema.Union([
  /** Everything up to here, in one step. Later deltas of the same `instance` follow without gap. */
  Schema.Struct({
    type: Schema.Literal("snapshot"),
    instance: Schema.Int,
    session: Schema.NullOr(Schema.String),
    states: Schema.Record(Schema.String, Schema.Struct({ sequence: Schema.Int, value: JsonValue }))
  }),
  Schema.Struct({
    type: Schema.Literal("delta"),
    instance: Schema.Int,
    member: Schema.String,
    sequence: Schema.Int,
    /** Of how many deliveries this is, the last one being `sequence`; 1 if left out. */
    count: Schema.optionalKey(Schema.Int),
    operations: Operations,
    cause: Cause
  }),
  /** Nobody there at the moment; the watch goes on. */
  Schema.Struct({ type: Schema.Literal("absent"), reason: Schema.Literals(["detached", "unavailable"]) }),
  Schema.Struct({
    type: Schema.Literal("event"),
    sequence: Schema.optionalKey(Schema.Int),
    /** Of a durable source. */
    id: Schema.optionalKey(Schema.String),
    value: JsonValue,
    cause: Cause
  }),
  /** Of a durable source: events follow from here on, without any missing, or with some. */
  Schema.Struct({ type: Schema.Literals(["from", "gap"]), id: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("instances"),
    live: Schema.Array(
      Schema.Struct({ key: Schema.String, generation: Schema.Int, session: Schema.NullOr(Schema.String) })
    )
  }),
  Schema.Struct({
    type: Schema.Literal("offer"),
    id: Schema.String,
    interaction: Schema.String,
    session: Schema.String,
    request: JsonValue
  }),
  Schema.Struct({
    type: Schema.Literal("close"),
    id: Schema.String,
    reason: Schema.Literals(["answered", "declined", "expired", "unattended", "withdrawn"])
  })
])
export type Item = typeof Item.Type

/** An error as it crosses: one that the method declares, encoded by its schema, or one of the boundary. */
export const WireError = Schema.Union([
  Schema.Struct({ type: Schema.Literal("declared"), error: JsonValue }),
  Schema.Struct({
    type: Schema.Literal("service"),
    code: ServiceErrorCode,
    message: Schema.String,
    data: Schema.optionalKey(Schema.Json)
  })
])
export type WireError = typeof WireError.Type

export const toWireError = (error: ServiceError): WireError => ({
  type: "service",
  code: error.code,
  message: error.message,
  ...(error.data === undefined ? {} : { data: error.data })
})

/** A decoder that answers with the boundary's own error. */
export const decoding = <A>(
  schema: Schema.ConstraintCodec<A, unknown>,
  code: "invalid_arguments" | "invalid_result",
  what: string
) => {
  const decode = Schema.decodeUnknownExit(schema)
  return (value: unknown): Exit.Exit<A, ServiceError> => {
    const exit = decode(value)
    return Exit.isSuccess(exit) ? Exit.succeed(exit.value) : Exit.fail(refusal(code, what, issueOf(exit)))
  }
}

/** What differs between the calls of one member. */
export interface CallParts {
  readonly payload: JsonValue
  readonly session: string | null
  readonly hold: number | undefined
  readonly trace: SpanCarrier
}

/** Makes the texts of calls of one member: a `Call` as JSON, without making the object. Each call passes here. */
export const callTexts = (address: Pick<Call, keyof typeof Address>, member: string): (parts: CallParts) => string => {
  const { session: _, ...rest } = address
  const head = JSON.stringify({ ...rest, member }).slice(0, -1)
  return ({ hold, payload, session, trace }) =>
    `${head}${session === null ? "" : `,"session":${JSON.stringify(session)}`}${
      hold === undefined ? "" : `,"hold":${hold}`
    },"payload":${JSON.stringify(payload)},"trace":{"traceId":${JSON.stringify(trace.traceId)},"spanId":${
      JSON.stringify(trace.spanId)
    },"sampled":${trace.sampled}}}`
}

const decodeAnyCall = decoding(Call, "invalid_arguments", "The call is malformed")

/** The same as its schema, by hand where everything is as it should be: each call passes here. */
export const decodeCall = (message: unknown): Exit.Exit<Call, ServiceError> =>
  isCall(message) ? Exit.succeed(message) : decodeAnyCall(message)

const isCall = (message: unknown): message is Call => {
  if (typeof message !== "object" || message === null) return false
  const call = message as { readonly [Key in keyof Call]?: unknown }
  return typeof call.service === "string" && typeof call.member === "string" && call.payload !== undefined &&
    isParsedJson(call.payload) &&
    isAbsentOr("string", call.key) && isAbsentOr("string", call.session) && isAbsentOrInt(call.generation) &&
    isAbsentOrInt(call.reference) && isAbsentOrInt(call.hold) && (call.trace === undefined || isCarrier(call.trace))
}

const isAbsentOr = (type: "string", value: unknown): boolean => value === undefined || typeof value === type
const isAbsentOrInt = (value: unknown): boolean => value === undefined || Number.isSafeInteger(value)

const isCarrier = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false
  const trace = value as { readonly [Key in keyof SpanCarrier]?: unknown }
  return typeof trace.traceId === "string" && typeof trace.spanId === "string" && typeof trace.sampled === "boolean"
}
export const decodeWatch = decoding(Watch, "invalid_arguments", "The subscription is malformed")
export const decodeControl = decoding(Control, "invalid_arguments", "The control message is malformed")
export const decodeItem = decoding(Item, "invalid_result", "The host sent a malformed delivery")
const decodeError = decoding(WireError, "invalid_result", "The host sent a malformed error")

/** What a failed exchange means to the caller. */
export const fromWireError = (value: unknown): WireError => {
  const exit = decodeError(value)
  if (Exit.isSuccess(exit)) return exit.value
  return { type: "service", code: "invalid_result", message: "The host sent an error that cannot be read." }
}
