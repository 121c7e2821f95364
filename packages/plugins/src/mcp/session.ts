/**
 * The session facet of MCP: connects the servers of the settings once the location is up, and offers what they have.
 *
 * Nobody waits for a server to boot: the first request waits a few seconds for those that are starting and is made without
 * them otherwise. Without a configured server nothing of the protocol is loaded.
 */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { Credentials } from "../accounts/contract.ts"
import { Question } from "../question/contract.ts"
import { answerLimit, LimitsSetting } from "../settings/contract.ts"
import { promptResult } from "./content.ts"
import {
  McpConnections,
  McpError,
  McpOptions,
  type McpServer,
  McpServers,
  type McpServerState,
  McpSetting
} from "./contract.ts"
import { McpFailure } from "./failure.ts"
import { missingPlaces, placesOf, placesText, promptsByName } from "./prompts.ts"
import { makeServer, type Server } from "./server.ts"
import { credentialKey, signInServer } from "./sign-in.ts"
import { oneLine } from "./text.ts"
import { makeOffer, type Offered, resourceTools } from "./tools.ts"

type Context = Pick<
  SessionContext,
  | "find"
  | "hooks"
  | "interactions"
  | "location"
  | "namespace"
  | "onActivate"
  | "onSession"
  | "options"
  | "own"
  | "plugin"
  | "provide"
  | "section"
  | "session"
  | "settings"
  | "state"
  | "tool"
>

/** How long the first request waits for servers that are starting. Shorter than the limit of hooks. */
const requestPatience = "8 seconds"
/** Log lines that may wait to be written; what comes faster is left out. */
const logLines = 200
const maxInstructions = 8_192

const stateOf = (server: Server, tools: ReadonlyArray<string>, problems: ReadonlyArray<string>): McpServerState => {
  const { account, error, hasResources, problems: own, prompts, retryAt, status, title } = server.known()
  return {
    name: oneLine(server.name, 100),
    transport: "command" in server.setting ? "stdio" : "http",
    status,
    account,
    title,
    tools,
    hasResources,
    prompts,
    error,
    retryAt,
    problems: [...own, ...problems].slice(0, 20)
  }
}

