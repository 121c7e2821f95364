/**
 * Sections of `bezel.jsonc` whose feature is not here yet, or that several features read. Each is strict, so that a slip of
 * the pen is told today and not on the day when somebody uses it.
 */
import type { JsonObject, JsonValue } from "@bezel/core/json"
import { mergeJson, SettingsKey } from "@bezel/core/settings"
import * as ByteSize from "effect/ByteSize"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { mergeTools } from "../agents/contract.ts"
import { mergePermissions, PermissionRules } from "../permissions/contract.ts"

/** A size of at least 0 bytes as people write it, `"64KiB"` or a plain number. Decodes to bytes. */
export const Bytes = Schema.Union([
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(0, { message: 'Expected a size like "64KiB"' })),
  Schema.String.check(
    Schema.makeFilter((text: string) => Option.isSome(bytesOf(text)), { message: 'Expected a size like "64KiB"' })
  ).pipe(Schema.decodeTo(
    Schema.Int,
    SchemaTransformation.transform({
      decode: (text) => Option.getOrElse(bytesOf(text), () => 0),
      encode: (bytes) => `${bytes} B`
    })
  ))
])

const bytesOf = (text: string): Option.Option<number> =>
  Option.flatMap(
    ByteSize.fromString(text.replace(/^\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*$/, "$1 $2").trim()),
    ByteSize.toNumber
  )

const count = (what: string) =>
  Schema.Int.check(Schema.isGreaterThan(0, { message: `Expected a number of ${what} above 0` }))

// -------------------------------------------------------------------------------------------------------------- agents

export const AgentSettings = Schema.Struct({
  description: Schema.optionalKey(Schema.String).annotateKey({ description: "When to use it; the model reads this." }),
  prompt: Schema.optionalKey(Schema.String).annotateKey({
    description: "Added to the system prompt of its conversations."
  }),
  tools: Schema.optionalKey(Schema.Record(Schema.String, Schema.Boolean)).annotateKey({
    description: "Tools by name: false hides one, true offers it. Unnamed ones are offered."
  }),
  model: Schema.optionalKey(Schema.String).annotateKey({
    description: "provider/model; default: the model of who asks."
  }),
  thinking: Schema.optionalKey(Schema.Literals(["off", "low", "medium", "high"])).annotateKey({
    description: "How much its model thinks before it answers; default: as the session."
  }),
  permissions: Schema.optionalKey(PermissionRules).annotateKey({
    description: "Beside the rules of the session; a deny of either holds."
  })
})
export type AgentSettings = typeof AgentSettings.Type

/** As everywhere, later files win, except that what takes something away from an agent stays. */
const mergeAgents = (earlier: JsonValue, later: JsonValue): JsonValue => {
  const merged = mergeJson(earlier, later)
  if (!isObject(earlier) || !isObject(later) || !isObject(merged)) return merged
  return Object.fromEntries(
    Object.entries(merged).map(([name, agent]) => {
      const before = Object.hasOwn(earlier, name) ? earlier[name] : undefined
      const after = Object.hasOwn(later, name) ? later[name] : undefined
      if (!isObject(before) || !isObject(after) || !isObject(agent)) return [name, agent]
      return [name, {
        ...agent,
        ...(before.permissions === undefined || after.permissions === undefined
          ? {}
          : { permissions: mergePermissions(before.permissions, after.permissions) }),
        ...(isChoice(before.tools) && isChoice(after.tools) ? { tools: mergeTools(before.tools, after.tools) } : {})
      }]
    })
  )
}

/** What is no choice of tools is told when the merged settings are read. */
const isChoice = (value: JsonValue | undefined): value is { readonly [tool: string]: boolean } =>
  isObject(value) && Object.values(value).every((offered) => typeof offered === "boolean")

export const AgentsSetting: SettingsKey<{ readonly [name: string]: AgentSettings }> = SettingsKey.make("agents", {
  schema: Schema.Record(Schema.String, AgentSettings),
  default: {},
  untrusted: "drop",
  merge: mergeAgents,
  description: "Agents by name: a prompt, a choice of tools and a model under one name."
})

// ------------------------------------------------------------------------------------------------------------- plugins

