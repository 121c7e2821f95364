/** The HTTP API of a server: its definition's handlers over a fleet, behind one guard, on a port. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AddressUnavailable } from "../serve/listen.ts"
import { type HttpServer, type HttpServerOptions, makeHttpServer } from "./http-server.ts"
import { type ApiOptions, makeApi } from "./make-api.ts"
import { makePages } from "./pages.ts"

export { defaultLimits, type HttpLimits, type HttpServer, type HttpServerOptions } from "./http-server.ts"
export { type ApiOptions, makeApi } from "./make-api.ts"
export type { OfferTool, Redeem, RunCommand } from "./parts.ts"

/** Serves the API of a fleet for the length of the scope. It answers from the moment that this completes. */
export const serveHttp = (
  options: ApiOptions & HttpServerOptions
): Effect.Effect<HttpServer, AddressUnavailable, Scope.Scope> =>
  Effect.gen(function*() {
    const { api, metrics } = yield* makeApi(options)
    return yield* makeHttpServer({ api, metrics, pages: makePages() }, options)
  })
