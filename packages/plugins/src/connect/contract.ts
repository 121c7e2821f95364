/**
 * Connecting a model: what a person without one can choose from, and how the choice is made to hold.
 *
 * Names and sentences cross the connection, never a key: that is asked for by an interaction which enters no state and no log.
 */
import { Interaction, RemoteService } from "@bezel/core/service"
import * as Schema from "effect/Schema"

/** Why something could not be connected: one sentence that says what to do. It never holds a key. */
export class ConnectError extends Schema.TaggedError<ConnectError>()("ConnectError", {
  message: Schema.String,
  /** The provider wants a key, or another one than is stored; asking for it helps. */
  needsKey: Schema.optionalKey(Schema.Boolean)
}) {}

/** A place of models, as it can be connected. */
export const Candidate = Schema.Struct({
  provider: Schema.String,
  name: Schema.String,
  /** Whether its models can be used at once; else a key is needed first. */
  ready: Schema.Boolean,
  /** How it was found, for people: `OPENAI_API_KEY is set`, `answers on 127.0.0.1:11434`. */
  found: Schema.String
})
export type Candidate = typeof Candidate.Type

export const FoundModel = Schema.Struct({ model: Schema.String, name: Schema.String })
export type FoundModel = typeof FoundModel.Type

/** What a person is told who has chosen no model yet. */
export const Guidance = Schema.Struct({
  /** Nobody has named a model: not the settings, and nobody here. */
  needed: Schema.Boolean,
  /** Where keys are from that could be used, such as `OPENAI_API_KEY`. */
  keys: Schema.Array(Schema.String)
})
export type Guidance = typeof Guidance.Type

const OfProvider = Schema.Struct({ provider: Schema.String })

export class Connect extends RemoteService.make("bezel.connect")({
  state: { guidance: Guidance },
  methods: {
    /** Looks for keys, and for servers on this machine; those that can be used at once come first. */
    find: { success: Schema.Array(Candidate) },
    /** Asks the people at the session for a provider's key until one is accepted, and stores it; `false`: they gave up. */
    askForKey: {
      payload: Schema.Struct({ provider: Schema.String, sessionID: Schema.String }),
      success: Schema.Boolean,
      error: ConnectError
    },
    /** Asks a provider which models it has, the likely ones first; that is also how its key is checked. */
    models: { payload: OfProvider, success: Schema.Array(FoundModel), error: ConnectError },
    /**
     * Makes a provider that was found usable from now on, and its model the one of everybody who names none, where there is
     * none yet. Gives the settings file in which that was kept, `null` where nothing had to be.
     */
    keep: {
      payload: Schema.Struct({ provider: Schema.String, model: Schema.String }),
      success: Schema.NullOr(Schema.String),
      error: ConnectError
    }
  }
}) {}

/** A person pastes a provider's key. */
export const ProviderKeyRequest = Interaction.make("bezel.provider-key")({
  request: Schema.Struct({
    name: Schema.String,
    /** What was wrong with the key before; `null`: this is the first. */
    problem: Schema.NullOr(Schema.String)
  }),
  response: Schema.Struct({ key: Schema.RedactedFromValue(Schema.NonEmptyString) }),
  unattended: "deny",
  sensitive: true
})

/** What a host says to this plugin. */
export const ConnectOptions = Schema.Struct({
  /** Servers of this machine to look for; default: where Ollama, LM Studio and llama.cpp are when nobody says otherwise. */
  servers: Schema.optionalKey(Schema.Array(Schema.Struct({
    id: Schema.String,
    name: Schema.String,
    url: Schema.String
  })))
})
export type ConnectOptions = typeof ConnectOptions.Type
