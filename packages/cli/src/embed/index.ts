/**
 * `Bezel.open()`: Bezel inside a program. The client has the face of the SDK's, over session hosts in this process instead of
 * a server; the program can give the agent tools of its own.
 *
 * It uses the folders and the settings of this user, as the command does, unless it is given a folder of its own. Nothing is
 * asked on a terminal: what a session asks is an open interaction, which the program answers, or the permission rules decide.
 */
import { Plugin, SessionPlugins } from "@bezel/core/host"
import { type Tool, tool, type ToolCall } from "@bezel/core/tool"
import { type BezelClient, type BezelEffectClient, promised } from "@bezel/sdk"
import { inlineLocations, Placement } from "@bezel/server"
import { embed } from "@bezel/server/embed"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { join } from "node:path"
import metadata from "../../package.json" with { type: "json" }
import { coordinatorPlugins } from "../host/coordinator-plugins.ts"
import { hostLayer } from "../host/location.ts"
import { lists, offerTool, runCommand } from "../host/offered-lists.ts"
import { makeProgramTools, type ProgramTools } from "./program-tools.ts"

export interface OpenOptions {
  /** The directory of sessions that name none; default: that of this process. */
  readonly directory?: string
  /** Keeps everything below this folder, settings too; default: the folders of this user. */
  readonly folder?: string
  /** Settings on top of those in files: `model=bezel/offline`. */
  readonly set?: ReadonlyArray<string>
  /** Allows what would be asked, inside the location; what a rule denies stays denied. */
  readonly yes?: boolean
  /** Is told what goes wrong without anybody having asked for it. */
  readonly onWarning?: (message: string) => void
  /** Plugins of the program, behind all others. */
  readonly plugins?: ReadonlyArray<Plugin>
}

/** What a tool's function may want to know of its call. */
export interface ProgramToolCall {
  readonly sessionID: string
  readonly callID: string
  /** Aborted when the call is. */
  readonly signal: AbortSignal
}

/** A tool whose code is a function of the program. */
export interface ProgramTool<I> {
  /** For the model. */
  readonly description: string
  /** What it takes; the model is told as JSON Schema. */
  readonly input: Schema.Codec<I, unknown>
  /** Text, or a value that is shown to the model as JSON. Throwing is an error result, with the message for the model. */
  readonly execute: (input: I, call: ProgramToolCall) => unknown
}

export interface EmbeddedBezel extends BezelClient {
  readonly tools: {
    /** Offers a tool in every location, those that are up included; the result takes it away again. */
    readonly register: {
      <I>(name: string, tool: ProgramTool<I>): Promise<() => Promise<void>>
      (name: string, tool: Tool): Promise<() => Promise<void>>
    }
  }
  /** Suspends what runs, and closes everything. Work that was cut off goes on when its session is resumed. */
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Folders of its own, by the variables that the command itself obeys. */
const foldersBelow = (folder: string) =>
  ConfigProvider.layer(
    ConfigProvider.fromUnknown({
      BEZEL_DATA_DIR: join(folder, "data"),
      BEZEL_CONFIG_DIR: join(folder, "config"),
      BEZEL_STATE_DIR: join(folder, "state"),
      BEZEL_CACHE_DIR: join(folder, "cache")
    })
  )

const layerOf = (options: OpenOptions, tools: ProgramTools) => {
  const global = hostLayer({
    environment: { version: metadata.version, set: options.set ?? [], color: false, verbose: false },
    trust: false,
    plugins: options.yes === true ? { permissions: { yes: true } } : {},
    onWarning: options.onWarning
  })
  const own = Plugin.sources("session", [...options.plugins ?? [], tools.plugin])
  const plugins = Layer.effect(
    SessionPlugins,
    Effect.map(SessionPlugins, (installed) => ({
      ...installed,
      forLocation: (location, settings) =>
        Effect.map(installed.forLocation(location, settings), (found) => [...found, ...own])
    }))
  )
  const layer = Placement.inline.pipe(
    Layer.provideMerge(inlineLocations({ plugins: coordinatorPlugins(metadata.version) })),
    Layer.provideMerge(plugins),
    Layer.provideMerge(global)
  )
  return options.folder === undefined ? layer : Layer.provide(layer, foldersBelow(options.folder))
}

const isTool = <I>(given: ProgramTool<I> | Tool): given is Tool => "executionMode" in given

const toolOf = <I>(given: ProgramTool<I> | Tool): Tool =>
  isTool(given) ? given : tool<I, unknown>({
    description: given.description,
    input: given.input,
    execute: (input, { callID, sessionID }: Pick<ToolCall, "callID" | "sessionID">) =>
      Effect.tryPromise({
        try: async (signal) => await given.execute(input, { sessionID, callID, signal }),
        catch: (error) => error instanceof Error ? error : new Error(String(error))
      })
  })

/** The same in effects, for the length of the scope. */
export const openBezel = (options: OpenOptions = {}) =>
  Effect.gen(function*() {
    const tools = makeProgramTools()
    const services = yield* Layer.build(layerOf(options, tools))
    const client: BezelEffectClient = yield* Effect.provideContext(
      embed({
        version: metadata.version,
        lists,
        runCommand,
        offerTool,
        ...(options.directory === undefined ? {} : { directory: options.directory })
      }),
      services
    )
    return { client, register: tools.register }
  })

export const Bezel = {
  /** Opens Bezel in this program. Close it: sessions that it holds open are nobody else's until then. */
  open: async (options: OpenOptions = {}): Promise<EmbeddedBezel> => {
    const scope = Effect.runSync(Scope.make())
    const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
    try {
      const { client, register } = await Effect.runPromise(Scope.provide(openBezel(options), scope))
      return {
        ...promised(client),
        tools: {
          register: async <I>(name: string, tool: ProgramTool<I> | Tool) => {
            const remove = await Effect.runPromise(register(name, toolOf(tool)))
            return () => Effect.runPromise(remove)
          }
        },
        close,
        [Symbol.asyncDispose]: close
      }
    } catch (error) {
      await close()
      throw error
    }
  }
}
