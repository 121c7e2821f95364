/**
 * A host's services and clients of them over loopback, for tests: what a plugin provides on one side, a facade on the
 * other, with the real boundary in between.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Connection, connectUnix, Endpoint, listenUnix, loopback } from "../rpc/index.ts"
import type { ConnectionOptions, ConnectionShape, EndpointOptions, EndpointShape, FrameOptions } from "../rpc/index.ts"
import { InteractionBroker, ServiceDirectory } from "../service/index.ts"
import type { InteractionBrokerShape, ServiceDirectoryShape } from "../service/index.ts"

export interface ServiceHost {
  readonly directory: ServiceDirectoryShape
  readonly broker: InteractionBrokerShape
  readonly endpoint: EndpointShape
  /** A new client. It lives as long as the scope. */
  readonly connect: (
    options?: Partial<ConnectionOptions>
  ) => Effect.Effect<ConnectionShape, never, Scope.Scope>
}

/**
 * Makes an endpoint reachable over a real unix socket for the length of the scope, and gives the way to it, for
 * `ConnectionOptions.connect`: the same test runs over a socket and over {@link loopback}.
 */
export const unixSocketTo = (
  endpoint: EndpointShape,
  options: FrameOptions = {}
): Effect.Effect<ReturnType<typeof connectUnix>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "bezel-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const path = join(folder, "host.sock")
    yield* Effect.orDie(listenUnix({ ...options, path, serve: endpoint.serve }))
    return connectUnix(path, options)
  })

/** Every session may be attached to, unless `attach` says otherwise. */
export const makeServiceHost = (options: EndpointOptions = {}): Effect.Effect<ServiceHost> =>
  Effect.gen(function*() {
    const directory = yield* ServiceDirectory.make
    const broker = yield* InteractionBroker.make
    const endpoint = yield* Endpoint.make({ attach: () => Effect.void, ...options }).pipe(
      Effect.provideService(ServiceDirectory, directory),
      Effect.provideService(InteractionBroker, broker)
    )
    return {
      directory,
      broker,
      endpoint,
      connect: (overrides) => Connection.make({ connect: loopback(endpoint), label: "test", ...overrides })
    }
  })
