import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { makeHome } from "./command.ts"

const source = { env: { BEZEL_SOURCE: "1" } }

interface Span {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
}

interface Traces {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: unknown
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }>
  }>
}

/** A collector of OTLP over HTTP that keeps what it is sent. */
const startCollector = async () => {
  const requests: Array<{ readonly path: string; readonly token: unknown; readonly text: string }> = []
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part)).on("end", () => {
      requests.push({
        path: request.url ?? "",
        token: request.headers["x-token"],
        text: Buffer.concat(parts).toString()
      })
      response.end("{}")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.close()
  })
  const spans = () =>
    requests.flatMap(({ text }) => {
      const traces: Traces = JSON.parse(text)
      return traces.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
    })
  return { requests, spans, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe("traces", { timeout: 60_000 }, () => {
  it("go to the collector that the user's settings name, without what was said", async () => {
    const collector = await startCollector()
    const home = makeHome()
    home.write("work/note.txt", "canary-in-file\n")
    home.settings({ telemetry: { otlp: { endpoint: collector.url, headers: { "x-token": "t-1" } } } })
    const ended = await home.run(["run", "read note.txt then read missing-canary.txt"], source)
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("canary-in-file") })
    expect(new Set(collector.requests.map(({ path, token }) => `${path} ${token}`))).toEqual(
      new Set(["/v1/traces t-1"])
    )
    const spans = collector.spans()
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["SessionRuntime.prompt", "task.bezel.generation", "task.bezel.tool", "tool.settle"])
    )
    const settle = spans.find(({ name }) => name === "tool.settle")
    expect(spans.find(({ spanId }) => spanId === settle?.parentSpanId)?.name).toMatch(/^(task\.|Tool)/)
    const sent = collector.requests.map(({ text }) => text).join("")
    expect(sent).not.toContain("canary-in-file")
    expect(sent).not.toContain("read note.txt")
    // A failure is there with its type and its frames; its message may hold what somebody wrote.
    expect(sent).toContain("ToolFailure")
    expect(sent).not.toContain("missing-canary")
  })

  it("go nowhere where nothing names a collector, nor because a project does", async () => {
    const collector = await startCollector()
    const home = makeHome()
    home.write("work/bezel.jsonc", JSON.stringify({ telemetry: { otlp: { endpoint: collector.url } } }))
    home.settings('{ /* no telemetry */ "theme": "dark" }')
    expect(await home.run(["run", "--trust", "list"], source)).toMatchObject({ code: 0 })
    expect(collector.requests).toEqual([])
  })

  it("are lost without a word where the collector cannot be reached", async () => {
    const home = makeHome()
    home.settings({ telemetry: { otlp: { endpoint: "http://127.0.0.1:9" } } })
    const started = Date.now()
    expect(await home.run(["run", "list"], source)).toMatchObject({
      code: 0,
      stderr: expect.not.stringMatching(/error|fail/i)
    })
    expect(Date.now() - started).toBeLessThan(20_000)
  })
})
