/** How servers come, go and come back, and what they cannot do to anybody. */
import { call } from "@bezel/core/testing"
import type { McpServerState } from "@bezel/plugins/mcp"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { eventually, isAlive, program, starts, world } from "./world.ts"

const mode = (name: string) => (folder: string) => ({ test: { command: program(name, folder) } })

/** Lets everything happen that does not wait for time. */
const running = (folder: string) => eventually(() => existsSync(join(folder, "ready")))

/** It waits for time: while what is left of its process ends it waits already, but not yet for that. */
const resting = ({ retryAt, status }: McpServerState) =>
  status === "failed" || (status === "waiting" && retryAt !== null)

/** Lets virtual time pass until a fiber is done; gives how much of it that took. */
const secondsUntil = (fiber: Fiber.Fiber<unknown, unknown>) =>
  Effect.gen(function*() {
    for (let seconds = 0;; seconds++) {
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      if (fiber.pollUnsafe() !== undefined) return seconds
      yield* TestClock.adjust("1 second")
    }
  })

describe("a location", () => {
  it.effect("without servers has none, and says so", () =>
    Effect.gen(function*() {
      const { connections, model, host, sessionID } = yield* world(() => ({}), ["ok"])
      yield* connections.settled
      expect(yield* connections.list).toEqual([])
      yield* host.ask(sessionID, "go")
      expect(model.requests[0]?.tools).toEqual([])
    }).pipe(Effect.scoped))

  it.effect("is there although a server never answers, which is told once its time is over", () =>
    Effect.gen(function*() {
      const { connections, folder, host, model, sessionID, until } = yield* world(mode("silent"), ["ok", "two"])
      yield* running(folder)
      const asked = yield* Effect.forkScoped(host.ask(sessionID, "go"))
      expect((yield* until("test", () => true)).status).toBe("starting")
      expect(yield* secondsUntil(asked)).toBeLessThan(12)
      expect(yield* Fiber.join(asked)).toBe("ok")
      expect(model.requests[0]?.tools).toEqual([])
      // A second request does not wait again.
      expect(yield* host.ask(sessionID, "go on")).toBe("two")
      yield* TestClock.adjust("30 seconds")
      const state = yield* until("test", ({ status }) => status === "waiting")
      expect(state).toMatchObject({ error: "it did not answer within 30s", tools: [] })
      yield* connections.settled
      expect((yield* connections.list)[0]?.status).toBe("waiting")
      expect(starts(folder).map(isAlive)).toEqual([false])
    }).pipe(Effect.scoped))
})

