export { makeFileProcessHost } from "./file-process-host.ts"
export { JobInput, jobKindName, makeJobKind } from "./job.ts"
export { entryKinds, taskKinds } from "./kinds.ts"
export { openHarness } from "./open.ts"
export {
  anyAgent,
  type Compaction,
  defaultCompaction,
  defaultRetry,
  type OfferedAgent,
  type RetryPolicy,
  type TurnOptions,
  type TurnPlace
} from "./options.ts"
export { type ProcessHost, ProcessHostError, type ProcessSpec, type ProcessStatus } from "./process-host.ts"
