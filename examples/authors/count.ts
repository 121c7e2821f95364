/** Work that a client starts and may leave: a service whose method returns a job, with progress, a wait and an end. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { RemoteReference, RemoteService } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"

const Progress = Schema.Struct({ files: Schema.Finite, lines: Schema.Finite })

/** The job itself. Waiting for it and ending it are different calls. */
export class CountJob extends RemoteService.make("example.count-job")({
  state: { progress: Progress },
  methods: { wait: { success: Progress }, cancel: {} }
}) {}

export class Count extends RemoteService.make("example.count")({
  methods: { start: { payload: Schema.Struct({ folder: Schema.String }), success: RemoteReference.of(CountJob) } }
}) {}

const session = Effect.fn("count/session")(function*(ctx: SessionContext) {
  const start = Effect.fnUntraced(function*(folder: string) {
    const files = yield* ctx.filesystem
    const progress = yield* ctx.state(Progress, { files: 0, lines: 0 })
    const work = Effect.gen(function*() {
      for (const { name, type } of yield* files.readDirectoryEntries(folder)) {
        if (type !== "File") continue
        const text = yield* files.readFileString(`${folder}/${name}`)
        const { files: before, lines } = progress.value
        yield* progress.set({ files: before + 1, lines: lines + text.split("\n").length - 1 })
      }
    })
    // Of the plugin, not of the call: who has started it may go away.
    const fiber = yield* ctx.own(Effect.forkScoped(work))
    const job = yield* RemoteReference.make(CountJob, {
      progress,
      wait: () => Effect.map(Effect.orDie(Fiber.join(fiber)), () => progress.value),
      cancel: () => Fiber.interrupt(fiber)
    }, { grace: "1 minute" })
    yield* ctx.own(Effect.forkScoped(Effect.andThen(Fiber.await(fiber), RemoteReference.complete(job))))
    return job
  })
  yield* ctx.provide(Count, { start: ({ folder }) => start(folder) })
})

export default Plugin.define({ id: "example.count", version: "1.0.0", session })
