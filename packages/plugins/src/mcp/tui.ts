/**
 * The terminal facet of MCP: `/mcp` shows the servers and looks after them, one that goes away is told of, and each prompt of a
 * server is a slash command, `/server:prompt`, that asks for what it needs and was not given.
 */
import { type Block, span, text, type ThemeColor, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { currentConversation } from "../chat/current.ts"
import { type McpPrompt, McpServers, type McpServerState } from "./contract.ts"
import { missingPlaces, placesOf, placesText, promptsByName } from "./prompts.ts"

const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? "" : "s"}`

/** How a server is, in a few words. */
export const statusText = ({ error, prompts, status, tools }: McpServerState, retryInMs: number | null): string => {
  switch (status) {
    case "ready":
      return [counted(tools.length, "tool"), ...prompts.length === 0 ? [] : [counted(prompts.length, "prompt")]].join(
        ", "
      )
    case "disabled":
      return "disabled"
    case "starting":
      return "starting"
    case "waiting":
      return `not connected: ${error ?? "no reason is known"}${
        retryInMs === null ? "" : `; tried again in ${Math.max(0, Math.ceil(retryInMs / 1_000))} s`
      }`
    case "failed":
      return `not connected: ${error ?? "no reason is known"}`
  }
}

const colors: { readonly [status in McpServerState["status"]]: ThemeColor } = {
  ready: "success",
  disabled: "muted",
  starting: "warning",
  waiting: "warning",
  failed: "error"
}

const maxTools = 40

/** What is shown of one server above what can be done about it. */
export const serverBlocks = (server: McpServerState, now: number): ReadonlyArray<Block> => {
  const { problems, retryAt, status, title, tools, transport } = server
  const shown = tools.slice(0, maxTools).join(", ")
  const more = tools.length > maxTools ? ` and ${tools.length - maxTools} more` : ""
  const kind = transport === "stdio" ? "a program" : "an address"
  return [
    text([
      span(statusText(server, retryAt === null ? null : retryAt - now), { color: colors[status] }),
      span(`  ${title === null || title === "" ? kind : `${title}, ${kind}`}`, { color: "muted" })
    ], { indent: 2 }),
    ...(tools.length === 0 ? [] : [text(span(shown + more, { color: "muted" }), { indent: 2 })]),
    ...problems.map((problem) => text(span(problem, { color: "warning" }), { indent: 2 }))
  ]
}

/** The terminal facet. */
export const tui = Effect.fn("mcp/tui")(function*(ctx: TuiContext) {
  const service = yield* ctx.use(McpServers)
  const current = yield* currentConversation(ctx)

  const look = Effect.gen(function*() {
    const found = yield* Effect.timeoutOption(Stream.runHead(service.servers.changes), "2 seconds")
    return Option.getOrElse(Option.flatten(found), (): ReadonlyArray<McpServerState> => [])
  })

  const choose = (wish: string) =>
    Effect.gen(function*() {
      const all = yield* look
      if (all.length === 0) {
        return yield* ctx.ui.notify("There are no MCP servers here; the setting mcp names them.")
      }
      const now = Date.now()
      const name = wish.trim() !== "" ? wish.trim() : yield* ctx.ui.select({
        title: "MCP servers",
        options: all.map((server) => ({
          value: server.name,
          label: server.name,
          description: statusText(server, server.retryAt === null ? null : server.retryAt - now)
        }))
      })
      if (name === null) return
      const server = all.find((one) => one.name === name)
      if (server === undefined) {
        return yield* ctx.ui.notify(
          `There is no MCP server ${name}; there are ${all.map((one) => one.name).join(", ")}.`,
          "error"
        )
      }
      yield* act(server, now)
    })

  const signIn = (name: string) =>
    Effect.gen(function*() {
      const session = yield* ctx.session.current
      if (session === null) return yield* ctx.ui.notify("There is no conversation yet to sign in from.", "warning")
      const { signedIn } = yield* service.signIn({ name, sessionID: session.sessionID })
      yield* ctx.ui.notify(signedIn ? `Signed in to ${name}.` : `Not signed in to ${name}.`)
    })

  const act = (server: McpServerState, now: number) =>
    Effect.gen(function*() {
      const { account, name, status, transport } = server
      const action = yield* ctx.ui.select({
        title: name,
        body: serverBlocks(server, now),
        options: status === "disabled"
          ? [{ value: "enable" as const, label: "Enable", description: "until Bezel ends; settings stay as they are" }]
          : [
            ...transport === "http" && account !== "signed-in" ? [{ value: "signIn" as const, label: "Sign in" }] : [],
            { value: "reconnect" as const, label: "Connect again" },
            ...account === "signed-in" ? [{ value: "signOut" as const, label: "Sign out" }] : [],
            { value: "disable" as const, label: "Disable", description: "until Bezel ends; settings stay as they are" }
          ]
      })
      if (action === null) return
      if (action === "signIn") return yield* signIn(name)
      if (action === "signOut") yield* service.signOut({ name })
      else if (action === "reconnect") yield* service.reconnect({ name })
      else yield* service.enable({ name, enabled: action === "enable" })
      const done = {
        reconnect: "is being connected again",
        signOut: "is signed out of",
        disable: "is disabled",
        enable: "is enabled"
      }[action]
      yield* ctx.ui.notify(`${name} ${done}.`)
    })

  yield* ctx.commands.register("mcp.servers", {
    slash: "mcp",
    argument: "[NAME]",
    description: "Show the MCP servers, sign in to one, connect it again, disable or enable it",
    run: choose
  })

  const send = (server: McpServerState, prompt: McpPrompt) => (typed: string) =>
    Effect.gen(function*() {
      const conversation = current()
      if (conversation === null) return yield* ctx.ui.notify("There is no conversation yet.", "warning")
      const places: Record<string, string> = { ...placesOf(prompt, typed) }
      for (const name of missingPlaces(prompt, places)) {
        const value = yield* ctx.ui.input({ title: `${prompt.name}: ${name}` })
        if (value === null || value.trim() === "") return
        places[name] = value.trim()
      }
      const { files, text: words } = yield* service.prompt({
        name: server.name,
        prompt: prompt.name,
        arguments: places
      })
      if (words.trim() === "" && files.length === 0) {
        return yield* ctx.ui.notify(`The prompt ${prompt.name} of ${server.name} is empty.`, "warning")
      }
      yield* conversation.send({ text: words, files, whenBusy: "steer" })
    })

  /** Servers whose absence was told; who comes back may go again. */
  const missed = new Set<string>()
  const tell = (servers: ReadonlyArray<McpServerState>) =>
    Effect.forEach(servers, ({ account, error, name, status }) => {
      if (status === "ready" || status === "disabled") missed.delete(name)
      if ((status !== "waiting" && status !== "failed") || missed.has(name)) return Effect.void
      missed.add(name)
      // Where somebody has to sign in, the reason says how.
      const hint = account === "wanted" ? "" : " /mcp"
      return ctx.ui.notify(
        `The MCP server ${name} is not connected: ${error ?? "it did not say why"}.${hint}`,
        "warning"
      )
    }, { discard: true })

  /** Slash commands by their name, with what takes each away. */
  const registered = new Map<string, { readonly of: McpPrompt; readonly unregister: Effect.Effect<void> }>()
  const bring = (servers: ReadonlyArray<McpServerState>) =>
    Effect.gen(function*() {
      const wanted = promptsByName(servers)
      for (const [slash, { of, unregister }] of registered) {
        if (JSON.stringify(wanted.get(slash)?.prompt) === JSON.stringify(of)) continue
        registered.delete(slash)
        yield* unregister
      }
      for (const [slash, { prompt, server }] of wanted) {
        if (registered.has(slash)) continue
        const argument = placesText(prompt)
        const { unregister } = yield* ctx.commands.register(`mcp.prompt.${slash}`, {
          slash,
          ...(argument === "" ? {} : { argument }),
          description: prompt.description === "" ? `A prompt of ${server.name}` : prompt.description,
          run: send(server, prompt)
        })
        registered.set(slash, { of: prompt, unregister })
      }
    })
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
    service.servers.forEach((servers) => Effect.andThen(bring(servers), tell(servers)))
  )))
})
