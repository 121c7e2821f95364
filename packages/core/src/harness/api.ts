/**
 * What a harness offers to whoever composes it: conversations, and registrations that live in a scope.
 *
 * The harness knows no plugin object. A facet, a test or a script calls these registrations; each ends with the scope that
 * it was made in, and may come and go while the session is open. Nothing runs before `resume`.
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { JsonObject, JsonValue } from "../json/index.ts"
import type {
  AssistantMessage,
  FilePart,
  Message,
  ModelRef,
  ModelRequest,
  TextPart,
  UserMessage
} from "../model/index.ts"
import type { EntryRecord, EntryScan, InputConfig, StorageError } from "../storage/index.ts"
import type { TaskOutcome, TaskRef, Tool, ToolPermission, ToolResult } from "../tool/index.ts"
import type { HandlersAt, HookedKind, HookPoints } from "./hook-point.ts"
import type { ConversationConfig, ConversationView, Envelope, ViewEvent } from "./view.ts"

/** A misuse of the harness, or a harness that has stopped. The code is stable; the message says what to do. */
export class HarnessError extends Schema.TaggedError<HarnessError>()("HarnessError", {
  code: Schema.Literals([
    /** Entering the commit line from inside a commit. */
    "nested_commit",
    /** A scan that the open commit could change. */
    "read_after_write",
    /** A draft used after its commit. */
    "draft_revoked",
    /** A runtime of an invocation that has ended, been marked or been replaced. */
    "stale_invocation",
    /** A token that is not the one registered now. */
    "stale_definition",
    /** Not allowed to an extension: core kinds, core documents, names under `bezel.`. */
    "not_permitted",
    "duplicate",
    "not_found",
    "busy",
    "invalid",
    /** Storage failed with unknown outcome; reopening recovers. */
    "faulted",
    "closed"
  ]),
  message: Schema.String
}) {}

/** Undoes one registration; also done when the scope of the registration closes. Idempotent. */
export interface Registration {
  readonly unregister: Effect.Effect<void>
}

export interface SendInput {
  readonly content: ReadonlyArray<TextPart | FilePart>
  /** What to do while a turn runs; default `followUp`. `reject` fails with `busy`. */
  readonly whenBusy?: "followUp" | "steer" | "reject"
  /** Names its first acceptance for the life of the session: sending it again gives the same input. */
  readonly requestID?: string
  /** How the conversation is configured for the turn that answers it, and no longer. */
  readonly config?: InputConfig
}

/** How an input ended. `text` is the answer's text. */
export type InputOutcome =
  | { readonly status: "done"; readonly answer: string; readonly text: string }
  | {
    readonly status: "unanswered"
    readonly reason: "terminated" | "aborted" | "failed" | "stale"
    readonly error: { readonly kind: string; readonly message: string } | null
  }

export interface InputHandle {
  readonly id: string
  /** Interrupting the wait changes nothing. */
  readonly wait: Effect.Effect<InputOutcome, HarnessError>
  /** How it has ended, or `null` while it has not. */
  readonly result: Effect.Effect<InputOutcome | null, HarnessError>
  readonly abort: Effect.Effect<"aborted" | "already_placed" | "ended", HarnessError>
  /** What it consists of, files included, as long as it waits; nothing of one that was placed or has ended. */
  readonly content: Effect.Effect<ReadonlyArray<TextPart | FilePart>, HarnessError>
}

export interface Watch {
  readonly revision: number
  readonly view: ConversationView
  /** Every later commit that touches the conversation, contiguous from `revision + 1`. */
  readonly envelopes: Stream.Stream<Envelope, HarnessError>
}

