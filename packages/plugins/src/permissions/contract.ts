/**
 * Permissions as others see them: the rules in the settings, and the question that a person is asked.
 */
import { type JsonObject, type JsonValue } from "@bezel/core/json"
import { Interaction, LocalService, RemoteService } from "@bezel/core/service"
import { SettingsKey } from "@bezel/core/settings"
import type { ToolPermission } from "@bezel/core/tool"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/** An access of a rule that no tool is known to have. */
export interface UnknownAccess {
  readonly access: string
  /** The access that was probably meant. */
  readonly meant: string | null
  /** What is wrong and what was probably meant, to stand behind a colon. */
  readonly message: string
  /** Whether no tool can have it; a plugin's tool that names its accesses itself may name any. */
  readonly certain: boolean
}

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

/** Whether a rule's access means this one: by its name, or by how its name begins, as `files_*` does. */
export const coversAccess = (ruled: string, access: string): boolean =>
  ruled === access || (ruled.length > 1 && ruled.endsWith("*") && access.startsWith(ruled.slice(0, -1)))

/** Built-in tools by the access that rules call them by, where that is no name of theirs, or that of another one. */
export const accessOfTool: { readonly [tool: string]: string } = {
  web_fetch: "web",
  job_output: "job",
  job_stop: "job",
  subagent_stop: "subagent"
}

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
  /** Who asks, where that is a sub-agent: its agent and what it was given to do. */
  subagent: Schema.optionalKey(Schema.Struct({ agent: Schema.NullOr(Schema.String), title: Schema.String })),
  /** The rules that `session` and `project` would grant; empty: only once is possible. */
  grants: Schema.Array(Schema.String)
})
export type ApprovalRequest = typeof ApprovalRequest.Type

/**
 * `session` is for the rest of this session, `project` for every session of this location from now on. `message` is told to
 * the model with a `deny`: what to do instead.
 */
export const ApprovalResponse = Schema.Struct({
  decision: Schema.Literals(["once", "session", "project", "deny"]),
  message: Schema.optionalKey(Schema.String)
})
export type ApprovalResponse = typeof ApprovalResponse.Type

/** May this call run? Everything but `deny` is a yes. */
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
  deny: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Where grants for projects are kept; default: the state folder of this user. */
  stateDirectory: Schema.optionalKey(Schema.String)
})
export type PermissionOptions = typeof PermissionOptions.Type

/** What takes permissions away from a conversation, beside the rules of its location. */
export interface Narrowing {
  /** The agent whose it is. */
  readonly name: string
  /** Here too `deny` wins; what an `allow` says only lifts an `ask` of the same rules. */
  readonly rules: PermissionRules
  /** Whatever may change files is denied, commands that are not known to only read included. */
  readonly readOnly: boolean
}

/** The gate over tools, for plugins that have a say in it. A say is only ever a restriction. */
export interface PermissionGateShape {
  /** Whether the rules deny a tool whatever it is called with. */
  readonly denies: (tool: { readonly name: string; readonly plugin: string; readonly namesAccess: boolean }) => boolean
  /** Of these accesses, those that no tool has as the tools are now. */
  readonly unknown: (accesses: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<UnknownAccess>>
  /** Asks the source before each call, until the scope ends. A source that fails blocks the call. */
  readonly narrow: (source: NarrowingSource) => Effect.Effect<void, never, Scope.Scope>
  /** Real folders outside the location that may be read without a rule, until the scope ends. A `deny` holds there too. */
  readonly readable: (folders: ReadonlyArray<string>) => Effect.Effect<void, never, Scope.Scope>
  /** What the rules and grants say of an access that is no call, such as a file that a person names. Asks nobody. */
  readonly verdict: (
    access: ToolPermission,
    conversation: { readonly sessionID: string; readonly conversationID: string } | null
  ) => Effect.Effect<Verdict>
}

export type NarrowingSource = (
  conversation: { readonly sessionID: string; readonly conversationID: string }
) => Effect.Effect<ReadonlyArray<Narrowing>, { readonly message: string }>

export const PermissionGate: LocalService<PermissionGateShape> = LocalService.make("bezel.permissions.gate")

export class ProjectGrantsError extends Schema.TaggedError<ProjectGrantsError>()("ProjectGrantsError", {
  message: Schema.String
}) {}

/** What people have allowed for this location for good, to be shown and taken back. */
export class ProjectPermissions extends RemoteService.make("bezel.permissions")({
  methods: {
    /** The rules, oldest first, and the file that keeps them. */
    list: {
      success: Schema.Struct({ rules: Schema.Array(Schema.String), file: Schema.String }),
      error: ProjectGrantsError
    },
    /** From the next call on it is asked again. A rule that is not there is no error. */
    remove: { payload: Schema.Struct({ rule: Schema.String }), error: ProjectGrantsError }
  }
}) {}
