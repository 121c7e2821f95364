/**
 * Settings of model providers: `model` names the one to use where nothing else does, `providers` adds or changes some.
 */
import { RemoteService } from "@bezel/core/service"
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"

/** `provider/model`; the model's own id may contain slashes. */
export const ModelName = Schema.String.check(
  Schema.isPattern(/^[^/\s][^/]*\/.*\S$/, { message: "Expected provider/model, like bezel/offline" })
)

/** The model of everybody who names none. `null`: `bezel/offline`. */
export const ModelSetting: SettingsKey<string | null> = SettingsKey.make("model", {
  schema: Schema.NullOr(ModelName),
  default: null,
  untrusted: "drop",
  description: "The model to use where nothing else names one, as provider/model."
})

const Tokens = Schema.Int.check(Schema.isGreaterThan(0, { message: "Expected a number of tokens above 0" }))
const Price = Schema.Finite.check(
  Schema.isGreaterThanOrEqualTo(0, { message: "Expected US dollars per million tokens" })
)

/** What is said of one model of a provider; all of it is optional. */
export const ModelOptions = Schema.Struct({
  name: Schema.optionalKey(Schema.String).annotateKey({ description: "What people see." }),
  contextWindow: Schema.optionalKey(Tokens).annotateKey({
    description: "Tokens that a request and its answer may have together."
  }),
  maxOutput: Schema.optionalKey(Tokens).annotateKey({ description: "Tokens that an answer may have." }),
  reasoning: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether it can think before it answers, on demand."
  }),
  images: Schema.optionalKey(Schema.Boolean).annotateKey({ description: "Whether it reads images." }),
  cost: Schema.optionalKey(Schema.Struct({
    input: Price.annotateKey({ description: "What the model reads." }),
    output: Price.annotateKey({ description: "What it writes." }),
    cacheRead: Schema.optionalKey(Price).annotateKey({
      description: "What it reads again from its cache; default: as input."
    }),
    cacheWrite: Schema.optionalKey(Price).annotateKey({
      description: "What it puts into its cache; default: as input."
    })
  })).annotateKey({ description: "US dollars per million tokens." })
})
export type ModelOptions = typeof ModelOptions.Type

const Address = Schema.String.check(
  Schema.makeFilter((text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    message: "Expected an http or https address, like http://127.0.0.1:8080/v1"
  })
)

/** How one signs in: authorization code with PKCE, for a public client. */
export const OAuthOptions = Schema.Struct({
  authorizeURL: Address.annotateKey({ description: "Where one says yes, in a browser." }),
  tokenURL: Address.annotateKey({ description: "Where a code becomes a token." }),
  clientID: Schema.NonEmptyString.annotateKey({ description: "Of the public client that was registered there." }),
  scopes: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)).annotateKey({ description: "What is asked for." }),
  port: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65535 }))).annotateKey({
    description: "Port on this machine that the browser comes back to; default: any free one."
  }),
  redirectURL: Schema.optionalKey(Address).annotateKey({
    description: "Where the browser goes instead; the code is then pasted."
  })
})
export type OAuthOptions = typeof OAuthOptions.Type

/** One provider. `package` is an AI SDK provider package. */
export const ProviderOptions = Schema.Struct({
  name: Schema.optionalKey(Schema.String).annotateKey({ description: "What people see." }),
  package: Schema.optionalKey(Schema.String).annotateKey({
    description: "The AI SDK provider package that speaks to it, like @ai-sdk/openai-compatible."
  }),
  options: Schema.optionalKey(Schema.Struct({
    baseURL: Schema.optionalKey(Address).annotateKey({
      description: "The address that requests go below, like http://127.0.0.1:8080/v1."
    }),
    // On the text: what is beside a redacted value is not in the schema of the file.
    apiKey: Schema.optionalKey(Schema.RedactedFromValue(Schema.String.annotate({
      description: "The key. {env:NAME} takes it from the environment, {file:PATH} from a file."
    }))),
    headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.RedactedFromValue(Schema.String))).annotateKey({
      description: "More headers of each request."
    })
  })).annotateKey({ description: "Where it is and who asks." }),
  keyCommand: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)).annotateKey({
    description:
      "A program and its arguments that prints the key: a password manager, for example. It runs once, when a key is first needed."
  }),
  oauth: Schema.optionalKey(OAuthOptions).annotateKey({ description: "How one signs in instead of using a key." }),
  models: Schema.optionalKey(Schema.Record(Schema.String, ModelOptions)).annotateKey({
    description: "The models it offers. Without it, any model id is passed on to the provider."
  })
})
export type ProviderOptions = typeof ProviderOptions.Type

const ids = Schema.makeFilter((providers: { readonly [id: string]: ProviderOptions }) =>
  Object.keys(providers).flatMap((id) =>
    id === "bezel"
      ? [{ path: [id], issue: 'Expected another id: "bezel" is the provider of bezel/offline' }]
      : /^[a-z0-9][a-z0-9._-]*$/i.test(id)
      ? []
      : [{ path: [id], issue: 'Expected an id of letters, digits, ".", "_" and "-"' }]
  )
)

/** Providers by id. An entry named like a built-in one changes that one. */
export const ProvidersSetting: SettingsKey<{ readonly [id: string]: ProviderOptions }> = SettingsKey.make("providers", {
  schema: Schema.Record(Schema.String, ProviderOptions).check(ids),
  default: {},
  untrusted: "drop",
  description: "Model providers by id: which package speaks to them, where they are, and what models they have."
})

/** What can be done about the models of a location; which there are, its registries say. */
export class Models extends RemoteService.make("bezel.models")({
  methods: {
    /** Reads `models.json` again and asks every provider that can be asked; gives what went wrong, one sentence each. */
    refresh: { success: Schema.Struct({ found: Schema.Int, warnings: Schema.Array(Schema.String) }) }
  }
}) {}

/** What a host says to this plugin. */
export const ProvidersPluginOptions = Schema.Struct({
  /** Where the user's `models.json` is; default: the config folder of this user. */
  configDirectory: Schema.optionalKey(Schema.String),
  /** Where what providers said is kept; default: the cache folder of this user. */
  cacheDirectory: Schema.optionalKey(Schema.String),
  /** Where provider packages are installed, in its `node_modules`; without it, only those that ship with us are there. */
  packageFolder: Schema.optionalKey(Schema.String)
})
export type ProvidersPluginOptions = typeof ProvidersPluginOptions.Type