/** One commit as an extension builds it. Valid until its builder returns; a draft kept longer throws `DraftRevoked`. */
export interface ExtensionTransaction {
  /** Milliseconds since the epoch at which the commit began. */
  readonly now: number
  /** The merged state of a namespace as a draft; each key goes to the document that declares it. */
  readonly plugins: (namespace: Namespace) => { [key: string]: JsonValue }
  /** Puts `plugin.<namespace>.<name>` into this commit's envelope. */
  readonly emit: (namespace: Namespace, name: string, data: JsonValue) => void
  /** Writes an entry, at once when no turn runs, else at the next boundary. Gives its id. */
  readonly write: (kind: string | EntryKind, entry: NewExtensionEntry) => string
  readonly createTask: <I>(kind: TaskKind<I>, input: I, options?: TaskOptions) => TaskRef
  /** The newest entry of a kind. Refused (`read_after_write`) once this commit has written entries, and then it is void. */
  readonly newestEntry: (kind: string | EntryKind) => Effect.Effect<EntryRecord | null, HarnessError>
}

export interface NewExtensionEntry {
  readonly data?: JsonValue
  /** What the model sees of it; without it the entry is for people and plugins. */
  readonly model?: ReadonlyArray<UserMessage>
  /**
   * Asks the model for an answer to it: begins a turn where none runs. Not after an interrupt, and not for ever: then, and where
   * a turn runs, the model sees it with its next request.
   */
  readonly wake?: boolean
}

/** A kind of entry of an extension's own. Stateless: unknown kinds still show and still count. */
export interface EntryKind<A = unknown> {
  readonly kind: string
  readonly is: (
    entry: { readonly kind: string; readonly data: JsonValue }
  ) => entry is { readonly kind: string; readonly data: JsonValue & A }
}

export interface TaskOptions {
  /** Does not hold the conversation busy and survives an abort of its turn. */
  readonly background?: boolean
  /** Tasks that must have ended, in whatever way, before this one starts. */
  readonly after?: ReadonlyArray<TaskRef>
}

/** A kind of task: what `TaskKind.make` gives. Only the object that is registered now may create tasks. */
export interface TaskKind<I = never> {
  readonly name: string
  readonly input: Schema.Codec<I, unknown>
}

/** Where a conversation stands among those of its session. */
export interface ConversationNode {
  readonly id: string
  /** A fork has what its parent said up to and including the entry `at` (`null`: nothing). */
  readonly parent: { readonly conversation: string; readonly at: string | null } | null
  /** The task that a sub-agent's conversation belongs to. */
  readonly owner: string | null
}

/** The events of one commit in one conversation, at least one. */
export interface SessionEvents {
  readonly conversation: string
  readonly events: ReadonlyArray<ViewEvent>
}

export interface Conversation {
  readonly id: string
  /** Runs `build` in one commit: all of it is stored, or nothing. An effect as builder has five seconds. */
  readonly commit: <A, E = never>(
    build: (tx: ExtensionTransaction) => A | Effect.Effect<A, E>
  ) => Effect.Effect<A, E | HarnessError>
  /** Completes when the task has ended. Interrupting the wait changes nothing. */
  readonly waitForTask: (ref: TaskRef) => Effect.Effect<TaskOutcome, HarnessError>
  /** Marks a task for abortion, durably, and waits until it has ended. */
  readonly abortTask: (ref: TaskRef) => Effect.Effect<TaskOutcome, HarnessError>
  readonly send: (input: SendInput) => Effect.Effect<InputHandle, HarnessError>
  readonly input: (id: string) => Effect.Effect<InputHandle | null, HarnessError>
  /** Durably ends the running turn, if there is one; every call gets a result. Queued inputs stay. */
  readonly abort: (reason?: string) => Effect.Effect<void, HarnessError>
  /** `kinds` sets settings that registered task kinds declare. */
  readonly configure: (
    patch: Partial<ConversationConfig> & { readonly kinds?: JsonObject }
  ) => Effect.Effect<void, HarnessError>
  /** Writes an entry of the caller's own kind, at once when idle, else at the next boundary. */
  readonly write: (kind: string | EntryKind, entry: NewExtensionEntry) => Effect.Effect<string, HarnessError>
  readonly busy: Effect.Effect<boolean>
  /** Completes when no turn runs and nothing is queued. */
  readonly idle: Effect.Effect<void, HarnessError>
  readonly snapshot: Effect.Effect<{ readonly revision: number; readonly view: ConversationView }, HarnessError>
  /** Snapshot and subscription in one step. */
  readonly watch: Effect.Effect<Watch, HarnessError, Scope.Scope>
  readonly entries: (scan: Omit<EntryScan, "conversation">) => Effect.Effect<ReadonlyArray<EntryRecord>, HarnessError>
  /** What the model would see now, without system messages. */
  readonly context: Effect.Effect<ReadonlyArray<Message>, HarnessError>
  /** A new conversation as this one was at the entry `at`: any that it has said or inherited, also before a summary. */
  readonly fork: (at: string) => Effect.Effect<Conversation, HarnessError>
  /** Starts over with a fresh context, which begins with `handoff` if there is one. Fails with `busy` while a turn runs. */
  readonly reset: (handoff?: string) => Effect.Effect<void, HarnessError>
  /**
   * Takes an entry of the active transcript and all after it out of the conversation, with the settings and the rewindable
   * state that came with them; gives the id of the entry that marks it. Fails with `busy` while a turn runs.
   */
  readonly rewind: (from: string, data: JsonValue) => Effect.Effect<string, HarnessError>
  /** Undoes the rewind of that id. Fails with `invalid` once the conversation has gone on. */
  readonly restore: (rewind: string, data: JsonValue) => Effect.Effect<string, HarnessError>
  /** Summarizes the older part; gives the id of the task that does it. Joins one that is under way. */
  readonly collapse: (instructions?: string) => Effect.Effect<TaskRef, HarnessError>
  /** Text of the newest final answer, or an empty string. */
  readonly finalText: Effect.Effect<string, HarnessError>
}

