/** A host in a worker thread, for the tests of its transport. */
import { portTransport } from "@bezel/core/rpc"
import { MutableRemoteState, RemoteService } from "@bezel/core/service"
import { Effect, Schema } from "effect"
import { parentPort } from "node:worker_threads"
import { makeServiceHost } from "../../../packages/core/src/testing/service.ts"

class Echo extends RemoteService.make("test.echo")({
  state: { text: Schema.Struct({ text: Schema.String }) },
  methods: { echo: { payload: Schema.String, success: Schema.String } }
}) {}

const port = parentPort
if (port === null) throw new Error("this module runs in a worker thread")

Effect.runFork(Effect.scoped(Effect.gen(function*() {
  const host = yield* makeServiceHost()
  const text = yield* MutableRemoteState.make(Echo.contract.state.text, { text: "" })
  yield* host.directory.provide(Echo, { text, echo: (value) => Effect.succeed(value) })
  yield* host.endpoint.serve(portTransport(port))
})))
