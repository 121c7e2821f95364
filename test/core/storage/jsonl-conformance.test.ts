import { openJsonl, openJsonlReader } from "@bezel/core/storage"
import { Effect } from "effect"
import { storageConformance } from "./conformance.ts"
import { journalIn, sessionFolder } from "./damage.ts"

const journal = Effect.map(sessionFolder, journalIn)

storageConformance(
  "JSONL storage",
  Effect.map(journal, (folder) => ({ write: openJsonl(folder), read: openJsonlReader(folder) }))
)

storageConformance(
  "JSONL storage that survives power loss",
  Effect.map(journal, (folder) => ({ write: openJsonl(folder, { fsync: true }), read: openJsonlReader(folder) })),
  { frames: 1_000 }
)

storageConformance(
  "JSONL storage in many small segments",
  Effect.map(journal, (folder) => ({ write: openJsonl(folder, { segmentBytes: 300 }), read: openJsonlReader(folder) }))
)
