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
