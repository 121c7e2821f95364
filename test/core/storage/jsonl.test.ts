import { openJsonl, openJsonlReader } from "@bezel/core/storage"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { storageConformance } from "./conformance.ts"

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-jsonl-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
)

const journal = Effect.map(temporaryFolder, (folder) => path.join(folder, "journal"))

storageConformance(
  "JSONL storage",
  Effect.map(journal, (folder) => ({ write: openJsonl(folder), read: openJsonlReader(folder) }))
)

storageConformance(
  "JSONL storage that survives power loss",
  Effect.map(journal, (folder) => ({ write: openJsonl(folder, { fsync: true }), read: openJsonlReader(folder) }))
)

storageConformance(
  "JSONL storage in many small segments",
  Effect.map(journal, (folder) => ({ write: openJsonl(folder, { segmentBytes: 300 }), read: openJsonlReader(folder) }))
)
