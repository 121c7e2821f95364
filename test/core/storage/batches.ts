/** Batches and records for tests of storage: what is not given is empty. */
import type { Batch, EntryRecord, InputRecord, TaskRecord } from "@bezel/core/storage"

export const batch = (parts: Partial<Batch>): Batch => ({
  conversations: [],
  entries: [],
  tasks: [],
  inputs: [],
  documents: [],
  events: [],
  nextID: 1,
  at: 0,
  ...parts
})

export const entry = (ordinal: number, parts: Partial<EntryRecord> = {}): EntryRecord => ({
  id: `e${ordinal}`,
  ordinal,
  conversation: "c1",
  kind: "user",
  data: null,
  model: null,
  head: null,
  edits: null,
  createdAt: 1_000,
  ...parts
})

export const task = (ordinal: number, parts: Partial<TaskRecord> = {}): TaskRecord => ({
  id: `t${ordinal}`,
  ordinal,
  conversation: "c1",
  kind: "tool",
  status: "pending",
  input: null,
  checkpoint: null,
  after: [],
  background: false,
  abort: null,
  result: null,
  failure: null,
  createdAt: 1_000,
  ...parts
})

export const input = (ordinal: number, parts: Partial<InputRecord> = {}): InputRecord => ({
  id: `i${ordinal}`,
  ordinal,
  conversation: "c1",
  requestID: null,
  status: "queued",
  whenBusy: "followUp",
  content: [],
  answer: null,
  reason: null,
  createdAt: 1_000,
  ...parts
})
