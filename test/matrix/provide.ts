/** An implementation of the matrix' main contract, and what its tests steer it with. */
import {
  ClientIdentity,
  MutableRemoteEvents,
  MutableRemoteState,
  type ServiceDirectoryShape
} from "@bezel/core/service"
import { Deferred, Effect } from "effect"
import { Changed, Models, ModelsState, Unknown } from "./contract.ts"

export const provideModels = (
  directory: ServiceDirectoryShape,
  placement: { readonly session?: string; readonly owner?: string; readonly first?: string } = {}
) =>
  Effect.gen(function*() {
    const state = yield* MutableRemoteState.make(ModelsState, {
      current: placement.first ?? null,
      revision: 0,
      list: [{ id: "a", note: "" }, { id: "b", note: "" }]
    })
    const changed = yield* MutableRemoteEvents.make(Changed)
    const entered = yield* Deferred.make<void>()
    let waiting = 0
    let interrupted = 0
    const first = placement.first ?? "nobody"
    const instance = yield* directory.provide(
      Models,
      {
        state,
        changed,
        select: ({ model }) =>
          state.value.list.some((one) => one.id === model)
            ? state.update((draft) => {
              draft.current = model
              draft.revision++
            }).pipe(
              Effect.andThen(changed.emit({ type: "changed", model })),
              Effect.withSpan("models.select")
            )
            : Effect.fail(new Unknown({ model })),
        count: () => Effect.sync(() => state.value.list.length),
        at: (date) => Effect.succeed(new Date(date.getTime() + 1_000)),
        wait: () =>
          Effect.suspend(() => {
            waiting++
            return Effect.andThen(Deferred.succeed(entered, undefined), Effect.never)
          }).pipe(Effect.onInterrupt(() =>
            Effect.sync(() => {
              interrupted++
            })
          )),
        fail: () => Effect.die(new Error("stack-canary in /home/somebody")),
        // @ts-expect-error: a provider that breaks its contract at run time.
        lie: () => Effect.succeed("many"),
        who: () => Effect.map(ClientIdentity, (client) => client?.user ?? first)
      },
      {
        owner: placement.owner ?? "test.provider",
        ...(placement.session === undefined ? {} : { session: placement.session })
      }
    )
    return {
      instance,
      state,
      changed,
      entered: Deferred.await(entered),
      waiting: () => waiting,
      interrupted: () => interrupted
    }
  })
