/** The list of models through the command: what ships, what a person wrote down, and what providers say. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"

/** A provider's `GET /models`, which answers in turn. */
const provider = async (...answers: ReadonlyArray<(request: IncomingMessage, response: ServerResponse) => void>) => {
  const requests: Array<IncomingMessage> = []
  const server = createServer((request, response) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)]
    requests.push(request)
    answer?.(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/v1`
  return {
    url,
    requests,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

const models = (...data: ReadonlyArray<object>) => (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ data }))

const use = (home: Home, baseURL: string, more: object = {}) =>
  home.settings({
    providers: { mine: { package: "@ai-sdk/openai-compatible", options: { baseURL, apiKey: "k-secret" }, ...more } }
  })

const listed = async (home: Home, ...argv: ReadonlyArray<string>) => {
  const ended = await home.run(["model", "list", ...argv])
  return { ...ended, mine: ended.stdout.split("\n").filter((line) => line.startsWith("mine/")) }
}

describe("bezel model list --refresh", { timeout: 60_000 }, () => {
  it("asks the provider with its key, and what it says is known from then on", async () => {
    const server = await provider(
      models({ id: "large", name: "Large\u001b[2J One" }, { id: "org/small" }, { id: "two words" })
    )
    const home = makeHome()
    use(home, server.url)
    expect((await listed(home)).mine).toEqual([])
    const first = await listed(home, "--refresh")
    expect(first).toMatchObject({ code: 0, stderr: "" })
    expect(first.mine).toEqual(["mine/large                   Large [2J One", "mine/org/small               org/small"])
    expect(server.requests[0]?.url).toBe("/v1/models")
    expect(server.requests[0]?.headers.authorization).toBe("Bearer k-secret")
    expect((await listed(home)).mine).toEqual(first.mine)
    expect(server.requests).toHaveLength(1)
    server.close()
  })

  it("tells of each provider that does not answer as it should, and keeps what was known of it", async () => {
    const server = await provider(
      models({ id: "large" }),
      (_, response) => void response.writeHead(500).end("k-secret"),
      (_, response) => void response.end("<html>"),
      (_, response) => void response.end("x".repeat(5_000_000)),
      (_, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      (_, response) => void response.destroy()
    )
    const home = makeHome()
    use(home, server.url)
    expect((await listed(home, "--refresh")).mine).toHaveLength(1)
    const said = [
      "it answered with status 500",
      "its answer is no list of models",
      "it could not be reached",
      "it could not be reached",
      "it could not be reached"
    ]
    for (const why of said) {
      const ended = await listed(home, "--refresh")
      expect(ended).toMatchObject({ code: 0, stderr: `bezel: mine did not say which models it has: ${why}.\n` })
      expect(ended.mine).toHaveLength(1)
    }
    server.close()
  })

  it("leaves alone a provider whose models the settings list", async () => {
    const server = await provider(models({ id: "large" }))
    const home = makeHome()
    use(home, server.url, { models: { only: { name: "Only" } } })
    expect((await listed(home, "--refresh")).mine).toEqual(["mine/only                    Only"])
    expect(server.requests).toHaveLength(0)
    server.close()
  })
})

describe("a person's models.json", { timeout: 60_000 }, () => {
  it("adds models and says more of those that are known; the settings go before it", async () => {
    const home = makeHome()
    home.write(
      ".config/bezel/models.json",
      JSON.stringify({
        mine: { large: { name: "From the file", contextWindow: 1000 }, other: {} },
        anthropic: { "claude-new": { name: "New", contextWindow: 5 } }
      })
    )
    use(home, "http://127.0.0.1:1/v1", { models: { large: { maxOutput: 7, name: "From the settings" } } })
    const { stdout } = await home.run(["model", "list", "--json"])
    const all = stdout.trim().split("\n").map((line): { readonly [key: string]: unknown } => JSON.parse(line))
    expect(all.filter((model) => model["provider"] === "mine")).toMatchObject([
      { model: "large", name: "From the settings", contextWindow: 1000, maxOutput: 7 }
    ])
    expect(all.find((model) => model["model"] === "claude-new")).toMatchObject({ contextWindow: 5, name: "New" })
  })

  it("that is damaged is told with its fault, and the rest works", async () => {
    const home = makeHome()
    home.write(".config/bezel/models.json", '{ "mine": { "large": { "contextWindow": "much" } } }')
    use(home, "http://127.0.0.1:1/v1")
    const ended = await home.run(["run", "hello"])
    expect(ended.code).toBe(0)
    expect(ended.stderr).toMatch(/models\.json is not used: .*contextWindow/)
  })
})
