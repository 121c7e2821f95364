/** A provider of the ledger. */
import { MutableRemoteState, type ServiceDirectory } from "@bezel/core/service"
import { Effect } from "effect"
import { Ledger } from "./wire-contract.ts"

export const provideLedger = (directory: ServiceDirectory["Service"]) =>
  Effect.gen(function*() {
    const ledger = yield* MutableRemoteState.make(Ledger.contract.state.ledger, { entries: [], text: "" })
    let interrupted = 0
    yield* directory.provide(Ledger, {
      ledger,
      add: (entry) =>
        Effect.map(
          ledger.update((draft) => {
            draft.entries.push(entry)
          }),
          () => ledger.value.entries.length
        ),
      wait: () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted++
          })),
      read: () => Effect.sync(() => ledger.value)
    })
    return {
      ledger,
      interrupted: () => interrupted,
      append: (text: string) =>
        ledger.update((draft) => {
          draft.text += text
        })
    }
  })
