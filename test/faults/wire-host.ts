/** A host in a process of its own, to be killed: `node wire-host.ts SOCKET`. Writes without pause once somebody is there. */
import { listenUnix } from "@bezel/core/rpc"
import { Console, Effect } from "effect"
import { makeServiceHost } from "../../packages/core/src/testing/service.ts"
import { provideLedger } from "./wire-ledger.ts"

const path = process.argv[2]
if (path === undefined) throw new Error("usage: node wire-host.ts SOCKET")

Effect.runFork(Effect.scoped(Effect.gen(function*() {
  const host = yield* makeServiceHost()
  const ledger = yield* provideLedger(host.directory)
  yield* listenUnix({ path, serve: host.endpoint.serve })
  yield* Console.log("ready")
  for (let turn = 0;; turn++) {
    yield* ledger.append(`${turn},`)
    yield* turn % 20 === 0 ? Effect.sleep(1) : Effect.yieldNow
  }
})))
