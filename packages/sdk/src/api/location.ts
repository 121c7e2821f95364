/** Routes of locations: what they offer, and the files in them. Without `location`, that of the server is meant. */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { apiErrors } from "./error.ts"
import { Location, ModelRef } from "./session-schemas.ts"

const error = apiErrors
const location = Schema.optionalKey(Schema.NonEmptyString)
const query = { location }
const listOf = <S extends Schema.Top>(item: S) => Schema.Struct({ items: Schema.Array(item) })
const summary = (text: string) => OpenApi.annotations({ summary: text })

/** A tool of a location. */
export const ToolInfo = Schema.Struct({
  name: Schema.String,
  /** The plugin that it is from. */
  plugin: Schema.String,
  description: Schema.String
}).annotate({ identifier: "Tool" })

export const ModelInfo = Schema.Struct({
  ref: ModelRef,
  name: Schema.String,
  contextWindow: Schema.NullOr(Schema.Finite),
  maxOutput: Schema.NullOr(Schema.Finite),
  reasoning: Schema.Boolean,
  images: Schema.Boolean,
  ready: Schema.Boolean,
  /** Why it cannot be used. */
  reason: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Model" })

export const Offered = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  /** Where it is from: `built-in`, `settings`, or a file. */
  source: Schema.String
}).annotate({ identifier: "Offered" })

export const PluginInfo = Schema.Struct({
  id: Schema.String,
  version: Schema.NullOr(Schema.String),
  state: Schema.String,
  error: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Plugin" })

/** A file as text, or as base64 where it is no UTF-8. */
export const FileContent = Schema.Struct({
  /** From the location. */
  path: Schema.String,
  /** Bytes of the file. */
  size: Schema.Finite,
  encoding: Schema.Literals(["utf8", "base64"]),
  content: Schema.String,
  /** Only the beginning is here. */
  truncated: Schema.Boolean
}).annotate({ identifier: "File" })

export class LocationGroup extends HttpApiGroup.make("location").add(
  HttpApiEndpoint.get("get", "/location", {
    query: { directory: location },
    success: Schema.Struct({ location: Location, sessions: Schema.Finite }),
    error
  }).annotateMerge(summary("A location, and whether sessions belong to it")),
  HttpApiEndpoint.get("tools", "/tool", { query, success: listOf(ToolInfo), error })
    .annotateMerge(summary("Tools that the location offers")),
  HttpApiEndpoint.get("models", "/model", { query, success: listOf(ModelInfo), error })
    .annotateMerge(summary("Models, and whether they can be used")),
  HttpApiEndpoint.get("agents", "/agent", { query, success: listOf(Offered), error }).annotateMerge(summary("Agents")),
  HttpApiEndpoint.get("commands", "/command", { query, success: listOf(Offered), error })
    .annotateMerge(summary("Commands")),
  HttpApiEndpoint.get("skills", "/skill", { query, success: listOf(Offered), error }).annotateMerge(summary("Skills")),
  HttpApiEndpoint.get("plugins", "/plugin", { query, success: listOf(PluginInfo), error })
    .annotateMerge(summary("Plugins of the location and their state")),
  HttpApiEndpoint.get("file", "/file", {
    query: { location, path: Schema.NonEmptyString },
    success: FileContent,
    error
  }).annotateMerge(summary("A file inside the location; at most 1 MiB of it")),
  HttpApiEndpoint.get("findFiles", "/file/search", {
    query: {
      location,
      query: Schema.NonEmptyString,
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 })))
    },
    success: Schema.Struct({ items: Schema.Array(Schema.Struct({ path: Schema.String })), truncated: Schema.Boolean }),
    error
  }).annotateMerge(summary("Files of the location whose path contains the query"))
) {}
