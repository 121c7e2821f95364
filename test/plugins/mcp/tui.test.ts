/** `/mcp` and prompts as commands, on a terminal in memory over a real session host and a real server. */
import { makePresentation, Plugin } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { call } from "@bezel/core/testing"
import { session as accounts } from "@bezel/plugins/accounts/session"
import { text, type ToolCallView, type TuiContext } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { tui as accountsTui } from "../../../packages/plugins/src/accounts/tui.ts"
import { parsePromptCall, placesOf } from "../../../packages/plugins/src/mcp/prompts.ts"
import { tui } from "../../../packages/plugins/src/mcp/tui.ts"
import { tui as questionTui } from "../../../packages/plugins/src/question/tui.ts"
import { toolCard } from "../../../packages/tui/src/card.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { authorizationServer, temporaryFolder } from "../accounts/authorization-server.ts"
import { realSite } from "./real-site.ts"
import { eventually, program, world } from "./world.ts"

const open = (
  servers: Parameters<typeof world>[0],
  script: Parameters<typeof world>[1] = [],
  options: Parameters<typeof world>[2] = {}
) =>
  Effect.gen(function*() {
    const made = yield* world(servers, script, options)
    const { host, sessionID } = made
    const there: { commands: TuiContext["commands"] | null } = { commands: null }
    const screen = yield* testTerminal({
      presentation: yield* makePresentation({ connection: yield* host.connect(sessionID), location: host.location }),
      plugins: Plugin.sources("tui", [
        Plugin.define({ id: "bezel.mcp", tui }),
        Plugin.define({ id: "bezel.accounts", tui: accountsTui }),
        Plugin.define({ id: "bezel.question", tui: questionTui }),
        Plugin.define({
          id: "test.screen",
          tui: (ctx) =>
            Effect.gen(function*() {
              there.commands = ctx.commands
              yield* ctx.keybindings.bind("ctrl+p", { command: "mcp.servers" })
              yield* ctx.keybindings.bind("ctrl+r", { command: "mcp.prompt.test:review", argument: "a.ts in short" })
              yield* ctx.keybindings.bind("ctrl+e", { command: "mcp.prompt.test:review" })
              yield* ctx.screens.register("chat", {
                title: "Test",
                open: Effect.succeed({ body: () => [text("the body")] })
              })
            })
        })
      ])
    })
    yield* screen.until("the body")
    const commands = Effect.suspend(() => there.commands?.list ?? Effect.succeed([]))
    return { ...made, screen, commands }
  })

const plain = (
  folder: string
) => ({ test: { command: program("plain", folder) }, off: { command: ["x"], enabled: false } } as const)