// ---------------------------------------------------------------------------------------------------------- namespaces

/** Defaults of a namespace's state, by document. Keys are unique across the three. */
export interface NamespaceShape {
  readonly session?: JsonObject
  readonly rewindable?: JsonObject
  readonly sticky?: JsonObject
}

export interface NamespaceOptions {
  /** What the view shows of the merged state; nothing without it. Pure. */
  readonly view?: (state: JsonObject) => JsonValue
  /** Another object that stands for the same authority: a host's token for all of its sessions. */
  readonly alias?: Namespace
}

/** Authority over one namespace's durable state. The string persists; this object is only who may write today. */
export interface Namespace {
  readonly id: string
  readonly unregister: Effect.Effect<void>
  /**
   * A copy of the merged state in a conversation. With `at`, an entry of it, only the rewindable keys, as they were when that
   * entry was written: the others are about the present.
   */
  readonly get: (
    conversationID: string,
    options?: { readonly at?: string }
  ) => Effect.Effect<JsonObject, HarnessError>
  /** Changes the state in one commit: the callback mutates a draft. */
  readonly update: (
    conversationID: string,
    change: (draft: { [key: string]: JsonValue }) => void,
    event?: { readonly name: string; readonly data: JsonValue }
  ) => Effect.Effect<void, HarnessError>
}

// --------------------------------------------------------------------------------------------------------------- hooks

export interface HookApi {
  readonly sessionID: string
  readonly conversationID: string
  readonly taskID: string
}

/** A call as hooks see it: with the arguments that earlier handlers left. */
export interface HookToolCall {
  readonly callID: string
  readonly name: string
  readonly args: JsonValue
  readonly permission: ToolPermission
}

/** Values that the first writer stores in a task's slot. `null` is a value. */
export interface Memo {
  <A extends JsonValue>(name: string, candidate: A): Effect.Effect<A, HarnessError>
  (name: string): Effect.Effect<JsonValue | undefined, HarnessError>
}

export interface BeforeToolApi extends HookApi {
  /** Shows, durably, that this call waits for a person because of the handler's namespace. Idempotent. */
  readonly waiting: Effect.Effect<void, HarnessError>
  /** First writer wins, keyed by (call, namespace, name); survives a crash and a reload. */
  readonly memo: Memo
  /** Tells whoever watches, in a commit of its own: the event `plugin.<namespace>.<name>`. */
  readonly emit: (name: string, data: JsonValue) => Effect.Effect<void, HarnessError>
}

