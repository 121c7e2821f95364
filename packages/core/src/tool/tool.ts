/**
 * A tool: a named, schema-described action that a model may call.
 *
 * `Tool` is what an author makes with `tool({…})`. `ToolCall` is the interface that its `execute` gets; the turn
 * implements it. A typed failure of `execute` is an error result that the model can act on; a defect is told to the
 * model in one plain sentence and logged.
 */
import type * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import type { Command } from "effect/process/ChildProcess"
import type { ChildProcessHandle } from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import type { JsonObject, JsonValue } from "../json/index.ts"
import type { FilePart, TextPart } from "../model/index.ts"
import type { ToolWork } from "./work.ts"

export type ToolContent = TextPart | FilePart

/** What a tool's result asks of the turn, folded in call order once all calls of an answer have results. */
export interface ToolControl {
  /** End the turn after these results: the model is not asked again. */
  readonly terminate?: boolean
  /** End the turn and start over with a fresh context that begins with this text. */
  readonly handoff?: string
  /** Offer these registered tools, by name, from the next request on. */
  readonly addTools?: ReadonlyArray<string>
}

export interface ToolResult {
  readonly content: ReadonlyArray<ToolContent>
  readonly isError: boolean
  /** Strict JSON for renderers and machines; the model does not see it. */
  readonly details: JsonValue
  readonly control: ToolControl
  /** Why a person's part is missing: clients and exit codes tell these apart, as they do for calls that a gate has blocked. */
  readonly code?: ToolResultCode
}

/** A person said no, did not answer in time, or nobody was there and the policy says not to wait. */
export type ToolResultCode = "declined" | "expired" | "unattended"

/** `"safe"`: running it again with the same call is harmless, so a crash re-invokes it. `"never"` is the default. */
export type Replay = "safe" | "never"

/** Which part of too long an output is kept. */
export interface OutputBounds {
  readonly maxBytes: number
  readonly maxLines: number
  readonly keep: "head" | "tail" | "both"
}

/** A named error that a tool fails with on purpose; `message` is what the model reads. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String,
  details: Schema.optionalKey(Schema.Json)
}) {}

/** The call as a running tool sees it. Everything on it ends with the call. */
export interface ToolCall extends ToolWork {
  readonly sessionID: string
  readonly conversationID: string
  readonly taskID: string
  readonly callID: string
  readonly name: string
  /** Streams output to whoever watches, coalesced; it is the result's content if the tool returns none. */
  readonly stream: (chunk: string | Uint8Array) => Effect.Effect<void>
  /** Shows structured progress to whoever watches; the last value wins. */
  readonly progress: (value: JsonValue) => Effect.Effect<void>
  /** First writer wins, durably, also across a crash: gives the stored value, storing `candidate` if there is none. */
  readonly memo: {
    <A extends JsonValue>(name: string, candidate: A): Effect.Effect<A>
    (name: string): Effect.Effect<JsonValue | undefined>
  }
  /** Runs only when this call is durably aborted, never on a crash, suspend or close. */
  readonly onAbort: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Writes bytes to a bounded file of the session and gives its path; used for output that does not fit a result. */
  readonly artifact: (name: string) => Effect.Effect<ArtifactWriter>
  /**
   * Effect's own file system; what is not an absolute path is below the location's directory. Fails where the harness was
   * opened without a place (`TurnOptions.place`), which no host does.
   */
  readonly fs: Effect.Effect<FileSystem, ToolFailure>
  readonly process: {
    /**
     * Starts a command of `effect/process`, by default in the location's directory. It ends with the call, however that ends,
     * and with it whatever it has started that stayed in its process group. What must outlive the call is a job.
     */
    readonly spawn: (command: Command) => Effect.Effect<ChildProcessHandle, PlatformError | ToolFailure>
  }
}

export interface ArtifactWriter {
  readonly path: string
  /** Appends; `false` once the bound (default 100 MiB) is reached and the rest is dropped. */
  readonly write: (chunk: Uint8Array) => Effect.Effect<boolean>
  readonly close: Effect.Effect<void>
}

/** What the permission rules match of a call: the kind of access and its subject (a command line, a path, a URL). */
export interface ToolPermission {
  readonly access: string
  readonly subjects: ReadonlyArray<string>
}

/** A tool as the registry holds it: types erased, here and nowhere else. */
export interface Tool {
  readonly description: string
  readonly input: Schema.Codec<unknown, unknown>
  /** What a model is told of the arguments, if not the JSON form of `input`. */
  readonly inputSchema?: JsonObject
  readonly replay: Replay
  /** `"sequential"` calls run alone: no other call of the answer runs beside them. */
  readonly executionMode: "parallel" | "sequential"
  readonly bounds: OutputBounds | null
  readonly permission: ((input: unknown) => ToolPermission) | null
  readonly execute: (input: unknown, call: ToolCall) => Effect.Effect<ToolResult, ToolFailure>
}

/** A tool as its author writes it. */
export interface ToolOptions<I, O> {
  readonly description: string
  readonly input: Schema.Codec<I, unknown>
  /**
   * JSON Schema of the arguments as a model is told it, for a tool whose schema comes from elsewhere as JSON. `input` still
   * says what is accepted, so it should accept no less.
   */
  readonly inputSchema?: JsonObject
  /**
   * Describes the output stored as `details`; without it a returned `ToolResult`, text or nothing is taken as it is.
   */
  readonly output?: Schema.Codec<O, unknown>
  /** What the model sees of an output; by default its text, else its JSON. */
  readonly toContent?: (output: O) => string | ReadonlyArray<ToolContent>
  readonly replay?: Replay
  readonly executionMode?: "parallel" | "sequential"
  readonly bounds?: Partial<OutputBounds>
  /** Names what permission rules match; it asks nobody by itself. By default the tool's own name, without a subject. */
  readonly permission?: (input: I) => ToolPermission
  readonly execute: (input: I, call: ToolCall) => Effect.Effect<O | ToolResult | void, { readonly message: string }>
}
