/**
 * Calls whose arguments could not be read.
 *
 * They stay in the stream as calls with `params: {}` and say so in their metadata, so that a session can store what happened
 * and send the model a well-formed call with an error result. They are never run.
 */
import type * as Response from "effect/ai/Response"
import type { JsonObject } from "../json/index.ts"
import type { MalformedCall } from "./model.ts"

/** Why this call's arguments could not be read, or `null` for a call that may be run. */
export const malformedCall = (
  part: { readonly metadata?: Response.ProviderMetadata | undefined }
): MalformedCall | null => {
  const bezel = part.metadata?.["bezel"]
  if (!isObject(bezel)) return null
  const malformed = bezel["malformed"]
  if (!isObject(malformed)) return null
  const { error, text } = malformed
  return typeof error === "string" && typeof text === "string" ? { error, text } : null
}

/** The metadata that marks a call as malformed. */
export const malformedMetadata = (malformed: MalformedCall): { readonly bezel: JsonObject } => ({
  bezel: { malformed: { error: malformed.error, text: malformed.text } }
})

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)
