/** A host in a worker thread, for the tests of its transport; given a path, it listens on a socket there instead. */
import { listenUnix, portTransport } from "@bezel/core/rpc"
import { MutableRemoteState, RemoteService } from "@bezel/core/service"
import { Effect, Schema } from "effect"
import { parentPort, workerData } from "node:worker_threads"
import { makeServiceHost } from "../../../packages/core/src/testing/service.ts"

class Echo extends RemoteService.make("test.echo")({
  state: { text: Schema.Struct({ text: Schema.String }) },
  methods: { echo: { payload: Schema.String, success: Schema.String }, block: { payload: Schema.Finite } }
}) {}

const port = parentPort
if (port === null) throw new Error("this module runs in a worker thread")

Effect.runFork(Effect.scoped(Effect.gen(function*() {
  const host = yield* makeServiceHost()
  const text = yield* MutableRemoteState.make(Echo.contract.state.text, { text: "" })
  yield* host.directory.provide(Echo, {
    text,
    echo: (value) => Effect.succeed(value),
    // The whole thread stands still: nothing is read, and no timer fires.
    block: (millis) => Effect.sync(() => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis))
  })
  if (typeof workerData !== "string") return yield* host.endpoint.serve(portTransport(port))
  yield* listenUnix({ path: workerData, serve: host.endpoint.serve })
  port.postMessage("listening")
  return yield* Effect.never
})))