/** A package name or the path of a file (from the settings file), alone or with options. */
export const PluginSetting = Schema.Union([
  Schema.NonEmptyString,
  Schema.Struct({
    source: Schema.NonEmptyString.annotateKey({
      description: "A package name, or the path of a file from the settings file."
    }),
    options: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)).annotateKey({
      description: "What the plugin is told; its own documentation says what it takes."
    }),
    grants: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)).annotateKey({
      description: "Powers that a plugin has only where they are granted; the host says which there are."
    }),
    enabled: Schema.optionalKey(Schema.Boolean).annotateKey({
      description: "false: it stays in the list and is not loaded."
    })
  })
])
export type PluginSetting = typeof PluginSetting.Type

/** A file is named from the settings file that names it. */
const relocated = (entry: JsonValue, absolute: (path: string) => string): JsonValue => {
  if (typeof entry === "string") return /^\.\.?\//.test(entry) ? absolute(entry) : entry
  return isObject(entry) && typeof entry.source === "string"
    ? { ...entry, source: relocated(entry.source, absolute) }
    : entry
}

export const PluginsSetting: SettingsKey<ReadonlyArray<PluginSetting>> = SettingsKey.make("plugins", {
  schema: Schema.Array(PluginSetting),
  default: [],
  untrusted: "drop",
  relocate: (value, absolute) => Array.isArray(value) ? value.map((entry) => relocated(entry, absolute)) : value,
  // A project adds to what the user has; replacing would silently take the user's plugins away.
  merge: (earlier, later) => Array.isArray(earlier) && Array.isArray(later) ? [...earlier, ...later] : later,
  description: "Plugins to load beside the built-in ones: package names and files."
})

// ---------------------------------------------------------------------------------------------------------- compaction

export const CompactionSettings = Schema.Struct({
  threshold: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0.1, maximum: 1 }, { message: "Expected a number from 0.1 to 1" }))
  ).annotateKey({ description: "Compact when this part of the model's context is used." }),
  keepRecent: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(0, { message: "Expected a number of tokens, at least 0" }))
  ).annotateKey({ description: "Tokens of the newest exchanges that are kept as they are." }),
  auto: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "false: only when somebody asks for it; a conversation that has become too long ends its turn with an error then."
  })
})
export type CompactionSettings = typeof CompactionSettings.Type

export const CompactionSetting: SettingsKey<CompactionSettings> = SettingsKey.make("compaction", {
  schema: CompactionSettings,
  default: {},
  untrusted: "keep",
  description: "When a long conversation is summarized, and how much of it stays word for word."
})

// ----------------------------------------------------------------------------------------------------------------- web

export const WebSettings = Schema.Struct({
  privateHosts: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)).annotateKey({
    description:
      "Hosts (with a port: only that one) that may be fetched from although they are this machine or in a private network."
  })
})
export type WebSettings = typeof WebSettings.Type

export const WebSetting: SettingsKey<WebSettings> = SettingsKey.make("web", {
  schema: WebSettings,
  default: {},
  untrusted: "drop",
  description: "What may be fetched from the web beyond the public internet."
})

// -------------------------------------------------------------------------------------------------------------- limits

export const LimitSettings = Schema.Struct({
  toolOutput: Schema.optionalKey(Bytes).annotateKey({
    description: "Bytes of one tool result that the model sees; default 64 KiB."
  }),
  toolLines: Schema.optionalKey(count("lines")).annotateKey({
    description: "Lines of one tool result that the model sees; default 2000."
  }),
  artifact: Schema.optionalKey(Bytes).annotateKey({
    description: "Bytes of a file that keeps the rest of a tool's output; default 100 MiB."
  }),
  maxSteps: Schema.optionalKey(count("steps")).annotateKey({
    description: "Requests to the model in one turn; default: no limit."
  }),
  maxCostUSD: Schema.optionalKey(
    Schema.Finite.check(Schema.isGreaterThan(0, { message: "Expected an amount of US dollars above 0" }))
  ).annotateKey({ description: "US dollars that one session may cost; default: no limit." }),
  answerSeconds: Schema.optionalKey(count("seconds")).annotateKey({
    description: "Seconds that what the agent asks (an approval, a question) waits for its answer; default: no limit."
  })
})
export type LimitSettings = typeof LimitSettings.Type

