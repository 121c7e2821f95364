/**
 * A server that says nothing any more: how long it is waited for, and what is told then. The clock of timers is virtual; the
 * server and its connections are real.
 */
import type { ModelPart } from "@bezel/core/model"
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { once } from "node:events"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished, vi } from "vitest"
import { httpFetch } from "../../../packages/plugins/src/providers/http-fetch.ts"
import { chunk, model, request, sse, textOf, wires } from "./support.ts"

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
})
afterEach(() => {
  vi.useRealTimers()
})

const seconds = (count: number): void => {
  vi.advanceTimersByTime(count * 1_000)
}

/** A server that takes a request and does no more; what it is asked comes one by one. */
const quiet = async () => {
  const server = http.createServer()
  const asked: Array<http.ServerResponse> = []
  let closed = 0
  server.on("request", (request, response) => {
    request.resume()
    response.on("close", () => closed++)
    asked.push(response)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, asked, closed: () => closed }
}

/** Without timers, so that the virtual ones stay where they are. */
const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

describe("a server that is silent", () => {
  it("before its answer is waited for five minutes, and told", async () => {
    const { asked, closed, url } = await quiet()
    let failure: unknown
    const sent = httpFetch(url, { method: "POST", body: "x" }).catch((error: unknown) => {
      failure = error
    })
    await until(() => asked.length === 1)
    seconds(299)
    await new Promise((resolve) => setImmediate(resolve))
    expect(failure).toBeUndefined()
    seconds(2)
    await sent
    expect(failure).toMatchObject({ cause: { message: "nothing was heard for 300 s" } })
    await until(() => closed() === 1)
  })

  it("within its answer has five minutes from each piece on", async () => {
    const { asked, closed, url } = await quiet()
    const sent = httpFetch(url)
    await until(() => asked.length === 1)
    // What it has thought about before counts for nothing here.
    seconds(200)
    asked[0]?.write("one")
    const { body } = await sent
    if (body === null) throw new Error("no body")
    const reader = body.getReader()
    const text = async () => new TextDecoder().decode((await reader.read()).value)
    expect(await text()).toBe("one")
    for (const piece of ["two", "three"]) {
      const next = text()
      await new Promise((resolve) => setImmediate(resolve))
      seconds(299)
      asked[0]?.write(piece)
      expect(await next).toBe(piece)
    }
    const last = reader.read().then(() => null, (error: unknown) => error)
    await new Promise((resolve) => setImmediate(resolve))
    seconds(301)
    expect(await last).toMatchObject({ message: "nothing was heard for 300 s" })
    await until(() => closed() === 1)
  })

  it("is not taken for silent while nobody reads what it has said", async () => {
    const { asked, url } = await quiet()
    const sent = httpFetch(url)
    await until(() => asked.length === 1)
    asked[0]?.write("one")
    const response = await sent
    seconds(3_600)
    asked[0]?.end("two")
    expect(await response.text()).toBe("onetwo")
  })

  it.each(wires)("ends a model's answer as a broken connection, with what there was (%s)", async (wire) => {
    const { asked, closed, url } = await quiet()
    const parts: Array<ModelPart> = []
    const ended = Effect.runPromise(
      Effect.flip(
        Effect.flatMap(
          model(wire, url),
          (one) => Stream.runForEach(one.stream(request()), (part) => Effect.sync(() => parts.push(part)))
        )
      )
    )
    await until(() => asked.length === 1)
    asked[0]?.writeHead(200, { "content-type": "text/event-stream" })
    asked[0]?.write(
      wire === "openai"
        ? sse(chunk({ role: "assistant", content: "half" }))
        : sse(
          { type: "message_start", message: { id: "m", role: "assistant", content: [], usage: { input_tokens: 1 } } },
          { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "half" } }
        )
    )
    // Once that is read somebody waits for more.
    await until(() => textOf(parts) === "half" && vi.getTimerCount() > 0)
    seconds(301)
    const error = await ended
    expect(error).toMatchObject({ kind: "transport", retryable: true })
    expect(error.message).toContain("The connection to Local broke: nothing was heard for 300 s")
    await until(() => closed() === 1)
  })

  it("leaves no timer behind once it has answered", async () => {
    const { asked, url } = await quiet()
    const sent = httpFetch(url)
    await until(() => asked.length === 1)
    asked[0]?.end("all")
    expect(await (await sent).text()).toBe("all")
    expect(vi.getTimerCount()).toBe(0)
  })
})
