/** Routes of the server itself. */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { apiErrors } from "./error.ts"
import { EventStreamText } from "./events.ts"
import { RequiredScope } from "./scope.ts"

export class ServerGroup extends HttpApiGroup.make("server").add(
  HttpApiEndpoint.get("health", "/health", {
    success: Schema.Struct({ status: Schema.Literal("ok"), version: Schema.String }),
    error: apiErrors
  }).annotate(RequiredScope, "none").annotateMerge(OpenApi.annotations({ summary: "Whether the server answers" })),
  HttpApiEndpoint.post("login", "/login", {
    payload: Schema.Struct({ code: Schema.NonEmptyString }),
    success: Schema.Struct({ token: Schema.String, scope: Schema.Literals(["read", "prompt", "admin"]) }),
    error: apiErrors
  }).annotate(RequiredScope, "none")
    .annotateMerge(
      OpenApi.annotations({ summary: "A token for the one-time code that `bezel serve --browser` prints" })
    ),
  HttpApiEndpoint.get("events", "/event", {
    query: {
      /** As the header `Last-Event-ID`, for clients that cannot set it. */
      after: Schema.optionalKey(Schema.String)
    },
    success: EventStreamText.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
    error: apiErrors
  }).annotateMerge(OpenApi.annotations({ summary: "Events of all sessions and their hosts" })),
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" })),
    error: apiErrors
  }).annotateMerge(OpenApi.annotations({ summary: "Measurements, in the text format of Prometheus" }))
) {}
