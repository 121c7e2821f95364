import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"

const provider = (version: string) => `
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
const createAcme = (options) => options.headers?.team === "none" ? options.missing.thing : ({
  languageModel: (id) => ({
    specificationVersion: "${version}", provider: "acme", modelId: id, supportedUrls: {},
    doStream: async () => id === "broken" ? undefined.stream : ({
      stream: new ReadableStream({
        start(controller) {
          if (id === "half") return controller.enqueue({ type: "finish" })
          const say = JSON.stringify({ id, ...options, fetch: typeof options.fetch })
          for (const part of [
            { type: "stream-start", warnings: [] },
            { type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: say }, { type: "text-end", id: "1" },
            { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage }
          ]) controller.enqueue(part)
          controller.close()
        }
      })
    })
  })
})
exports.createAcme = createAcme
exports.acme = createAcme({})
`

const withProvider = (home: Home, version: string) => {
  const folder = ".config/bezel/plugins/node_modules/@acme/ai"
  home.write(`${folder}/package.json`, JSON.stringify({ name: "@acme/ai", version: "1.0.0", main: "index.cjs" }))
  home.write(`${folder}/index.cjs`, provider(version))
}

const acme = (headers: object) => ({ acme: { package: "@acme/ai", options: { apiKey: "k-1", headers } } })
const settings = { model: "acme/large", providers: acme({ team: "a" }) }

describe("a provider package that settings name", { timeout: 60_000 }, () => {
  it("is loaded from the user's plugin folder and gets the provider's options", async () => {
    const home = makeHome()
    withProvider(home, "v4")
    home.settings(settings)
    const ended = await home.run(["run", "hello"])
    expect(ended).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse(ended.stdout)).toEqual({
      id: "large",
      name: "acme",
      apiKey: "k-1",
      headers: { team: "a" },
      fetch: "function"
    })
  })

  it.each([
    ["in its answer", { model: "acme/broken" }, /reading 'stream'/],
    ["with what it streams", { model: "acme/half" }, /finishReason/],
    ["before it is asked", { providers: acme({ team: "none" }) }, /reading 'thing'/]
  ])("that has a fault of its own %s is named, and asked once", async (_, more, fault) => {
    const home = makeHome()
    withProvider(home, "v4")
    home.settings({ ...settings, ...more })
    const ended = await home.run(["run", "hello"])
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(fault) })
    expect(ended.stderr).toMatch(/^bezel: [^\n]*The package @acme\/ai failed by a fault of its own[^\n]*\n$/)
  })

  it("that is not installed is told with the command that installs it", async () => {
    const home = makeHome()
    home.settings(settings)
    expect(await home.run(["run", "hello"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/@acme\/ai of the provider acme is not installed.*bezel plugin add @acme\/ai/)
    })
  })

  it("that is for another version of the AI SDK is told so", async () => {
    const home = makeHome()
    withProvider(home, "v2")
    home.settings(settings)
    expect(await home.run(["run", "hello"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/version v2 of the AI SDK's interface, and v4 is needed/)
    })
  })
})