/** The facet for session hosts. */
export const session = Effect.fn("mcp/session")(function*(ctx: Context) {
  const { version } = yield* Schema.decodeUnknownEffect(McpOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const configured: ReadonlyArray<[name: string, setting: McpServer]> = Object.entries(ctx.settings.get(McpSetting))
  const states = yield* ctx.state(McpServers.contract.state.servers, [])
  let servers: ReadonlyArray<Server> = []

  const makeTools = makeOffer()
  const forResources = resourceTools(() => servers)
  let offered: ReadonlyArray<Offered> = []
  const alone = yield* Semaphore.make(1)

  /** Brings tools and states in line with what the servers offer now. */
  const refresh = alone.withPermits(1)(Effect.gen(function*() {
    const { offered: tools, problems } = makeTools(servers)
    const next = [...servers.some((server) => server.known().hasResources) ? forResources : [], ...tools]
    const isSame = next.length === offered.length && next.every(({ tool }, index) => tool === offered[index]?.tool)
    if (!isSame) {
      offered = next
      yield* ctx.tool.reload
    }
    const owners = new Map((yield* ctx.tool.list).map(({ name, plugin }) => [name, plugin]))
    const ours = ({ name }: Offered) => owners.get(name) === ctx.plugin
    yield* states.set(servers.map((server) => {
      const all = tools.filter((one) => one.server === server.name)
      const hidden = all.filter((one) => owners.has(one.name) && !ours(one)).map(({ name }) =>
        `The tool ${name} is left out: the plugin ${owners.get(name)} has one of that name.`
      )
      return stateOf(server, all.filter(ours).map(({ name }) => name), [...problems.get(server.name) ?? [], ...hidden])
    }))
  }))

  const settled = Effect.suspend(() =>
    servers.length === 0 ? Effect.void : Effect.andThen(Effect.forEach(servers, ({ tried }) => tried), refresh)
  )
  const find = (name: string) =>
    Effect.suspend(() => {
      const found = servers.find((server) => server.name === name)
      return found === undefined
        ? Effect.fail(new McpError({ message: `There is no MCP server ${JSON.stringify(name.slice(0, 80))} here.` }))
        : Effect.succeed(found)
    })
  const fill = (server: Server, prompt: string, places: { readonly [name: string]: string }) =>
    Effect.gen(function*() {
      const name = oneLine(server.name, 100)
      const raw = yield* Effect.mapError(
        server.use((connection) => connection.request("prompts/get", { name: prompt, arguments: places })),
        ({ message }) => new McpError({ message: `The MCP server ${name}: ${message}.` })
      )
      const made = yield* promptResult(raw)
      return made ?? (yield* new McpError({ message: `The MCP server ${name}: its answer is no prompt.` }))
    })
  const fillByName = (called: string, words: string) =>
    Effect.gen(function*() {
      const found = promptsByName(states.value).get(called)
      if (found === undefined) return null
      const { prompt, server } = found
      const places = placesOf(prompt, words)
      const missing = missingPlaces(prompt, places)
      if (missing.length > 0) {
        return yield* new McpError({
          message: `The prompt /${called} needs ${missing.join(", ")}: /${called} ${placesText(prompt)}`
        })
      }
      return yield* fill(yield* find(server.name), prompt.name, places)
    })
  const credentials = Effect.flatMap(ctx.find(Credentials), (found) =>
    found === null
      ? Effect.fail(new McpError({ message: "The plugin that keeps sign-ins is left out." }))
      : Effect.succeed(found))
  const addressOf = (server: Server) =>
    "url" in server.setting
      ? Effect.succeed(server.setting)
      : Effect.fail(new McpError({ message: `The MCP server ${oneLine(server.name, 100)} is a program: no sign-in.` }))
  const signIn = Effect.fn("mcp.signIn")(function*(name: string, sessionID: string) {
    const server = yield* find(name)
    const address = yield* addressOf(server)
    const signedIn = yield* Effect.mapError(
      (yield* credentials).signIn({
        key: credentialKey(address),
        name,
        server: signInServer(name, address),
        sessionID
      }),
      ({ message }) => new McpError({ message })
    )
    if (signedIn) yield* server.reconnect
    return { signedIn }
  })
  const signOut = Effect.fn("mcp.signOut")(function*(name: string) {
    const server = yield* find(name)
    const address = yield* addressOf(server)
    yield* Effect.mapError(
      (yield* credentials).remove(credentialKey(address)),
      ({ message }) => new McpError({ message })
    )
    yield* server.reconnect
  })
  /** The token of a sign-in, as it is good now. */
  const tokenOf = (name: string, setting: McpServer) => (refused: Redacted.Redacted | null) =>
    Effect.gen(function*() {
      const found = "url" in setting ? yield* ctx.find(Credentials) : null
      if (found === null || !("url" in setting)) return null
      const key = yield* Effect.mapError(
        found.get(credentialKey(setting), { name, ...(refused === null ? {} : { refused }) }),
        ({ message, refused: gone }) =>
          gone === true
            ? new McpFailure({
              message: `its sign-in has ended; sign in again with /mcp or bezel auth login ${oneLine(name, 100)}`,
              signIn: true
            })
            : new McpFailure({ message: message.replace(/\.$/, "") })
      )
      return key?.value ?? null
    })

  yield* ctx.provide(McpServers, {
    servers: states,
    signIn: ({ name, sessionID }) => signIn(name, sessionID),
    signOut: ({ name }) => signOut(name),
    reconnect: ({ name }) => Effect.flatMap(find(name), (server) => server.reconnect),
    enable: ({ enabled, name }) => Effect.flatMap(find(name), (server) => server.enable(enabled)),
    prompt: ({ arguments: places, name, prompt }) =>
      Effect.flatMap(find(name), (server) => fill(server, prompt, places))
  })
  yield* ctx.provide(McpConnections, { list: Effect.sync(() => states.value), prompt: fillByName, settled })
  if (configured.length === 0) return

  yield* ctx.tool.transform((draft) => {
    const taken = new Set(draft.list().map(({ name }) => name))
    for (const { name, tool } of offered) if (!taken.has(name)) draft.set(name, tool)
  })

  const namespace = yield* ctx.namespace("mcp", {})
  let waited = false
  const patience = Effect.suspend(() => {
    if (waited) return Effect.void
    return Effect.map(Effect.timeoutOption(settled, requestPatience), () => {
      waited = true
    })
  })
  yield* ctx.hooks(namespace, "generation", { beforePrepare: () => patience })
  // What a crash has left of a turn goes on with the tools that it was offered.
  yield* ctx.onSession(({ main }) => Effect.flatMap(main.busy, (busy) => busy ? patience : Effect.void))
  yield* ctx.section({
    id: "bezel.mcp",
    order: 700,
    text: () =>
      Effect.sync(() => {
        const texts = servers.flatMap((server) => {
          const { instructions, tools } = server.known()
          return instructions === "" || tools.length === 0
            ? []
            : [`Of the tools of the MCP server ${oneLine(server.name, 100)} its author says:\n${instructions}`]
        })
        return texts.length === 0 ? null : texts.join("\n\n").slice(0, maxInstructions).toWellFormed()
      })
  })

  const rootOf = (sessionID: string): Effect.Effect<string> =>
    Effect.flatMap(
      Effect.option(ctx.session.get(sessionID)),
      (found) =>
        found._tag === "None" || found.value.parentID === null
          ? Effect.succeed(sessionID)
          : rootOf(found.value.parentID)
    )

  yield* ctx.onActivate(Effect.gen(function*() {
    const lines = yield* Queue.dropping<readonly [server: string, line: string]>(logLines)
    yield* Effect.forkScoped(Effect.gen(function*() {
      for (;;) {
        const [server, line] = yield* Queue.take(lines)
        yield* Effect.annotateLogs(Effect.logInfo(line), { mcp: server })
      }
    }))
    servers = yield* Effect.forEach(configured, ([name, setting]) =>
      makeServer(name, setting, {
        location: ctx.location.directory,
        version: version ?? "0.0.0",
        token: tokenOf(name, setting),
        ask: (request, sessionID) =>
          ctx.interactions.request(Question, request, { sessionID, ...answerLimit(ctx.settings.get(LimitsSetting)) }),
        rootOf,
        log: (line) => {
          Queue.offerUnsafe(lines, [name, line])
        }
      }))
    yield* refresh
    const changes = Stream.mergeAll(servers.map((server) => server.changes), { concurrency: "unbounded" })
    yield* Effect.forkScoped(Stream.runForEach(changes, () => refresh))
  }))
})

export default session