/** `block` is told to the model as an error result; `denied` says that it was refused because nobody could be asked. */
export interface BeforeToolDecision {
  readonly args?: JsonValue
  readonly block?: string
  readonly code?: "denied_by_rule" | "declined" | "expired" | "unattended"
}

export interface ToolHooks {
  /**
   * Chain. A failure, a defect and a time-out all block the call.
   *
   * The scope is the call's: what a handler acquires in it is released exactly once, when the call has ended, however it
   * ends. The exit says how: success with the result, failure with why the result is an error (also of a call that was
   * blocked), or interruption of a call that was aborted.
   */
  readonly beforeTool?: (
    call: HookToolCall,
    api: BeforeToolApi
  ) => Effect.Effect<BeforeToolDecision | void, { readonly message: string }, Scope.Scope>
  /** Chain. A failure skips the handler with a warning. */
  readonly afterTool?: (
    call: HookToolCall,
    result: ToolResult,
    api: HookApi
  ) => Effect.Effect<ToolResult | void, { readonly message: string }>
}

export interface GenerationHooks {
  /** Collect. Runs before the tools of a request are put together: for whoever needs a moment to have its own there. */
  readonly beforePrepare?: (api: HookApi) => Effect.Effect<void, { readonly message: string }>
  /** Collect. Text for the system message of this request. */
  readonly systemInstructions?: (api: HookApi) => Effect.Effect<string | void, { readonly message: string }>
  /** Chain. May change the request, or end the turn instead (`end` says why). */
  readonly beforeRequest?: (
    request: ModelRequest,
    api: HookApi & { readonly model: ModelRef; readonly step: number }
  ) => Effect.Effect<{ readonly request?: ModelRequest; readonly end?: string } | void, { readonly message: string }>
  /**
   * First. Sees a final answer before the turn ends; with `continueWith` the turn goes on with that as a notice to the model
   * instead. `step` counts the turn's requests, for whoever must stop some time.
   */
  readonly onYield?: (
    message: AssistantMessage,
    api: HookApi & { readonly step: number }
  ) => Effect.Effect<{ readonly continueWith?: string } | void, { readonly message: string }>
  /** Collect. Sees each finished answer, with its cost in US dollars. */
  readonly afterResponse?: (
    message: AssistantMessage,
    api: HookApi & { readonly cost: number }
  ) => Effect.Effect<void, { readonly message: string }>
}

export interface CollapseHooks {
  /** First. May give the summary itself, or call the compaction off and say why. A failure skips the handler. */
  readonly beforeCollapse?: (
    older: { readonly messages: ReadonlyArray<Message> },
    api: HookApi
  ) => Effect.Effect<{ readonly summary?: string; readonly cancel?: string } | void, { readonly message: string }>
}

export interface PostToolsHooks {
  /** Collect. Sees that all calls of an answer have results, before the turn goes on. */
  readonly afterTools?: (
    calls: ReadonlyArray<{ readonly callID: string; readonly name: string; readonly isError: boolean }>,
    api: HookApi
  ) => Effect.Effect<void, { readonly message: string }>
}

export interface HookHandlers {
  readonly tool: ToolHooks
  readonly generation: GenerationHooks
  readonly post_tools: PostToolsHooks
  readonly collapse: CollapseHooks
}

export type HookKind = keyof HookHandlers

export interface HookOptions {
  /** Runs after all other handlers, sees the final call and may not rewrite it. */
  readonly gate?: boolean
  /** Only this conversation; with `subtree`, also those that it owns. */
  readonly conversation?: string
  readonly subtree?: boolean
  /** Place in the chain, ahead of the order of registration; default 0. Hosts set it to the plugin's place in the manifest. */
  readonly order?: number
  /** How long one of its handlers may take, in place of the host's limit. */
  readonly limit?: Duration.Input
}

/** A piece of the system message, in order of `order`, then of registration. */
export interface Section {
  readonly id: string
  readonly order: number
  readonly text: (
    api: { readonly conversationID: string; readonly config: ConversationConfig }
  ) => Effect.Effect<string | null>
}

