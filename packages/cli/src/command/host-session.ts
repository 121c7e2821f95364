/**
 * `bezel host-session`: the process of a session host, as a coordinator starts it. It is in no help text: without an order
 * on the descriptor that it inherits it does nothing.
 */
import { openLifeline, serveSessionHost } from "@bezel/server/process"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { exitCode } from "../exit.ts"
import { hostLayer } from "../host/location.ts"
import { runProcess } from "../host/process.ts"

/** What the coordinator's own command line said, in the order. */
const Options = Schema.Struct({
  /** `--set key=value`, in order. */
  set: Schema.Array(Schema.String),
  trust: Schema.Boolean,
  verbose: Schema.Boolean
})

export const hostSession = (version: string): Promise<number> =>
  runProcess(
    Effect.gen(function*() {
      const lifeline = yield* openLifeline
      const { set, trust, verbose } = yield* Schema.decodeUnknownEffect(Options)(lifeline.order.options)
      const layer = hostLayer({ environment: { version, set, verbose, color: false }, trust, plugins: {} })
      yield* Effect.provide(serveSessionHost(lifeline), layer)
      return exitCode.answered
    }).pipe(Effect.scoped)
  )
