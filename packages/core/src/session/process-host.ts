/**
 * The process host of a location: each job's files lie in the folder of the session that it belongs to, so they outlive this
 * process and go when the session is removed.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as path from "node:path"
import { Location } from "../location/index.ts"
import { SessionStorage } from "../storage/index.ts"
import { makeFileProcessHost, type ProcessHost as ProcessHostShape, ProcessHostError } from "../turn/index.ts"

export class ProcessHost extends Context.Service<ProcessHost, ProcessHostShape>()("@bezel/core/ProcessHost") {
  static readonly layer: Layer.Layer<ProcessHost, never, Location | SessionStorage> = Layer.effect(
    ProcessHost,
    Effect.gen(function*() {
      yield* Location
      const files = yield* SessionStorage
      // A job's key begins with its session; see the job kind.
      const hostOf = (key: string): Effect.Effect<ProcessHostShape, ProcessHostError> =>
        Effect.mapBoth(files.folder(key.slice(0, Math.max(0, key.indexOf(".")))), {
          onFailure: (error) => new ProcessHostError({ message: error.message }),
          onSuccess: (folder) => makeFileProcessHost(path.join(folder, "..", "jobs"))
        })
      return ProcessHost.of({
        start: (key, spec) => Effect.flatMap(hostOf(key), (host) => host.start(key, spec)),
        status: (key) => Effect.flatMap(hostOf(key), (host) => host.status(key)),
        kill: (key) => Effect.flatMap(hostOf(key), (host) => host.kill(key)),
        output: (key, maxCharacters) => Effect.flatMap(hostOf(key), (host) => host.output(key, maxCharacters))
      })
    })
  )
}