describe("a server that dies", () => {
  it.effect("comes back by itself and keeps its tools meanwhile; what ran says that it is unknown what became of it", () =>
    Effect.gen(function*() {
      const { folder, host, model, results, sessionID, until } = yield* world(mode("plain"), [
        [call("test_die", {})],
        "one",
        [call("test_echo", { text: "again" })],
        "two"
      ])
      expect(yield* host.ask(sessionID, "go")).toBe("one")
      expect(results()[0]).toMatchObject({
        isFailure: true,
        result: "The MCP server test: the connection was lost while this call ran; whether it took effect is unknown."
      })
      const state = yield* until("test", resting)
      expect(state.error).toBe("its process ended with exit code 3")
      expect(state.tools).toContain("test_echo")
      expect(model.requests.at(-1)?.tools.map(({ name }) => name)).toContain("test_echo")
      yield* TestClock.adjust("1 second")
      yield* until("test", ({ status }) => status === "ready")
      expect(starts(folder)).toHaveLength(2)
      expect(yield* host.ask(sessionID, "go on")).toBe("two")
      expect(results()[0]).toMatchObject({ isFailure: false, result: '{"text":"again"}' })
    }).pipe(Effect.scoped))

  it.effect("is brought back by a call that needs it, which then runs", () =>
    Effect.gen(function*() {
      const { folder, host, results, sessionID, until } = yield* world(mode("plain"), [
        [call("test_dieQuietly", {})],
        "one",
        [call("test_echo", { text: "again" })],
        "two"
      ])
      yield* host.ask(sessionID, "go")
      expect((yield* until("test", ({ status }) => status === "waiting")).error).toBe(
        "its process was ended by SIGKILL"
      )
      expect(yield* host.ask(sessionID, "go on")).toBe("two")
      expect(results()[0]).toMatchObject({ isFailure: false })
      expect(starts(folder)).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.effect("and cannot come back fails calls with a clear sentence, and is left alone after some tries", () =>
    Effect.gen(function*() {
      const { folder, host, remote, results, sessionID, until } = yield* world(mode("down"), [
        [call("test_die", {})],
        "one",
        [call("test_echo", { text: "again" })],
        "two"
      ])
      yield* host.ask(sessionID, "go")
      writeFileSync(join(folder, "down"), "")
      yield* until("test", ({ status }) => status === "waiting")
      expect(yield* host.ask(sessionID, "go on")).toBe("two")
      expect(results()[0]).toMatchObject({
        isFailure: true,
        result: expect.stringMatching(
          /^The MCP server test: it is not connected \(its process ended with exit code 7, after it wrote: \[31mcannot start \[0m today\)\.$/
        )
      })
      for (let tries = starts(folder).length; tries < 9; tries = starts(folder).length) {
        const { retryAt } = yield* until("test", resting)
        if (retryAt === null) break
        yield* TestClock.setTime(retryAt)
        yield* eventually(() => starts(folder).length > tries)
      }
      const { tools } = yield* until("test", ({ status }) => status === "failed")
      expect(tools).toContain("test_echo")
      rmSync(join(folder, "down"))
      yield* remote.reconnect({ name: "test" })
      yield* until("test", ({ status }) => status === "ready")
    }).pipe(Effect.scoped))
})

describe("a person", () => {
  it.effect("disables and enables a server, and is told of one that is not there", () =>
    Effect.gen(function*() {
      const { folder, host, model, remote, sessionID, until } = yield* world(mode("plain"), ["one", "two", "three"])
      yield* host.ask(sessionID, "1")
      yield* remote.enable({ name: "test", enabled: false })
      expect(yield* until("test", ({ status }) => status === "disabled")).toMatchObject({ tools: [], error: null })
      expect(starts(folder).map(isAlive)).toEqual([false])
      yield* host.ask(sessionID, "2")
      expect(model.requests.map(({ tools }) => tools.length > 0)).toEqual([true, false])
      yield* remote.enable({ name: "test", enabled: true })
      yield* until("test", ({ status }) => status === "ready")
      yield* host.ask(sessionID, "3")
      expect(model.requests[2]?.tools).toEqual(model.requests[0]?.tools)
      const unknown = yield* Effect.result(remote.reconnect({ name: "none" }))
      expect(Result.isFailure(unknown) && unknown.failure.message).toBe('There is no MCP server "none" here.')
    }).pipe(Effect.scoped))

  it.effect("gets a prompt with the places filled in, as text and files", () =>
    Effect.gen(function*() {
      const { remote, until } = yield* world(mode("plain"))
      const { prompts, title } = yield* until("test", ({ status }) => status === "ready")
      expect(title).toBe("Test [2J server")
      expect(prompts).toEqual([{
        name: "review",
        description: "Reviews [2J code",
        arguments: [{ name: "file", required: true }, { name: "how", required: false }]
      }])
      expect(yield* remote.prompt({ name: "test", prompt: "review", arguments: { file: "a.ts" } })).toEqual({
        text: 'Review {"file":"a.ts"}\n\n(as you would answer:)\nGladly.',
        files: [{ type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" }]
      })
    }).pipe(Effect.scoped))
})

describe("resources", () => {
  it.effect("are listed and read by tools, patterns among them", () =>
    Effect.gen(function*() {
      const { host, results, sessionID } = yield* world(mode("plain"), [[
        call("list_mcp_resources", {}),
        call("read_mcp_resource", { server: "test", uri: "note:1" }),
        call("read_mcp_resource", { server: "test", uri: "note:9" }),
        call("read_mcp_resource", { server: "other", uri: "note:1" })
      ], "ok"])
      yield* host.ask(sessionID, "go")
      expect(results().map(({ result }) => result)).toEqual([
        "Server test:\nnote:1  one, text/plain\nnote:{n}  any note",
        "note:1:\nthe note",
        "The resource is empty.",
        'There is no MCP server "other"; there are test.'
      ])
    }).pipe(Effect.scoped))
})

describe("a hostile server", () => {
  it.effect("costs no more than what is left out of it", () =>
    Effect.gen(function*() {
      const { host, model, sessionID, until } = yield* world(mode("hostile"), ["ok"])
      yield* host.ask(sessionID, "go")
      const tools = model.requests[0]?.tools ?? []
      for (const { name } of tools) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      expect(tools.filter(({ name }) => name.startsWith("test_")).map(({ name }) => name.slice(0, 14))).toEqual([
        "test_bare",
        "test_ec_ho__2J",
        "test_echo",
        "test_nnnnnnnnn"
      ])
      expect(JSON.stringify(model.requests[0]).length).toBeLessThan(20_000)
      const { problems } = yield* until("test", ({ status }) => status === "ready")
      expect(problems).toEqual([
        'It lists the tool "echo" twice; the first one counts.',
        "One of its tools is left out: its description is not valid.",
        'The tool "wide" is left out: the schema of its arguments is too large.',
        'The tool "ec_ho__2J" is left out: there is a tool test_ec_ho__2J of the server test already.'
      ])
      expect(problems.join()).not.toContain("\u001b")
    }).pipe(Effect.scoped))

  it.effect("that lists tools without end is cut off", () =>
    Effect.gen(function*() {
      const { until } = yield* world(mode("endless"))
      const { problems, tools } = yield* until("test", ({ status }) => status === "ready")
      expect(tools).toHaveLength(500)
      expect(problems).toEqual(["It lists more than 500 of its tools; the rest is left out."])
    }).pipe(Effect.scoped))

  it.effect("that writes anything but the protocol is disconnected", () =>
    Effect.gen(function*() {
      const { host, sessionID, until } = yield* world(mode("plain"), [[call("test_garbage", { lines: 6_000 })], "ok"])
      yield* host.ask(sessionID, "go")
      const state = yield* until("test", ({ status }) => status === "waiting")
      expect(state.error).toBe("what it writes is not the protocol")
    }).pipe(Effect.scoped))

  it.effect("whose too long answer does not say whose it is is disconnected", () =>
    Effect.gen(function*() {
      const { host, results, sessionID, until } = yield* world(mode("plain"), [[
        call("test_big", { bytes: 40_000_000, id: false })
      ], "ok"])
      yield* host.ask(sessionID, "go")
      expect(results()[0]).toMatchObject({
        isFailure: true,
        result: expect.stringContaining("the connection was lost")
      })
      const state = yield* until("test", ({ status }) => status === "waiting")
      expect(state.error).toBe("it sent a message of 38.2 MiB, and 32 MiB is the limit")
    }).pipe(Effect.scoped))
})
