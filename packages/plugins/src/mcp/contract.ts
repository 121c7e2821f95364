/**
 * Servers of the Model Context Protocol as others see them: the setting, how each of them is, and what a person may do about
 * it. Nothing of a server's environment or headers is in here.
 */
import { LocalService, RemoteService } from "@bezel/core/service"
import { SettingsKey } from "@bezel/core/settings"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const seconds = Schema.Finite.check(
  Schema.isGreaterThan(0, { message: "Expected a number of seconds above 0" }),
  Schema.isLessThanOrEqualTo(86_400, { message: "Expected at most 86400 seconds" })
)

const webAddress = Schema.String.check(
  Schema.makeFilter((text: string) => /^https?:\/\//i.test(text) && URL.canParse(text), {
    message: 'Expected an address that begins with "http://" or "https://"'
  })
)

/** What both kinds of servers have. */
const common = {
  enabled: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "false: it stays in the list and is not started; default: it is."
  }),
  timeout: Schema.optionalKey(seconds).annotateKey({
    description: "Seconds that a call may go on without an answer or a sign of progress; default 120."
  })
}

const secrets = Schema.Record(Schema.String, Schema.RedactedFromValue(Schema.String))

/** What a sign-in needs that the server does not say by itself. */
export const McpOAuth = Schema.Struct({
  clientID: Schema.optionalKey(Schema.NonEmptyString).annotateKey({
    description: "Of a client that was registered by hand."
  }),
  // On the text: what is beside a redacted value is not in the schema of the file.
  clientSecret: Schema.optionalKey(Schema.RedactedFromValue(Schema.NonEmptyString.annotate({
    description: "The secret of such a client, if it has one."
  }))),
  scopes: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)).annotateKey({
    description: "What is asked for; default: what the server says."
  }),
  port: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65535 }))).annotateKey({
    description: "Port on this machine that the browser comes back to; default: any free one."
  }),
  redirectURL: Schema.optionalKey(webAddress).annotateKey({
    description: "Where the browser goes instead; the code is then pasted."
  })
})

/** An address of streamable HTTP. */
export const McpAddress = Schema.Struct({
  url: webAddress.annotateKey({ description: "Where the server is, over streamable HTTP." }),
  headers: Schema.optionalKey(secrets).annotateKey({
    description: "Headers of each request. {env:NAME} takes a value from the environment, {file:PATH} from a file."
  }),
  oauth: Schema.optionalKey(McpOAuth).annotateKey({
    description: "What a sign-in needs that the server does not say by itself."
  }),
  ...common
})
export type McpAddress = typeof McpAddress.Type

const program = Schema.String.check(
  Schema.makeFilter((text: string) => text.trim() !== "", {
    message: "Expected the name or the path of a program as the first item"
  })
)

/** One server: a program to start, which speaks on its standard streams, or an address. */
export const McpServer = Schema.Union([
  Schema.Struct({
    command: Schema.TupleWithRest(Schema.Tuple([program]), [Schema.String]).annotateKey({
      description: "Program and arguments."
    }),
    env: Schema.optionalKey(secrets).annotateKey({ description: "Beside the few variables that it gets anyway." }),
    cwd: Schema.optionalKey(Schema.String).annotateKey({
      description: "Folder that it starts in, from the location; default: the location."
    }),
    ...common
  }),
  McpAddress
])
export type McpServer = typeof McpServer.Type

/** `mcp` in `bezel.jsonc`. */
export const McpSetting: SettingsKey<{ readonly [name: string]: McpServer }> = SettingsKey.make("mcp", {
  schema: Schema.Record(Schema.String, McpServer),
  default: {},
  untrusted: "drop",
  description: "Servers of the Model Context Protocol by name: a command to start, or a URL."
})

/**
 * - `starting`: it has not answered yet
 * - `waiting`: it is not there, and is tried again at `retryAt`
 * - `failed`: it is not there, and is tried again when a call needs it or a person asks for it
 */
