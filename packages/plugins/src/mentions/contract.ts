/** Mentions as clients see them: what a name behind an `@` may become. */
import { RemoteService } from "@bezel/core/service"
import * as Schema from "effect/Schema"

/** For clients: the completion of a name. What a prompt mentions is attached where the session is, whoever sends it. */
export class MentionService extends RemoteService.make("bezel.mentions")({
  methods: {
    /** Paths from the location that fit what is typed, best first; folders end in a slash. At most `limit`, default 20. */
    complete: {
      payload: Schema.Struct({ word: Schema.String, limit: Schema.optionalKey(Schema.Int) }),
      success: Schema.Array(Schema.String)
    }
  }
}) {}
