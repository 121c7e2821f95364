/** What goes wrong between us and a server, as one clause that reads on behind "The MCP server x: ". */
import * as Schema from "effect/Schema"

export class McpFailure extends Schema.TaggedError<McpFailure>()("McpFailure", {
  message: Schema.String,
  /** The connection is gone; whether what was asked took effect is unknown. */
  lost: Schema.optionalKey(Schema.Boolean),
  /** Somebody has to sign in first. */
  signIn: Schema.optionalKey(Schema.Boolean)
}) {}
