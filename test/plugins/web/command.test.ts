import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"

const page = () =>
  new Promise<number>((resolve) => {
    const server = http.createServer((_, response) => {
      response.setHeader("content-type", "text/html").end("<title>T</title><p>Hello <b>web</b></p>")
    }).listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
    onTestFinished(() => void server.close())
  })

describe("bezel run with web_fetch", () => {
  it("asks by host, and refuses this machine unless a setting names it", async () => {
    const home = makeHome()
    const port = await page()
    const url = `http://127.0.0.1:${port}/`
    const server = await serve()
    home.useServer(server)
    const fetched = async (options: ReadonlyArray<string>) => {
      server.reply({ calls: [{ name: "web_fetch", args: { url } }] }, { text: "ok" })
      const { code } = await home.run(["run", ...options, "go"])
      return [code, JSON.stringify(messagesOf(server.requests.at(-1)?.body).at(-1)?.content)]
    }
    expect(await fetched([])).toEqual([
      3,
      expect.stringMatching(new RegExp(`No rule allows web of .*127\\.0\\.0\\.1:${port}`))
    ])
    expect(await fetched(["--allow", `web(127.0.0.1:${port})`])).toEqual([
      0,
      expect.stringContaining("private network")
    ])
    home.useServer(server, { web: { privateHosts: ["127.0.0.1"] }, permissions: { web: { "127.0.0.1*": "allow" } } })
    expect(await fetched([])).toEqual([0, expect.stringContaining("# T\\n\\nHello **web**")])
    expect(await fetched(["--deny", "web(127.*)"])).toEqual([
      0,
      expect.stringContaining("A permission rule denies this call")
    ])
  })
})

describe("bezel run with web_fetch behind a proxy", () => {
  it("fetches through it what this machine cannot look up, and still nothing that is known to be private", async () => {
    const home = makeHome()
    const asked: Array<string> = []
    const proxy = http.createServer((request, response) => {
      asked.push(String(request.url))
      response.setHeader("content-type", "text/plain").end("through the proxy")
    })
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void proxy.close())
    const server = await serve(
      {
        calls: ["http://far.invalid/page", "http://localhost:1/", "http://127.0.0.1:1/"].map((url) => ({
          name: "web_fetch",
          args: { url }
        }))
      },
      { text: "ok" }
    )
    home.useServer(server)
    const env = {
      HTTP_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      NO_PROXY: new URL(server.url).host
    }
    expect((await home.run(["run", "--allow", "web", "go"], { env })).stdout).toBe("ok\n")
    const told = messagesOf(server.requests[1]?.body).filter(({ role }) => role === "tool").map(({ content }) =>
      String(content)
    )
    expect(told.filter((text) => text === "through the proxy")).toHaveLength(1)
    expect(told.filter((text) => text.includes("private network"))).toHaveLength(2)
    expect(asked).toEqual(["http://far.invalid/page"])
  })
})
