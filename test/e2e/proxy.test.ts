/** The proxies of the environment, as a network that lets nothing else through needs them. */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"

/** A proxy for plain HTTP that takes every host for one server. */
const startProxy = async (target: number) => {
  const asked: Array<string> = []
  const server = http.createServer((request, response) => {
    asked.push(request.url ?? "")
    const { pathname } = new URL(request.url ?? "/", "http://nowhere")
    const onward = http.request(
      { host: "127.0.0.1", port: target, path: pathname, method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      }
    )
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

const settings = (baseURL: string) => ({
  model: "far/m",
  providers: { far: { package: "@ai-sdk/openai-compatible", options: { baseURL, apiKey: "k" }, models: { m: {} } } }
})

describe("a proxy of the environment", { timeout: 60_000 }, () => {
  it("is used for a model that only it can reach, and not for hosts that NO_PROXY names", async () => {
    const model = await startModelServer({ text: "through" }, { text: "direct" })
    const proxy = await startProxy(model.port)
    const home = makeHome()
    home.settings(settings("http://models.invalid/v1"))
    const env = { HTTP_PROXY: proxy.url, NO_PROXY: "127.0.0.1" }
    expect(await home.run(["run", "hello"], { env })).toMatchObject({ code: 0, stdout: "through\n" })
    expect(proxy.asked).toEqual(["http://models.invalid/v1/chat/completions"])
    home.settings(settings(model.url))
    expect(await home.run(["run", "hello"], { env })).toMatchObject({ code: 0, stdout: "direct\n" })
    expect(proxy.asked).toHaveLength(1)
    proxy.close()
    await model.close()
  })
})