export const McpStatus = Schema.Literals(["disabled", "starting", "ready", "waiting", "failed"])
export type McpStatus = typeof McpStatus.Type

/** A text that a server offers for a person to send, with places to fill in. */
export const McpPrompt = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  arguments: Schema.Array(Schema.Struct({ name: Schema.String, required: Schema.Boolean }))
})
export type McpPrompt = typeof McpPrompt.Type

/** One server as it is now. Texts of the server in it are bounded and have no control characters. */
export const McpServerState = Schema.Struct({
  name: Schema.String,
  transport: Schema.Literals(["stdio", "http"]),
  status: McpStatus,
  /** `wanted`: it is not there before somebody signs in; `signed-in`: it has taken a token. */
  account: Schema.Literals(["none", "wanted", "signed-in"]),
  /** What the server calls itself; `null` while it never answered. */
  title: Schema.NullOr(Schema.String),
  /** Names of its tools as models are offered them; they stay while it is away. */
  tools: Schema.Array(Schema.String),
  hasResources: Schema.Boolean,
  prompts: Schema.Array(McpPrompt),
  /** Why it is not there, one sentence. */
  error: Schema.NullOr(Schema.String),
  /** Milliseconds since the epoch. */
  retryAt: Schema.NullOr(Schema.Finite),
  /** What of it is left out, one sentence each. */
  problems: Schema.Array(Schema.String)
})
export type McpServerState = typeof McpServerState.Type

/** A server could not be reached, or it refused; the message is one sentence. */
export class McpError extends Schema.TaggedError<McpError>()("McpError", { message: Schema.String }) {}

/** Base64 text of a file, as a message carries it. */
const File = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optionalKey(Schema.String),
  data: Schema.String
})

/** A prompt with its places filled in. */
export const McpFilledPrompt = Schema.Struct({ text: Schema.String, files: Schema.Array(File) })
export type McpFilledPrompt = typeof McpFilledPrompt.Type

/** The servers of a location, to be shown and looked after. */
export class McpServers extends RemoteService.make("bezel.mcp")({
  state: { servers: Schema.Array(McpServerState) },
  methods: {
    /** Ends the connection, if there is one, and makes a new one. Does not wait for it. */
    reconnect: { payload: Schema.Struct({ name: Schema.String }), error: McpError },
    /** For as long as the location is up; settings are not changed. */
    enable: { payload: Schema.Struct({ name: Schema.String, enabled: Schema.Boolean }), error: McpError },
    /** Asks the people at the session to sign in, and connects again when they have; it ends when they have, or gave up. */
    signIn: {
      payload: Schema.Struct({ name: Schema.String, sessionID: Schema.String }),
      success: Schema.Struct({ signedIn: Schema.Boolean }),
      error: McpError
    },
    /** Forgets the token that is stored for it, and connects again. */
    signOut: { payload: Schema.Struct({ name: Schema.String }), error: McpError },
    /** A prompt of a server with its places filled in. */
    prompt: {
      payload: Schema.Struct({
        name: Schema.String,
        prompt: Schema.String,
        arguments: Schema.Record(Schema.String, Schema.String)
      }),
      success: McpFilledPrompt,
      error: McpError
    }
  }
}) {}

export interface McpConnectionsShape {
  readonly list: Effect.Effect<ReadonlyArray<McpServerState>>
  /** The prompt that is called so, `server:prompt`, with these words in its places; `null` if there is none. */
  readonly prompt: (name: string, words: string) => Effect.Effect<McpFilledPrompt | null, McpError>
  /** Completes when each server has been tried once, and what those that are there offer is offered. */
  readonly settled: Effect.Effect<void>
}

/** The same for the process that the servers are connected to. */
export const McpConnections: LocalService<McpConnectionsShape> = LocalService.make("bezel.mcp.connections")

/** Options of the plugin in the manifest. */
export type McpOptions = typeof McpOptions.Type
export const McpOptions = Schema.Struct({
  /** Of this program, for servers that want to know. */
  version: Schema.optionalKey(Schema.String)
})
