export {
  type BeforeToolApi,
  type BeforeToolDecision,
  type CollapseHooks,
  type Conversation,
  type ConversationNode,
  type EntryKind,
  type ExtensionTransaction,
  type GenerationHooks,
  type Harness,
  HarnessError,
  type HarnessExtensions,
  type HarnessFailure,
  type HarnessReport,
  type HookApi,
  type HookHandlers,
  type HookKind,
  type HookOptions,
  type HookToolCall,
  type InputHandle,
  type InputOutcome,
  type JobSpec,
  type Memo,
  type Namespace,
  type NamespaceOptions,
  type NamespaceShape,
  type NewExtensionEntry,
  type PostToolsHooks,
  type RegisterHooks,
  type Registration,
  type Section,
  type SendInput,
  type SessionEvents,
  type TaskExtensions,
  type TaskOptions,
  type ToolHooks,
  type Watch
} from "./api.ts"
export { activeEntries, answerText, contextOf, deriveContext } from "./context.ts"
export type { Mutable, StickyDocument } from "./documents.ts"
export { Entry, noticeKind } from "./entry-kind.ts"
export { pluginEvent } from "./extension-transaction.ts"
export type { RegisteredHook } from "./extensions.ts"
export { type HandlersAt, type HookedKind, HookPoint, type HookPoints, type PointApi } from "./hook-point.ts"
export {
  byPhase,
  type Checkpoint,
  type Phase,
  type PhaseResult,
  type RunnableKind,
  type TaskEnd,
  type TaskRuntime
} from "./kind.ts"
export { loadTranscript } from "./load.ts"
export { memoOnce, memoRead, memosOf } from "./memo.ts"
export { rewindableAt, sequenceInLineage } from "./rewindable.ts"
export { defaultHookLimit, failureText, runHandler, withLimit } from "./run-hook.ts"
export { mainConversation, type OpenOptions, openSession, type Session } from "./session.ts"
export type { ConversationState } from "./state.ts"
export {
  type CustomTaskKind,
  type Task,
  type TaskApi,
  type TaskDone,
  TaskKind,
  type TaskKindOptions,
  type TaskStep,
  type TaskTransaction
} from "./task-kind.ts"
export type { NewEntry, Transaction } from "./transaction.ts"
export * from "./view.ts"
