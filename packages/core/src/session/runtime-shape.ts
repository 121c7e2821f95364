/** What the sessions of a location offer: to callers, and to the host that they run in. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ConversationConfig, InputOutcome, SendInput } from "../harness/index.ts"
import type { FilePart, ModelRef } from "../model/index.ts"
import type { StorageError } from "../storage/index.ts"
import type { TurnOptions } from "../turn/index.ts"
import type { DeclarationTarget, SessionDeclaration } from "./declarations.ts"
import type { Intakes } from "./intake.ts"
import type { OpenError } from "./live.ts"
import type { OpenSession } from "./open-session.ts"
import type { PluginCode } from "./plugin-code.ts"
import type { ClearRevert, RevertReport, SessionRevert, StageRevert } from "./revert.ts"
import type { Said } from "./said.ts"

/** Which agents there are for turns, and when a conversation is summarized. */
export type TurnDecisions = Partial<Pick<TurnOptions, "agent" | "compaction">>

/** What somebody asks of a session. */
export interface Prompt {
  readonly text: string
  readonly files?: ReadonlyArray<FilePart>
  /** `true`: a person wrote the text; a string: they wrote this part of it. Plugins may add files to what was written (`intake.ts`). */
  readonly written?: boolean | string
}

/** A prompt that was accepted. */
export interface AcceptedPrompt {
  readonly inputID: string
  /** What the person should know of what was written, one sentence each; absent: nothing. */
  readonly notices?: ReadonlyArray<string>
}

export interface PromptOptions {
  readonly sessionID: string
  readonly prompt: Prompt
  /** Default: the main conversation. */
  readonly conversationID?: string
  readonly whenBusy?: SendInput["whenBusy"]
  /** A prompt with an id that the session has accepted before is that same prompt. */
  readonly requestID?: string
  /** An agent and a model for the turn that answers it, and no longer. */
  readonly config?: SendInput["config"]
  /** `false` only accepts it; the work starts with `resume`. */
  readonly resume?: boolean
}

export interface SessionRuntimeShape {
  /** Accepts a prompt durably and gives its input's id; does not wait for the answer. */
  readonly prompt: (options: PromptOptions) => Effect.Effect<AcceptedPrompt, OpenError>
  /** The same, placed into the running turn at its next boundary. */
  readonly steer: (
    options: Omit<PromptOptions, "whenBusy" | "resume">
  ) => Effect.Effect<AcceptedPrompt, OpenError>
  /** Starts work that is there: accepted prompts, and what a crash left. */
  readonly resume: (sessionID: string) => Effect.Effect<void, OpenError>
  /** Completes when no turn runs and nothing is queued; with an input's id, when that has ended. Holds nothing but the session. */
  readonly wait: {
    (sessionID: string): Effect.Effect<void, OpenError>
    (sessionID: string, inputID: string): Effect.Effect<InputOutcome, OpenError>
  }
  /** Durably ends the running turn, if there is one. */
  readonly interrupt: (sessionID: string, reason?: string) => Effect.Effect<void, OpenError>
  /** Sessions with running or queued work, by id. */
  readonly active: Effect.Effect<ReadonlyArray<string>>
  readonly configure: (sessionID: string, patch: Partial<ConversationConfig>) => Effect.Effect<void, OpenError>
  readonly abortInput: (
    sessionID: string,
    inputID: string
  ) => Effect.Effect<"aborted" | "already_placed" | "ended", OpenError>
  /** A new conversation of the session whose transcript is the main one's up to and including entry `at`; gives its id. */
  readonly fork: (sessionID: string, at: string) => Effect.Effect<string, OpenError>
  /** Takes back what a session has done, in its conversation and in files (`revert.ts`). */
  readonly revert: {
    readonly stage: (sessionID: string, request: StageRevert) => Effect.Effect<RevertReport, OpenError>
    readonly clear: (sessionID: string, request?: ClearRevert) => Effect.Effect<RevertReport, OpenError>
  }
  /** Text of the newest final answer of the main conversation, or an empty string. */
  readonly finalText: (sessionID: string) => Effect.Effect<string, OpenError>
  /** The folder of the files that a session keeps, artifacts among them. Made if it is not there; opens no session. */
  readonly folder: (sessionID: string) => Effect.Effect<string, StorageError>
}

/** What only hosts see of the runtime. */
export interface SessionRuntimeHost extends SessionRuntimeShape {
  /** Opens a session, or holds it open, for the life of the scope; its work starts, unless `resume` is `false`. */
  readonly open: (
    sessionID: string,
    options?: { readonly resume?: boolean }
  ) => Effect.Effect<OpenSession, OpenError, Scope.Scope>
  /**
   * Changes what is declared for all sessions, open ones included. One in which something required fails is closed: with a
   * gate missing it must not go on.
   */
  readonly declare: (change: {
    readonly add: ReadonlyArray<SessionDeclaration>
    readonly remove: ReadonlyArray<SessionDeclaration>
  }) => Effect.Effect<void>
  readonly targets: () => ReadonlyArray<DeclarationTarget>
  /** Where the host has the sessions run code of plugins. */
  readonly code: PluginCode
  /**
   * Runs an exchange of these plugins' code between two rests: no session starts anything meanwhile, and those that are in
   * the middle of that code are suspended and opened again afterwards, under what is declared then. Others notice nothing.
   */
  readonly exchanging: <A, E, R>(
    plugins: ReadonlyArray<string>,
    exchange: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Completes when no turn runs. */
  readonly settled: Effect.Effect<void>
  /** Completes when no turn runs and nothing goes on in the background of a session: until then the location is needed. */
  readonly atRest: Effect.Effect<void>
  /** For what was sent to a conversation and not through `prompt`: keeps the session open for it, and tells the catalogue. */
  readonly account: (sessionID: string) => Effect.Effect<void, OpenError>
  /** The model that a conversation with these settings asks next. Whether it can be used is not looked at. */
  readonly nextModel: (config: Pick<ConversationConfig, "agent" | "model">) => Effect.Effect<ModelRef>
  readonly intakes: Intakes
  /** Who takes back what sessions have done. The last one holds. */
  readonly reverters: Said<SessionRevert>
  /** What plugins have decided for turns. The last one to say something holds. */
  readonly decisions: Said<TurnDecisions>
  /** What turns need beyond that, models and tools; set by the host before anything opens. */
  readonly configureTurns: (
    options: Partial<Pick<TurnOptions, "frames" | "hookLimit" | "job" | "place" | "retry">>
  ) => Effect.Effect<void>
}

export interface SessionRuntimeOptions {
  /** How long a session stays open after its last holder; default half a second, during which no other process can write it. */
  readonly idleTime?: Duration.Input
  /** Time limit of each effect that extensions run when a session opens; default 10 seconds. */
  readonly declarationLimit?: Duration.Input
}
