/** What a route demands of the token that is shown. */
import * as Context from "effect/Context"

/** Each includes the ones before it; `none` is for everybody who reaches the port. */
export type RequiredScope = "none" | "read" | "prompt" | "admin"

/** Annotates an endpoint; one without it takes `read`. */
export const RequiredScope = Context.Reference<RequiredScope>("@bezel/sdk/RequiredScope", {
  defaultValue: () => "read"
})
