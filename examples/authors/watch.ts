/** Files that the model wants to have watched: a service with many instances, one for each. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { MutableDurableEvents, RemoteService } from "@bezel/core/service"
import { tool } from "@bezel/core/tool"
import type { TuiContext } from "@bezel/tui"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

/** One watched file. */
export class Watched extends RemoteService.make("example.watched")({
  state: { changes: Schema.Finite },
  methods: { stop: {} }
}) {}

const Change = Schema.Struct({ file: Schema.String, kind: Schema.Literals(["Create", "Update", "Remove"]) })

/** What happened to all of them. Whoever comes back names the last event that it has seen, and misses none. */
export class Watching extends RemoteService.make("example.watching")({
  events: { changed: { schema: Change, durable: true } }
}) {}

const session = Effect.fn("watch/session")(function*(ctx: SessionContext) {
  const spawn = yield* ctx.provideMany(Watched)
  const changed = yield* MutableDurableEvents.make(Change, { keep: 1_000 })

  const watch = Effect.fnUntraced(function*(file: string) {
    const files = yield* ctx.filesystem
    const changes = yield* ctx.state(Schema.Finite, 0)
    const stopped = yield* Deferred.make<void>()
    yield* spawn(file, { changes, stop: () => Effect.asVoid(Deferred.succeed(stopped, undefined)) })
    const following = Stream.runForEach(
      files.watch(file),
      ({ _tag }) => Effect.andThen(changed.emit({ file, kind: _tag }), changes.set(changes.value + 1))
    )
    yield* Effect.raceFirst(Effect.ignore(following), Deferred.await(stopped))
  }, Effect.scoped)

  const watchFile = tool({
    description: "Watches a file for changes.",
    input: Schema.Struct({ file: Schema.String }),
    // In the scope of the plugin: it outlives the call, and ends with the plugin.
    execute: ({ file }) => Effect.as(ctx.own(Effect.forkScoped(watch(file))), `${file} is watched.`)
  })
  yield* ctx.tool.transform((draft) => draft.set("watch_file", watchFile))

  yield* ctx.provide(Watching, { changed })
})

const tui = Effect.fn("watch/tui")(function*(ctx: TuiContext) {
  yield* ctx.observe(
    Watched,
    (watched, file) =>
      Stream.runForEach(
        watched.changes.changes,
        (count) => count === 0 ? Effect.void : ctx.ui.notify(`${file} has changed ${count} times`)
      )
  )
})

export default Plugin.define({ id: "example.watch", version: "1.0.0", session, tui })
