export { entryKinds, taskKinds } from "./kinds.ts"
export { openHarness } from "./open.ts"
export { anyAgent, defaultRetry, type OfferedAgent, type RetryPolicy, type TurnOptions } from "./options.ts"
