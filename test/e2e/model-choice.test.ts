/**
 * Models through the command: what of a conversation goes to which model over which wire, what it cost, and how a choice of
 * model and thinking follows a conversation, also back.
 */
import { describe, expect, it } from "vitest"
import type { JsonObject, JsonValue } from "../../packages/core/src/json/index.ts"
import type { ModelServer, RecordedRequest } from "../../packages/core/src/testing/model-server.ts"
import { type Home, makeHome } from "./command.ts"
import { messagesOf, serve } from "./run-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const signature = `Eq+/==${'"ü'.repeat(20)}\\`
const mark = { type: "ephemeral" }

/** Two providers at one server, one of each wire; `claude-a` thinks and costs. */
const useWires = (home: Home, server: ModelServer) =>
  home.settings({
    model: "anthropic/claude-a",
    providers: {
      anthropic: {
        options: { baseURL: server.url, apiKey: "k-anthropic" },
        models: {
          "claude-a": { name: "A", reasoning: true, maxOutput: 4_096, cost: { input: 3, output: 15, cacheRead: 0.3 } },
          "claude-b": { name: "B", reasoning: true, maxOutput: 4_096 }
        }
      },
      test: {
        package: "@ai-sdk/openai-compatible",
        options: { baseURL: server.url, apiKey: "k" },
        models: { m: { name: "M" }, n: { name: "N", reasoning: true } }
      }
    }
  })

const contentOf = (request: RecordedRequest | undefined, index: number) => {
  const content = messagesOf(request?.body).at(index)?.content
  return (Array.isArray(content) ? content : []) as ReadonlyArray<JsonObject>
}

/** How often a member of this name occurs. */
const count = (value: JsonValue, name: string): number => JSON.stringify(value).split(`"${name}":`).length - 1

describe("a conversation with a model that thinks", { timeout: 60_000 }, () => {
  it("hands its reasoning back byte for byte, to it alone, with marks for the cache, and says what it cost", async () => {
    const home = makeHome()
    home.write("work/a.txt", "A\n")
    const server = await serve(
      {
        reasoning: ["let me ", "look"],
        signature,
        text: "I look.",
        calls: [{ name: "read", args: { path: "a.txt" } }],
        usage: { input: 1_000, output: 100, cacheRead: 500 }
      },
      { text: "It says A.", usage: { input: 2_000, output: 200, cacheRead: 1_000 } }
    )
    useWires(home, server)
    const ended = await home.run(["run", "--json", "look at a.txt"])
    expect(ended.code).toBe(0)
    const [first, second] = server.requests
    expect([first?.path, first?.headers["x-api-key"], first?.body.model]).toEqual([
      "/v1/messages",
      "k-anthropic",
      "claude-a"
    ])
    expect(first?.body.system).toMatchObject([{ type: "text", cache_control: mark }])
    expect(contentOf(second, 1)).toMatchObject([
      { type: "thinking", thinking: "let me look", signature },
      { type: "text", text: "I look." },
      { type: "tool_use", name: "read", input: { path: "a.txt" } }
    ])
    // After the system text, which the requests share, and at the end of what the next one will share.
    expect(second?.body.system).toEqual(first?.body.system)
    expect(contentOf(second, -1)).toMatchObject([{ type: "tool_result", cache_control: mark }])
    expect(count(second?.body ?? {}, "cache_control")).toBe(2)
    const { usage } = ended.lines().at(-1) ?? { usage: null }
    expect(usage).toMatchObject({ input: 3_000, output: 300, cacheRead: 1_500 })
    // 1,500 tokens at 3, 1,500 from the cache at 0.3 and 300 of output at 15 dollars a million.
    expect((usage as { readonly cost: number }).cost).toBeCloseTo(0.0045 + 0.00045 + 0.0045, 10)

    server.always({ text: "ok" })
    await home.run(["run", "--continue", "--model", "test/m", "and you?"])
    await home.run(["run", "--continue", "--model", "anthropic/claude-b", "and you?"])
    await home.run(["run", "--continue", "--model", "anthropic/claude-a", "and you again?"])
    const [other, sibling, same] = server.requests.slice(2)
    expect([other?.path, other?.body.model]).toEqual(["/v1/chat/completions", "m"])
    for (const request of [other, sibling]) {
      expect(JSON.stringify(request?.body)).toContain("I look.")
      expect(JSON.stringify(request?.body)).not.toContain("let me look")
      expect(count(request?.body ?? {}, "signature")).toBe(0)
    }
    expect(contentOf(same, 1)[0]).toEqual({ type: "thinking", thinking: "let me look", signature })
  })
})

