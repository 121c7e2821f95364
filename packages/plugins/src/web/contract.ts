/** Fetching from the web as others see it: what is left in a result's `details`, and what the plugin is told. */
import * as Schema from "effect/Schema"

export type WebFetchDetails = typeof WebFetchDetails.Type
export const WebFetchDetails = Schema.Struct({
  /** The address that answered, after redirects. */
  url: Schema.String,
  status: Schema.Int,
  /** Media type, as the server says; empty if it does not. */
  contentType: Schema.String,
  /** Bytes that were read of the body. */
  bytes: Schema.Int,
  /** Whether the body went on beyond the bound. */
  cut: Schema.Boolean
})

/** Options of the plugin in the manifest. */
export type WebOptions = typeof WebOptions.Type
export const WebOptions = Schema.Struct({
  /** Addresses of this machine and of private networks may be fetched from too; default: they may not. */
  allowPrivate: Schema.optionalKey(Schema.Boolean)
})