const defaultLimits: { readonly [name: string]: number } = {
  toolOutput: 64 * 1024,
  toolLines: 2000,
  artifact: 100 * 1024 * 1024
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const amount = (value: JsonValue | undefined): number | null =>
  typeof value === "number" ? value : typeof value === "string" ? Option.getOrNull(bytesOf(value)) : null

/** The limits that are lower than what holds without them. */
export const tighterLimits = (value: JsonValue, trusted: JsonValue | undefined): JsonValue | undefined => {
  if (!isObject(value)) return undefined
  const tighter = Object.entries(value).filter(([name, limit]) => {
    const now = amount(isObject(trusted) ? trusted[name] : undefined) ?? defaultLimits[name] ?? Infinity
    const wanted = amount(limit)
    return wanted !== null && wanted < now
  })
  return tighter.length === 0 ? undefined : Object.fromEntries(tighter)
}

export const LimitsSetting: SettingsKey<LimitSettings> = SettingsKey.make("limits", {
  schema: LimitSettings,
  default: {},
  untrusted: tighterLimits,
  description: "How much a tool result, a turn and a session may take."
})

/** How long what the agent asks waits for its answer, as the broker takes it. */
export const answerLimit = ({ answerSeconds }: LimitSettings): { readonly timeLimit?: Duration.Duration } =>
  answerSeconds === undefined ? {} : { timeLimit: Duration.seconds(answerSeconds) }

// ------------------------------------------------------------------------------------------------------------ sessions

export const SessionSettings = Schema.Struct({
  durability: Schema.optionalKey(Schema.Literals(["process", "power"])).annotateKey({
    description: "What a commit survives: the death of the process (default), or also that of the machine."
  }),
  format: Schema.optionalKey(Schema.Literals(["sqlite", "jsonl"])).annotateKey({
    description:
      "How new sessions are kept: one SQLite file (default), or a folder of JSON lines. Existing ones stay as they are."
  }),
  keepDays: Schema.optionalKey(count("days")).annotateKey({
    description:
      "Sessions in which nothing has happened for so many days are deleted, with all that belongs to them; default: never."
  })
})
export type SessionSettings = typeof SessionSettings.Type

export const SessionsSetting: SettingsKey<SessionSettings> = SettingsKey.make("sessions", {
  schema: SessionSettings,
  default: {},
  untrusted: "drop",
  description: "How sessions are kept. Only the user's file counts: sessions of all places are kept alike."
})

// ----------------------------------------------------------------------------------------------------------- telemetry

const OtlpAddress = Schema.String.check(
  Schema.makeFilter((text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    message: "Expected an http or https address, like http://127.0.0.1:4318"
  })
)

export const TelemetrySettings = Schema.Struct({
  otlp: Schema.optionalKey(Schema.Struct({
    endpoint: OtlpAddress.annotateKey({ description: "Its address, like http://127.0.0.1:4318." }),
    headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.RedactedFromValue(Schema.String))).annotateKey({
      description: "Headers of each request, like the token that it wants."
    })
  })).annotateKey({
    description: "A collector of traces: spans go to /v1/traces below its address, over HTTP as JSON."
  })
})
export type TelemetrySettings = typeof TelemetrySettings.Type

export const TelemetrySetting: SettingsKey<TelemetrySettings> = SettingsKey.make("telemetry", {
  schema: TelemetrySettings,
  default: {},
  untrusted: "drop",
  description:
    "Where traces of what the program does are sent; without it, nothing is sent anywhere. Only the user's file counts."
})

// --------------------------------------------------------------------------------------------------------- presentation

export const ThemeSetting: SettingsKey<string> = SettingsKey.make("theme", {
  schema: Schema.NonEmptyString,
  default: "dark",
  untrusted: "keep",
  description: "Name of the theme."
})

/** Which of the terminal's two screens is used. */
export const ScreenSetting: SettingsKey<"inline" | "full"> = SettingsKey.make("screen", {
  schema: Schema.Literals(["inline", "full"]),
  default: "inline",
  untrusted: "drop",
  description:
    "Where the terminal shows a session: inline, so that it scrolls away into the terminal's own history, or on the full screen."
})

/** Whether a terminal is asked for its mouse. */
export const MouseSetting: SettingsKey<boolean> = SettingsKey.make("mouse", {
  schema: Schema.Boolean,
  default: false,
  untrusted: "drop",
  description: "On the full screen: the wheel scrolls, and most terminals then select text with shift held only."
})

/** Commands by chord, `"ctrl+t": "thinking.cycle"`; `null` takes a chord's command away. */
export const KeybindingsSetting: SettingsKey<{ readonly [chord: string]: string | null }> = SettingsKey.make(
  "keybindings",
  {
    schema: Schema.Record(Schema.NonEmptyString, Schema.NullOr(Schema.NonEmptyString)),
    default: {},
    untrusted: "keep",
    description: "Commands by key chord; null takes a chord's command away."
  }
)
