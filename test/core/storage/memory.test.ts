import { MemorySession } from "@bezel/core/storage"
import { Effect } from "effect"
import { storageConformance } from "./conformance.ts"

storageConformance(
  "memory storage",
  Effect.sync(() => {
    const session = new MemorySession()
    return { write: Effect.sync(() => session.storage()), read: Effect.sync(() => session.storage()) }
  })
)
