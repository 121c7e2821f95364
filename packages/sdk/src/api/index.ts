/** The HTTP API as one definition. Servers implement it, clients and the OpenAPI document are derived from it. */
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import { LocationGroup } from "./location.ts"
import { ServerGroup } from "./server.ts"
import { SessionGroup } from "./session.ts"

export * from "./error.ts"
export * from "./events.ts"
export * from "./location.ts"
export { type Page } from "./page.ts"
export * from "./scope.ts"
export * from "./server.ts"
export * from "./session-schemas.ts"
export * from "./session.ts"

/** Says in the definition that every route takes a bearer token; the server's guard checks it. */
export class BearerToken extends HttpApiMiddleware.Service<BearerToken>()("@bezel/sdk/BearerToken", {
  security: { bearer: HttpApiSecurity.bearer }
}) {}

export class BezelApi extends HttpApi.make("bezel")
  .add(SessionGroup)
  .add(LocationGroup)
  .add(ServerGroup)
  .annotateMerge(OpenApi.annotations({
    title: "Bezel",
    version: "1",
    description: "Drives coding-agent sessions. Every route but /health takes a bearer token."
  }))
{}