describe("/mcp", () => {
  it.live("shows the servers, disables one and enables it again", () =>
    Effect.gen(function*() {
      const { screen, until } = yield* open(plain)
      yield* until("test", ({ status }) => status === "ready")
      yield* screen.type("\x10")
      yield* screen.until(/MCP servers[\s\S]*1\. test {2}\d+ tools, 1 prompt[\s\S]*2\. off {2}disabled/)
      yield* screen.type("1")
      yield* screen.until(/Test \[2J server, a program[\s\S]*test_echo[\s\S]*1\. Connect again[\s\S]*2\. Disable/)
      yield* screen.type("2")
      yield* screen.until("test is disabled.")
      expect((yield* until("test", ({ status }) => status === "disabled")).tools).toEqual([])
      yield* screen.type("\x10")
      yield* screen.until(/1\. test {2}disabled/)
      yield* screen.type("1")
      yield* screen.until("1. Enable")
      yield* screen.type("1")
      yield* until("test", ({ status }) => status === "ready")
    }).pipe(Effect.scoped))

  it.live("signs in to a server with the browser, shows what the server asks, and signs out", () =>
    Effect.gen(function*() {
      const authority = yield* authorizationServer
      const site = yield* realSite
      site.admits = (authorization) => authority.isGood(authorization?.replace(/^Bearer /, "") ?? "")
      site.resource = { resource: site.url, authorization_servers: [authority.issuer] }
      const form = {
        message: "Which one?",
        requestedSchema: {
          type: "object",
          properties: { size: { type: "string", enum: ["small", "large"] } },
          required: ["size"]
        }
      }
      const { host, screen, sessionID, until } = yield* open(
        () => ({ docs: { url: site.url } }),
        [[call("docs_ask", form)], "ok"],
        {
          extra: [Plugin.define({ id: "bezel.accounts", session: accounts })],
          entries: { "bezel.accounts": { required: true, options: { directory: yield* temporaryFolder } } }
        }
      )
      yield* until("docs", ({ account }) => account === "wanted")
      yield* screen.until("The MCP server docs is not connected: it wants you to sign in, with /mcp")
      yield* screen.type("\x10")
      yield* screen.until(/1\. docs/)
      yield* screen.type("1")
      yield* screen.until(/1\. Sign in[\s\S]*2\. Connect again/)
      yield* screen.type("1")
      yield* screen.until("Sign in to docs")
      yield* screen.until("code_challenge_method=S256")
      const shown = (yield* screen.text).replaceAll(/\s+/g, "")
      const url = /http:\/\/127\.0\.0\.1:\d+\/authorize.*?code_challenge_method=S256/.exec(shown)?.[0] ?? ""
      const back = yield* Effect.promise(() => authority.browse(url))
      yield* Effect.promise(async () => (await fetch(back)).text())
      yield* screen.until("Signed in to docs.")
      yield* until("docs", ({ account, status }) => status === "ready" && account === "signed-in")

      const answer = yield* Effect.forkScoped(host.ask(sessionID, "go"))
      // It takes keys when it does not say any more that it waits for the typing to pause.
      const question = /^(?![\s\S]*as soon as you stop)[\s\S]*docs asks: Which one\? size\.[\s\S]*2\. large/
      yield* screen.until(question)
      yield* screen.type("2")
      expect(yield* Fiber.join(answer)).toBe("ok")
      expect(site.answers).toEqual([{ action: "accept", content: { size: "large" } }])

      yield* screen.type("\x10")
      yield* screen.until(/1\. docs/)
      yield* screen.type("1")
      yield* screen.until(/1\. Connect again[\s\S]*2\. Sign out/)
      yield* screen.type("2")
      yield* until("docs", ({ account }) => account === "wanted")
    }).pipe(Effect.scoped))

  it.live("says why a server is not there, and that there are none", () =>
    Effect.gen(function*() {
      const { screen, until } = yield* open(() => ({ gone: { command: ["/no/such"] } }))
      yield* until("gone", ({ status }) => status === "waiting")
      expect((yield* until("gone", () => true)).error).toContain("/no/such")
      yield* screen.until("The MCP server gone is not connected: its command could not be started")
      yield* screen.type("\x10")
      yield* screen.until(/1\. gone {2}not connected: its command could not be started/)
      yield* screen.type("\x1b")
      const { screen: other } = yield* open(() => ({}))
      yield* other.type("\x10")
      yield* other.until("There are no MCP servers here")
    }).pipe(Effect.scoped))
})

describe("a call that runs", () => {
  const shown = (progress: JsonValue, status: ToolCallView["status"] = "running") =>
    renderBlocks(
      toolCard(
        {
          callID: "c",
          name: "test_build",
          args: { target: "all" },
          argsText: "",
          status,
          output: "",
          progress,
          details: null,
          isError: false
        },
        null,
        { expanded: false }
      ),
      60
    )

  it("shows how far it is for as long as it runs, whatever a server says of that", () => {
    const title = "● test_build target=all"
    expect(shown({ progress: 2, total: 3, message: "linking\u001b[2J" })).toEqual([title, "  2/3  linking␛[2J"])
    expect(shown({ progress: 7, total: null, message: null })).toEqual([title, "  7"])
    expect(shown("half")).toEqual([title, "  half"])
    expect(shown({ progress: 1 }, "completed")).toEqual(["✓ test_build target=all"])
    for (const other of [null, 3, [1], {}, { toString: 1 }, { message: 2 }]) expect(shown(other)).toEqual([title])
  })
})

describe("a prompt of a server", () => {
  it.live("is a command that sends it, with what was typed in its places, and asks for what is missing", () =>
    Effect.gen(function*() {
      const { commands, model, screen } = yield* open(plain, ["one", "two"])
      const known = Effect.map(commands, (all) => all.some(({ value }) => value.slash === "test:review"))
      yield* Effect.repeat(Effect.andThen(Effect.sleep("10 millis"), known), { until: (is) => is })
      const asked = (count: number) => eventually(() => model.requests.length === count)
      yield* screen.type("\x12")
      yield* asked(1)
      const sent = () => JSON.stringify(model.requests.at(-1)?.messages.findLast(({ role }) => role === "user"))
      expect(sent()).toContain(JSON.stringify('Review {"file":"a.ts","how":"in short"}').slice(1, -1))
      expect(sent()).toContain("iVBORw0KGgo=")
      yield* screen.type("\x05")
      yield* screen.until("review: file")
      yield* screen.type("b.ts\r")
      yield* asked(2)
      expect(sent()).toContain(JSON.stringify('Review {"file":"b.ts"}').slice(1, -1))
    }).pipe(Effect.scoped))

  it("is called by its server and its name, and nothing else is such a call", () => {
    expect(parsePromptCall("/test:review a.ts  b")).toEqual({ name: "test:review", words: "a.ts  b" })
    expect(parsePromptCall(" /test:review")).toEqual({ name: "test:review", words: "" })
    for (const text of ["/review a:b", "test:review", "/etc/hosts:3", "/:x", "/x:", "see /test:review"]) {
      expect([text, parsePromptCall(text)]).toEqual([text, null])
    }
  })

  it("takes words in order, the last place the rest", () => {
    const prompt = {
      name: "p",
      description: "",
      arguments: [{ name: "a", required: true }, { name: "b", required: false }]
    }
    expect(placesOf(prompt, "")).toEqual({})
    expect(placesOf(prompt, " one ")).toEqual({ a: "one" })
    expect(placesOf(prompt, "one two  three")).toEqual({ a: "one", b: "two three" })
    expect(placesOf({ ...prompt, arguments: [] }, "ignored")).toEqual({})
  })
})
