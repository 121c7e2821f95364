/** How state reaches many clients: updates per second, and the bytes that a streamed text costs. */
import { append } from "@bezel/core/json"
import { connectUnix, listenUnix, type Transport } from "@bezel/core/rpc"
import { Connection } from "@bezel/core/rpc"
import { MutableRemoteState } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { join } from "node:path"
import { Document, makeEndpoint } from "./services-bezel.ts"

/** Counts what arrives. */
const counted = (transport: Transport, count: { bytes: number }): Transport => ({
  ...transport,
  run: (onFrame) =>
    transport.run((frame) => {
      count.bytes += frame.length + 1
      return onFrame(frame)
    })
})

const withClients = <A>(
  path: string,
  clients: number,
  use: (
    document: MutableRemoteState<typeof Document.contract.state.document.Type>,
    replicas: ReadonlyArray<{ readonly value: { readonly revision: number; readonly text: string } | undefined }>,
    counts: ReadonlyArray<{ bytes: number }>,
    reached: (done: (value: { readonly revision: number; readonly text: string }) => boolean) => Effect.Effect<void>
  ) => Effect.Effect<A>
): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const { directory, endpoint } = yield* makeEndpoint
    const document = yield* MutableRemoteState.make(Document.contract.state.document, { revision: 0, text: "" })
    yield* directory.provide(Document, { document })
    yield* listenUnix({ path, serve: endpoint.serve })
    const counts = Array.from({ length: clients }, () => ({ bytes: 0 }))
    const facades = yield* Effect.forEach(counts, (count) =>
      Effect.flatMap(
        Connection.make({ connect: Effect.map(connectUnix(path), (end) => counted(end, count)), label: "bench" }),
        (connection) => connection.use(Document)
      ))
    yield* Effect.forEach(facades, (facade) => facade.ready, { concurrency: "unbounded" })
    for (const count of counts) count.bytes = 0
    return yield* use(document, facades.map((facade) => facade.document), counts, (done) =>
      Effect.forEach(
        facades,
        (facade) => Stream.runDrain(Stream.takeUntil(facade.document.changes, done)),
        { concurrency: "unbounded", discard: true }
      ))
  })))

/** Host and clients share this process, so this is a lower bound. */
export async function measureState(folder: string) {
  const results: { [clients: string]: { readonly updatesPerSecond: number; readonly deliveriesPerSecond: number } } = {}
  for (const clients of [1, 10, 100]) {
    const updates = clients === 100 ? 2_000 : 10_000
    const wall = await withClients(
      join(folder, `state-${clients}.sock`),
      clients,
      (document, _, __, reached) =>
        Effect.gen(function*() {
          const start = performance.now()
          const all = yield* Effect.forkChild(reached((value) => value.revision === updates))
          for (let update = 0; update < updates; update++) {
            yield* document.update((draft) => {
              draft.revision++
            })
            // As a host that does something else between updates.
            if (update % 10 === 9) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          }
          yield* Fiber.join(all)
          return performance.now() - start
        })
    )
    results[`${clients} clients`] = {
      updatesPerSecond: updates / wall * 1_000,
      deliveriesPerSecond: updates * clients / wall * 1_000
    }
  }
  return results
}

/** One text of 1 MB in appends of 20 characters, as fast as the host can write. */
export async function measureStream(folder: string) {
  const text = 1_000_000
  const piece = "twenty characters.. "
  return withClients(join(folder, "stream.sock"), 100, (document, _, counts, reached) =>
    Effect.gen(function*() {
      const before = process.memoryUsage().rss
      let peak = before
      const start = performance.now()
      const all = yield* Effect.forkChild(reached((value) => value.text.length === text))
      for (let written = 0; written < text; written += piece.length) {
        yield* document.update((draft) => {
          append(draft, "text", piece)
        })
        if (written % 2_000 === 0) {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          peak = Math.max(peak, process.memoryUsage().rss)
        }
      }
      yield* Fiber.join(all)
      const wall = performance.now() - start
      const bytes = counts.reduce((sum, count) => sum + count.bytes, 0) / counts.length
      return {
        milliseconds: wall,
        bytesPerClient: bytes,
        perTextByte: bytes / text,
        memoryGrowthMiB: (peak - before) / 1_048_576
      }
    }))
}
