/** An author's tests of a feature that spans hosts: a coordinator over session hosts, a recorded wire and a faulty one. */
import { Connection, Endpoint, loopback } from "@bezel/core/rpc"
import { faultyWire, recordFrames, testCoordinator, testSessionHost } from "@bezel/core/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import board, { BoardView } from "./board.ts"

/** Posts in one folder and reads in another; gives what a client there sees, and every frame that it was sent. */
export const posted = Effect.gen(function*() {
  const coordinator = yield* testCoordinator([board])
  const here = yield* testSessionHost([board], { coordinator })
  const there = yield* testSessionHost([board], { coordinator })
  const { connect, frames } = recordFrames(loopback(Context.get(there.services, Endpoint)))
  const reader = yield* (yield* Connection.make({ connect, label: "reader" })).use(BoardView)
  const writer = yield* (yield* here.connect()).use(BoardView)
  yield* writer.post({ text: "tests are red" })
  const seen = yield* reader.texts.changes.pipe(Stream.filter((texts) => texts.length > 0), Stream.runHead)
  return { seen, directory: here.location.directory, frames: frames.received.join("\n") }
})

/** The same over a wire that loses a frame: the client sees what the host has, all the same. */
export const postedOverBadWire = Effect.gen(function*() {
  const coordinator = yield* testCoordinator([board])
  const host = yield* testSessionHost([board], { coordinator })
  const way = faultyWire(loopback(Context.get(host.services, Endpoint)), [
    { kind: "drop", direction: "to-client", frame: 2 }
  ])
  const client = yield* Connection.make({ connect: way, label: "reader", check: "20 millis" })
  const reader = yield* client.use(BoardView)
  const writer = yield* (yield* host.connect()).use(BoardView)
  yield* writer.post({ text: "tests are green" })
  return yield* reader.texts.changes.pipe(Stream.filter((texts) => texts.length > 0), Stream.runHead)
})