export interface RegisterHooks {
  <K extends HookKind>(
    namespace: Namespace,
    kind: K,
    handlers: HookHandlers[K],
    options?: HookOptions
  ): Effect.Effect<Registration, HarnessError, Scope.Scope>
  <H extends HookPoints>(
    namespace: Namespace,
    kind: HookedKind<H>,
    handlers: HandlersAt<H>,
    options?: HookOptions
  ): Effect.Effect<Registration, HarnessError, Scope.Scope>
}

/** What extensions register on a harness. The same calls exist on the session context for all sessions of a location. */
export interface HarnessExtensions {
  readonly namespace: (
    id: string,
    shape: NamespaceShape,
    options?: NamespaceOptions
  ) => Effect.Effect<Namespace, HarnessError, Scope.Scope>
  /** `kind` is one of the core's by its name, or a custom kind of task that has points of its own. */
  readonly hooks: RegisterHooks
  readonly section: (section: Section) => Effect.Effect<Registration, HarnessError, Scope.Scope>
}

/** Registration of task kinds. */
export interface TaskExtensions {
  /** Lets tasks of this kind run. Unregistering leaves its pending tasks pending; what runs keeps the code it started with. */
  readonly task: <I>(kind: TaskKind<I>) => Effect.Effect<Registration, HarnessError, Scope.Scope>
}

export interface Harness extends HarnessExtensions, TaskExtensions {
  readonly sessionID: string
  /** The kind of OS processes owned by tasks; `null` where there is no process host. */
  readonly job: TaskKind<JobSpec> | null
  readonly main: Conversation
  readonly conversation: (id: string) => Effect.Effect<Conversation | null, HarnessError>
  /** Every conversation of the session, oldest first: the main one, forks, and those that tasks own. */
  readonly tree: Effect.Effect<ReadonlyArray<ConversationNode>, HarnessError>
  /**
   * What happens in all conversations of the session, from here on until the scope ends: those that come later included.
   * Whoever falls too far behind is cut off, as a watcher of a conversation is.
   */
  readonly events: Effect.Effect<Stream.Stream<SessionEvents, HarnessError>, HarnessError, Scope.Scope>
  /** Starts the scheduler: recovery of what a crash left, then work. Idempotent. */
  readonly resume: Effect.Effect<void, HarnessError>
  /** Completes when storage has failed: the session has stopped here, and opening it again goes on from the last commit. */
  readonly faulted: Effect.Effect<HarnessError>
  /** Adds one tool to this harness alone, hiding a shared one of its name, until the scope ends. */
  readonly registerTool: (name: string, tool: Tool) => Effect.Effect<Registration, never, Scope.Scope>
  /** True when no invocation exists, running or sleeping: no request, tool, wait for a retry, waiting hook or job. */
  readonly quiescent: Effect.Effect<boolean>
  /** Kinds of the tasks that have an invocation now, running or sleeping. */
  readonly running: Effect.Effect<ReadonlySet<string>>
  /**
   * Waits while no turn of the main conversation runs and tasks in the background are alive: says whether one of them has begun
   * a turn, or all have ended.
   */
  readonly inBackground: Effect.Effect<"woken" | "ended", HarnessError>
  /** Defers new invocations and hook chains until the scope ends; commits and reads go on. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
  /**
   * Stops all work and closes the session here, ending nothing for good: opening it again runs ordinary recovery, under
   * whatever is registered then.
   */
  readonly suspend: Effect.Effect<void>
}

/** A process to run as a task. Times in milliseconds. */
export interface JobSpec {
  readonly command: readonly [string, ...ReadonlyArray<string>]
  /** What the model is told has ended; the words of `command` unless said. */
  readonly title?: string
  readonly directory: string
  readonly env: { readonly [name: string]: string }
  /** Since the epoch; `null` starts it at once. */
  readonly notBefore: number | null
  /** Runs it again so long after each end, until it is aborted. */
  readonly every: number | null
  /** Tells the model how each run ended, and asks it for an answer to that. */
  readonly notice: boolean
}

/** What a harness reports that is not on anybody's main path. */
export interface HarnessReport {
  readonly level: "warning" | "error"
  readonly message: string
  readonly conversationID: string | null
}

export type HarnessFailure = HarnessError | StorageError
