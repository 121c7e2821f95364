/**
 * Permissions as others see them: the rules in the settings, and the question that a person is asked.
 */
import { type JsonObject, type JsonValue } from "@bezel/core/json"
import { Interaction } from "@bezel/core/service"
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"

export type Verdict = typeof Verdict.Type
export const Verdict = Schema.Literals(["allow", "ask", "deny"])

/**
 * By kind of access (`bash`, `write`, `edit`, `read`, `search`, `list`, or the name of any other tool) one verdict for all of
 * it, or verdicts by pattern. Rules for `write` hold for `edit` too; `*` is for accesses that have no rule that matches.
 */
export type PermissionRules = typeof PermissionRules.Type
export const PermissionRules = Schema.Record(
  Schema.String,
  Schema.Union([Verdict, Schema.Record(Schema.String, Verdict)])
)

const asPatterns = (section: JsonValue): JsonObject =>
  typeof section === "object" && section !== null && !Array.isArray(section) ? section as JsonObject : { "*": section }

const asObject = (value: JsonValue): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : {}

/** Later rules replace earlier ones of the same pattern, except that a `deny` stays. */
export const mergePermissions = (earlier: JsonValue, later: JsonValue): JsonValue => {
  const merged: Record<string, JsonValue> = { ...asObject(earlier) }
  for (const [access, section] of Object.entries(asObject(later))) {
    const before = asPatterns(Object.hasOwn(merged, access) ? merged[access] ?? {} : {})
    const patterns: Record<string, JsonValue> = { ...before }
    for (const [pattern, verdict] of Object.entries(asPatterns(section))) {
      if (patterns[pattern] !== "deny") patterns[pattern] = verdict
    }
    merged[access] = patterns
  }
  return merged
}

/** The rules that a project may set before anybody trusts it: those that only take away. */
export const onlyDenied = (rules: JsonValue): JsonValue | undefined => {
  const denied: Record<string, JsonValue> = {}
  for (const [access, section] of Object.entries(asObject(rules))) {
    if (typeof section === "string") {
      if (section === "deny") denied[access] = section
      continue
    }
    const patterns = Object.entries(asPatterns(section)).filter(([, verdict]) => verdict === "deny")
    if (patterns.length > 0) denied[access] = Object.fromEntries(patterns)
  }
  return Object.keys(denied).length === 0 ? undefined : denied
}

/** `permissions` in `bezel.jsonc`. */
export const PermissionsKey: SettingsKey<PermissionRules> = SettingsKey.make("permissions", {
  schema: PermissionRules,
  default: {},
  untrusted: onlyDenied,
  merge: mergePermissions,
  description:
    "What tools may do: for each kind of access allow, ask or deny, for all of it or by pattern. Deny wins, then the longest pattern."
})

/** What the person decides about. Strict JSON; shown as it is, so nothing of it may be a secret that the model does not know. */
export const ApprovalRequest = Schema.Struct({
  conversationID: Schema.String,
  taskID: Schema.String,
  callID: Schema.String,
  /** Name of the tool. */
  tool: Schema.String,
  args: Schema.Json,
  access: Schema.String,
  /** What it is about: a command line, absolute paths, a URL. */
  subjects: Schema.Array(Schema.String),
  /** Why it is asked, one sentence each. */
  reasons: Schema.Array(Schema.String),
  /** The rules that `session` would grant for the rest of this session; empty: only once is possible. */
  grants: Schema.Array(Schema.String)
})
export type ApprovalRequest = typeof ApprovalRequest.Type

/** `message` is told to the model with a `deny`: what to do instead. */
export const ApprovalResponse = Schema.Struct({
  decision: Schema.Literals(["once", "session", "deny"]),
  message: Schema.optionalKey(Schema.String)
})
export type ApprovalResponse = typeof ApprovalResponse.Type

/** May this call run? Only `once` and `session` are a yes. */
export const Approval = Interaction.make("bezel.approval")({
  request: ApprovalRequest,
  response: ApprovalResponse,
  unattended: "wait",
  confirm: (response) => response.decision !== "deny"
})

/** Options of the plugin in the manifest. */
export const PermissionOptions = Schema.Struct({
  /** Allow what would be asked, inside the location; what a rule denies stays denied, paths outside need a rule. */
  yes: Schema.optionalKey(Schema.Boolean),
  /** Rules, as in `bash(git status*)`, `write(src/**)`, `write`: see `parseRule`. */
  allow: Schema.optionalKey(Schema.Array(Schema.String)),
  deny: Schema.optionalKey(Schema.Array(Schema.String))
})
export type PermissionOptions = typeof PermissionOptions.Type
