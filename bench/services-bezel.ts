/** Bezel's side of `bench/services.ts`: an echo, and a document that is written in small pieces. */
import { Connection, connectUnix, Endpoint, listenUnix } from "@bezel/core/rpc"
import { InteractionBroker, RemoteService, ServiceDirectory } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

export class Echo extends RemoteService.make("bench.echo")({
  methods: {
    echo: {
      payload: Schema.Struct({ text: Schema.String, number: Schema.Int }),
      success: Schema.Struct({ text: Schema.String, number: Schema.Int })
    }
  }
}) {}

export class Document extends RemoteService.make("bench.document")({
  state: { document: Schema.Struct({ revision: Schema.Int, text: Schema.String }) }
}) {}

export const makeEndpoint = Effect.gen(function*() {
  const directory = yield* ServiceDirectory.make
  const endpoint = yield* Endpoint.make().pipe(
    Effect.provideService(ServiceDirectory, directory),
    Effect.provideServiceEffect(InteractionBroker, InteractionBroker.make)
  )
  return { directory, endpoint }
})

export const serveEcho = (path: string): Promise<void> =>
  Effect.runPromise(Effect.gen(function*() {
    const scope = yield* Scope.make()
    const { directory, endpoint } = yield* makeEndpoint
    yield* Scope.provide(
      Effect.andThen(
        directory.provide(Echo, { echo: (payload) => Effect.succeed(payload) }),
        listenUnix({ path, serve: endpoint.serve })
      ),
      scope
    )
  }))

/** A connected client, and how to end it. */
export const connect = (path: string) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const connection = yield* Scope.provide(Connection.make({ connect: connectUnix(path), label: "bench" }), scope)
    yield* Stream.runHead(Stream.filter(connection.state.changes, ({ status }) => status === "connected"))
    return { connection, scope, close: Scope.close(scope, Exit.void) }
  })

/** Calls so many times, by so many at once. */
export const echoing = async (path: string) => {
  const { close, connection, scope } = await Effect.runPromise(connect(path))
  const echo = await Effect.runPromise(Scope.provide(connection.use(Echo), scope))
  const payload = { text: "hello", number: 7 }
  const run = (calls: number, atOnce: number) => {
    const each = Math.ceil(calls / atOnce)
    const one = Effect.gen(function*() {
      for (let call = 0; call < each; call++) yield* echo.echo(payload)
    })
    return Effect.runPromise(
      Effect.forEach(Array.from({ length: atOnce }), () => one, { concurrency: "unbounded", discard: true })
    )
  }
  return { run, close: () => Effect.runPromise(close) }
}
