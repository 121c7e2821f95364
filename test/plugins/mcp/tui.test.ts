/** `/mcp` and prompts as commands, on a terminal in memory over a real session host and a real server. */
import { makePresentation, Plugin } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { text, type ToolCallView, type TuiContext } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parsePromptCall, placesOf } from "../../../packages/plugins/src/mcp/prompts.ts"
import { tui } from "../../../packages/plugins/src/mcp/tui.ts"
import { toolCard } from "../../../packages/tui/src/card.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { eventually, program, world } from "./world.ts"

const open = (servers: Parameters<typeof world>[0], script: Parameters<typeof world>[1] = []) =>
  Effect.gen(function*() {
    const made = yield* world(servers, script)
    const { host, sessionID } = made
    const there: { commands: TuiContext["commands"] | null } = { commands: null }
    const screen = yield* testTerminal({
      presentation: yield* makePresentation({ connection: yield* host.connect(sessionID), location: host.location }),
      plugins: Plugin.sources("tui", [
        Plugin.define({ id: "bezel.mcp", tui }),
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