describe("a choice of model and thinking", { timeout: 60_000 }, () => {
  it("is the conversation's, in later runs too, and leaves others with the default", async () => {
    const home = makeHome()
    const server = await serve()
    server.always({ text: "ok" })
    useWires(home, server)
    await home.run(["run", "--model", "test/m", "one"])
    await home.run(["run", "--continue", "two"])
    await home.run(["run", "three"])
    expect(server.requests.map(({ body }) => body.model)).toEqual(["m", "m", "claude-a"])
  })

  it("in the terminal is taken back with the turn that followed it, and one that there is not changes nothing", async () => {
    const home = makeHome()
    const server = await serve()
    server.always((request) => ({ text: `Answer ${server.requests.length} of ${String(request.body.model)}.` }))
    useWires(home, server)
    const terminal = runInTerminal(home, "bezel --model test/m")
    await terminal.shows(/test\/m/)
    terminal.type("first\r")
    await terminal.shows(/Answer 1 of m\./)
    terminal.type("/model nowhere/x\r")
    await terminal.shows(/There is no provider "?nowhere/)
    terminal.type("second\r")
    await terminal.shows(/Answer 2 of m\./)
    terminal.type("/model test/n\r")
    await terminal.shows(/test\/n/)
    terminal.type("\u0014")
    await terminal.shows(/Thinking: low/)
    terminal.type("third\r")
    await terminal.shows(/Answer 3 of n\./)
    // Twice: the choice came behind the second prompt.
    for (const prompt of ["third", "second"]) {
      terminal.type("/undo\r")
      await terminal.shows(/Take this back\?[\s\S]*enter choose · esc cancel/)
      terminal.type("\r")
      // The prompt is in the editor again, which is emptied for the next.
      await terminal.shows(new RegExp(`taken back: ${prompt}[^]*─\\n\\s*${prompt}\\s*\\n─`))
      terminal.type("\u0015")
    }
    terminal.type("fourth\r")
    await terminal.shows(/Answer 4 of m\./)
    expect(server.requests.map(({ body }) => body.reasoning_effort)).toEqual([undefined, undefined, "low", undefined])
  })

  it("is of what providers say that they have, as soon as they are asked; who does not say is named", async () => {
    const home = makeHome()
    const server = await serve()
    server.always(({ path }) =>
      path.endsWith("/models") ? { status: 200, json: { data: [{ id: "fresh", name: "Fresh One" }] } } : { text: "ok" }
    )
    const at = (baseURL: string) => ({ package: "@ai-sdk/openai-compatible", options: { baseURL } })
    home.settings({ model: "bezel/offline", providers: { mine: at(server.url), gone: at("http://127.0.0.1:1/v1") } })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("/models\r")
    await terminal.shows(
      /The providers have 1 model\. gone did not say which models it has: it could not\s+be reached\./
    )
    terminal.type("/model\r")
    await terminal.shows(/mine\/fresh +Fresh One[\s\S]*enter choose · esc cancel/)
    terminal.type("fresh")
    await terminal.shows(/› 1\. mine\/fresh/)
    terminal.type("\r")
    await terminal.shows(/ mine\/fresh$/m)
    terminal.type("hello\r")
    await terminal.shows(/^ok$/m)
    expect(server.requests.map(({ body, path }) => [path, body.model])).toEqual([
      ["/v1/models", undefined],
      ["/v1/chat/completions", "fresh"]
    ])
  })
})
