/**
 * Mentions as others see them: files that a prompt names with `@`, attached to it, and what such a name may become.
 */
import type { FilePart } from "@bezel/core/model"
import { LocalService, RemoteService } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A prompt, and the conversation whose grants count beside the rules; without one, the rules of the location alone. */
export type MentionRequest = typeof MentionRequest.Type
export const MentionRequest = Schema.Struct({
  text: Schema.String,
  conversation: Schema.NullOr(Schema.Struct({ sessionID: Schema.String, conversationID: Schema.String }))
})

/** A file as a message carries it: Base64 text. */
const AttachedFile = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optionalKey(Schema.String),
  data: Schema.String
})

/** What is attached, in the order of the text, and what is not although it is there, one sentence each. */
export interface MentionedFiles {
  readonly files: ReadonlyArray<FilePart>
  readonly notices: ReadonlyArray<string>
}

export interface MentionsShape {
  /** Never fails: a name that is no file is part of the text. */
  readonly resolve: (request: MentionRequest) => Effect.Effect<MentionedFiles>
}

export const Mentions: LocalService<MentionsShape> = LocalService.make("bezel.mentions.local")

/** The same for clients, and the completion of a name. */
export class MentionService extends RemoteService.make("bezel.mentions")({
  methods: {
    resolve: {
      payload: MentionRequest,
      success: Schema.Struct({ files: Schema.Array(AttachedFile), notices: Schema.Array(Schema.String) })
    },
    /** Paths from the location that fit what is typed, best first; folders end in a slash. At most `limit`, default 20. */
    complete: {
      payload: Schema.Struct({ word: Schema.String, limit: Schema.optionalKey(Schema.Int) }),
      success: Schema.Array(Schema.String)
    }
  }
}) {}
