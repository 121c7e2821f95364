import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import type { Command } from "effect/process/ChildProcess"
import type { ChildProcessHandle } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import type { ConversationConfig, CustomTaskKind, HarnessReport } from "../harness/index.ts"
import type { ModelRef, ModelSource, ThinkingLevel } from "../model/index.ts"
import type { ArtifactWriter, MaterializeOptions, ToolSource } from "../tool/index.ts"
import type { JobInput } from "./job.ts"

/** When a failed request is tried again. Waits are in milliseconds. */
export interface RetryPolicy {
  /** Requests per generation, the first included. */
  readonly attempts: number
  /** Wait after the first failure; doubles with each further one. */
  readonly firstWait: number
  /** Upper bound of a wait, also of one that the provider asks for. */
  readonly longestWait: number
}

export const defaultRetry: RetryPolicy = { attempts: 5, firstWait: 1_000, longestWait: 600_000 }

/** How an answer shows while it streams: a commit after so much time, or so much text, whichever comes first. */
export interface Frames {
  readonly millis: number
  /** UTF-16 units. */
  readonly characters: number
}

export const defaultFrames: Frames = { millis: 100, characters: 256 }

/** When a conversation is summarized. */
export interface Compaction {
  /** Whether a full context is summarized by itself; asking for it always works. */
  readonly auto: boolean
  /** Part of the model's context window at which it happens, from 0 to 1. */
  readonly threshold: number
  /** Tokens of the newest exchanges that stay as they are. */
  readonly keepRecent: number
}

export const defaultCompaction: Compaction = { auto: true, threshold: 0.8, keepRecent: 20_000 }

export interface OfferedAgent extends MaterializeOptions {
  readonly prompt: string | null
  /** For conversations that have no model of their own. */
  readonly model?: ModelRef | null
  /** For conversations whose thinking is off. */
  readonly thinking?: ThinkingLevel
}

/** Without agents everything is offered. */
export const anyAgent: OfferedAgent = { enabled: {}, denied: [], prompt: null }

/** The files and processes that running calls get; a process ends with the scope that it was started in. */
export interface TurnPlace {
  readonly filesystem: Effect.Effect<FileSystem>
  readonly process: {
    readonly spawn: (command: Command) => Effect.Effect<ChildProcessHandle, PlatformError, Scope.Scope>
  }
}

/** What a turn needs from the place that it runs in. */
export interface TurnOptions {
  readonly sessionID: string
  readonly models: ModelSource
  readonly tools: ToolSource
  /** What a new conversation is configured with. */
  readonly defaults?: Partial<ConversationConfig>
  /** Which tools a conversation is offered, and what its agent adds to the system message. */
  readonly agent?: (name: string | null) => Effect.Effect<OfferedAgent>
  /** Read before each request, so that a change of settings takes effect. */
  readonly compaction?: Effect.Effect<Compaction>
  /** The kind of OS processes owned by tasks (`makeJobKind`); without it there are none. */
  readonly job?: CustomTaskKind<JobInput>
  /** Opens a bounded file of the session for output that does not fit a result. */
  readonly artifact: (name: string) => Effect.Effect<ArtifactWriter>
  /** For `call.fs` and `call.process`; without it both fail. */
  readonly place?: TurnPlace
  readonly retry?: RetryPolicy
  readonly frames?: Frames
  /** How long a hook may take, unless it has said that it waits for a person. */
  readonly hookLimit?: Duration.Input
  readonly onReport?: (report: HarnessReport) => void
}

export const compactionOf = (options: TurnOptions): Effect.Effect<Compaction> =>
  options.compaction ?? Effect.succeed(defaultCompaction)
