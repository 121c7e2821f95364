/** The HTTP API as one definition. Servers implement it, clients and the OpenAPI document are derived from it. */
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { LocationGroup } from "./location.ts"
import { ServerGroup } from "./server.ts"
import { SessionGroup } from "./session.ts"

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
