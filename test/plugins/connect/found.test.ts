/** Where servers of this machine are looked for, and which of many models come first. */
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { byLikelihood } from "../../../packages/plugins/src/connect/likely.ts"
import { localServers } from "../../../packages/plugins/src/connect/local-servers.ts"

const ollamaAt = (host: string | undefined) =>
  localServers.pipe(
    Effect.map((servers) => servers[0]?.url),
    Effect.provideService(
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromUnknown(host === undefined ? {} : { OLLAMA_HOST: host })
    )
  )

describe("servers of this machine", () => {
  it.effect.each([
    [undefined, "http://127.0.0.1:11434/v1"],
    ["", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0:8000", "http://127.0.0.1:8000/v1"],
    [":8000", "http://127.0.0.1:8000/v1"],
    ["box", "http://box:11434/v1"],
    ["https://box.example/", "https://box.example/v1"],
    ["http://[::]:11434", "http://127.0.0.1:11434/v1"],
    ["not a host", "http://127.0.0.1:11434/v1"]
  ])("OLLAMA_HOST=%s is %s", ([host, url]) =>
    Effect.gen(function*() {
      expect(yield* ollamaAt(host)).toBe(url)
    }))
})

const named = (...models: ReadonlyArray<string>) => models.map((model) => ({ model, name: model }))
const order = (...models: ReadonlyArray<string>) => byLikelihood(named(...models)).map(({ model }) => model)

describe("the order of models", () => {
  it("puts what answers before what embeds, speaks or draws, and keeps a short list otherwise", () => {
    expect(order("nomic-embed-text", "zephyr", "aya", "whisper-1")).toEqual([
      "zephyr",
      "aya",
      "nomic-embed-text",
      "whisper-1"
    ])
  })

  it("of a long list begins with the main line of its maker, the newest first", () => {
    const openAI = [
      "gpt-4-0613",
      "gpt-3.5-turbo",
      "gpt-5.2",
      "gpt-5.10",
      "gpt-5-mini",
      "gpt-4o",
      "gpt-image-1",
      "o3",
      "tts-1",
      "text-embedding-3-small",
      "davinci-002",
      "gpt-4.1"
    ]
    expect(order(...openAI).slice(0, 3)).toEqual(["gpt-5.10", "gpt-5.2", "gpt-4.1"])
    expect(new Set(order(...openAI).slice(-4))).toEqual(
      new Set(["gpt-image-1", "tts-1", "text-embedding-3-small", "davinci-002"])
    )
    expect(order("claude-haiku-5", "claude-sonnet-5", "claude-opus-5")).toEqual([
      "claude-opus-5",
      "claude-sonnet-5",
      "claude-haiku-5"
    ])
  })
})
