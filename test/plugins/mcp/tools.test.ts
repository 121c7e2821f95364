/** Tools of servers: how they are named, what a model is told, what becomes of results, progress and interruption. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { call } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schema, Stream } from "effect"
import { readFileSync } from "node:fs"
import { eventually, isAlive, marks, program, starts, world } from "./world.ts"

const plain = (folder: string) => ({ test: { command: program("plain", folder) } })

const resultOf = (name: string, args = {}) =>
  Effect.gen(function*() {
    const made = yield* world(plain, [[call(`test_${name}`, args)], "ok"])
    expect(yield* made.host.ask(made.sessionID, "go")).toBe("ok")
    const [result] = made.results()
    return { ...made, result }
  })

describe("what a model is offered", () => {
  it.live("are the tools of a server that is still starting when the first request is made, with the server's own schema", () =>
    Effect.gen(function*() {
      const { host, model, sessionID } = yield* world(plain, ["ok"])
      yield* host.ask(sessionID, "go")
      const names = model.requests[0]?.tools.map(({ name }) => name) ?? []
      expect(names).toEqual([...names].sort())
      expect(names).toContain("test_echo")
      expect(names).toContain("list_mcp_resources")
      expect(model.requests[0]?.tools.find(({ name }) => name === "test_echo")).toEqual({
        name: "test_echo",
        description: "echo of the test",
        inputSchema: { type: "object", properties: { text: { type: "string", minLength: 1 } } }
      })
      expect(JSON.stringify(model.requests[0]?.messages[0])).toContain("its author says:\\nBe kind.")
    }).pipe(Effect.scoped))

  it.live("changes when the server says so, at the next request", () =>
    Effect.gen(function*() {
      const { host, model, sessionID, until } = yield* world(plain, [[call("test_change", { tools: ["more"] })], "ok", [
        call("test_more", {})
      ], "two"])
      yield* host.ask(sessionID, "go")
      yield* until("test", ({ tools }) => tools.includes("test_more"))
      expect(yield* host.ask(sessionID, "go on")).toBe("two")
      expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain("extra")
    }).pipe(Effect.scoped))

  it.live("never takes the place of another plugin's tool, and says so", () =>
    Effect.gen(function*() {
      const other = (id: string, name: string) =>
        Plugin.define({
          id,
          session: (ctx) =>
            Effect.asVoid(ctx.tool.transform((draft) =>
              draft.set(
                name,
                tool({
                  description: "own",
                  input: Schema.Struct({}),
                  execute: () => Effect.succeed("own")
                })
              )
            ))
        })
      const { connections, host, model, sessionID } = yield* world(plain, ["ok"], {
        extra: [other("test.early", "test_echo")],
        later: [other("test.late", "test_env")]
      })
      yield* host.ask(sessionID, "go")
      for (const name of ["test_echo", "test_env"]) {
        expect(model.requests[0]?.tools.find((each) => each.name === name)?.description).toBe("own")
      }
      const [state] = yield* connections.list
      expect(state?.tools).not.toContain("test_echo")
      expect(state?.problems).toEqual([
        "The tool test_echo is left out: the plugin test.early has one of that name.",
        "The tool test_env is left out: the plugin test.late has one of that name."
      ])
    }).pipe(Effect.scoped))
})

describe("a result", () => {
  it.live("is what the server says, with the arguments as the model wrote them", () =>
    Effect.gen(function*() {
      const { result } = yield* resultOf("echo", { text: "hello", more: [1, null, { deep: true }] })
      expect(result).toMatchObject({ isFailure: false, result: '{"text":"hello","more":[1,null,{"deep":true}]}' })
    }).pipe(Effect.scoped))

  it.live("that is an error stays one, and one that is no result is told as such", () =>
    Effect.gen(function*() {
      expect((yield* resultOf("fails")).result).toMatchObject({ isFailure: true, result: "it went wrong" })
      expect((yield* resultOf("strange")).result).toMatchObject({
        isFailure: true,
        result: "The MCP server test: its answer is not the result of a call."
      })
      expect((yield* resultOf("nothing")).result).toMatchObject({ isFailure: false, result: "(no output)" })
    }).pipe(Effect.scoped))

  it.live("without content is its structured content, which is kept as details too", () =>
    Effect.gen(function*() {
      const { host, result, sessionID } = yield* resultOf("structured")
      expect(JSON.parse(String(result?.result))).toEqual({ temperature: 21, place: { name: "Lyon" } })
      const client = yield* host.connect(sessionID)
      const conversation = yield* client.use(Conversation, { key: conversationKey(sessionID, "c1") })
      yield* conversation.ready
      const entry = conversation.view.value?.entries.find(({ kind }) => kind === "bezel.tool_result")
      expect(entry?.data).toMatchObject({
        details: { server: "test", tool: "structured", structured: { temperature: 21 } }
      })
    }).pipe(Effect.scoped))

  it.live("shows images as files, keeps other bytes in a file, and describes the rest", () =>
    Effect.gen(function*() {
      const { result } = yield* resultOf("parts")
      const parts = result?.modelOutput ?? []
      expect(parts[0]).toEqual({ type: "text", text: "look:" })
      expect(parts[1]).toEqual({ type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" })
      const texts = parts.flatMap((part) => part.type === "text" ? [part.text] : [])
      expect(texts[1]).toBe("[An image of type image/png that cannot be read: it is not Base64.]")
      expect(texts[2]).toMatch(/^\[A sound of type audio\/wav, 3 bytes, kept in .*\.wav\]$/)
      expect(texts[3]).toBe("note:1:\na note")
      const kept = /kept in (.*\.pdf)\]$/.exec(texts[4] ?? "")?.[1] ?? ""
      expect(readFileSync(kept, "utf8")).toBe("Hello")
      expect(texts[5]).toBe("[A resource: note:2 (two: another [2J note)]")
      expect(texts[6]).toBe("[Something that is no kind of content that is known here.]")
    }).pipe(Effect.scoped))

  it.live("of 100 MB is an error of its call alone, and the connection goes on", () =>
    Effect.gen(function*() {
      const { folder, host, model, sessionID } = yield* world(plain, [[
        call("test_big", { bytes: 100_000_000 }),
        call("test_echo", { text: "beside" })
      ], "ok"])
      const before = process.memoryUsage().rss
      expect(yield* host.ask(sessionID, "go")).toBe("ok")
      const told = JSON.stringify(model.requests.at(-1)?.messages.at(-1))
      expect(told).toContain("its answer was a message of 95.4 MiB, and 32 MiB is the limit")
      expect(told).toContain("beside")
      expect(starts(folder)).toHaveLength(1)
      expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000)
    }).pipe(Effect.scoped), 30_000)

  it.live("of 1 MB is bounded like that of any tool, and the rest is in a file", () =>
    Effect.gen(function*() {
      const { result } = yield* resultOf("big", { bytes: 1_000_000 })
      expect(String(result?.result).length).toBeLessThan(70_000)
      const kept = /(\/\S+\.txt)/.exec(String(result?.result))?.[1] ?? ""
      expect(readFileSync(kept, "utf8").length).toBeGreaterThanOrEqual(1_000_000)
    }).pipe(Effect.scoped))

  it.live("that is nested without end is refused", () =>
    Effect.gen(function*() {
      const { result } = yield* resultOf("deep")
      expect(result).toMatchObject({ isFailure: true, result: "The MCP server test: its answer is nested too deeply." })
    }).pipe(Effect.scoped))

  it.live("among lines that are no messages, and answers for nobody and twice, is the first for its call", () =>
    Effect.gen(function*() {
      const { result } = yield* resultOf("garbage", { lines: 30 })
      expect(result).toMatchObject({ isFailure: false, result: "first" })
    }).pipe(Effect.scoped))
})

describe("a call that runs", () => {
  it.live("shows its progress, without control characters", () =>
    Effect.gen(function*() {
      const { host, sessionID } = yield* world(plain, [
        [call("test_progress", {})],
        "ok",
        [call("test_finish", {})],
        "never"
      ])
      const client = yield* host.connect(sessionID)
      const conversation = yield* client.use(Conversation, { key: conversationKey(sessionID, "c1") })
      yield* Effect.forkScoped(host.ask(sessionID, "go"))
      const seen = yield* conversation.view.changes.pipe(
        Stream.map(({ turn }) => turn?.tools[0]?.progress ?? null),
        Stream.filter((progress) => JSON.stringify(progress).includes('"progress":2')),
        Stream.runHead
      )
      expect(seen).toMatchObject({ value: { progress: 2, total: 3, message: "step 2" } })
    }).pipe(Effect.scoped))

  it.live("is cancelled at the server when the turn is interrupted", () =>
    Effect.gen(function*() {
      const { folder, host, sessionID } = yield* world(plain, [[call("test_wait", {})], "never"])
      const asked = yield* Effect.forkScoped(host.ask(sessionID, "go"))
      yield* eventually(() => marks(folder).includes("waiting"))
      yield* Effect.orDie(host.session.interrupt(sessionID))
      expect(yield* Fiber.join(asked)).toContain("aborted")
      yield* eventually(() => marks(folder).includes("cancelled wait"))
      expect(starts(folder)).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("fails and is cancelled when nothing has come for its time", () =>
    Effect.gen(function*() {
      const { folder, host, results, sessionID } = yield* world(
        (folder) => ({ test: { command: program("plain", folder), timeout: 0.2 } }),
        [[call("test_wait", {})], "ok"]
      )
      expect(yield* host.ask(sessionID, "go")).toBe("ok")
      expect(results()[0]).toMatchObject({
        isFailure: true,
        result: "The MCP server test: it did not answer within 200ms."
      })
      yield* eventually(() => marks(folder).includes("cancelled wait"))
    }).pipe(Effect.scoped))

  it.live("can ask where it works, and for nothing that was not offered to it", () =>
    Effect.gen(function*() {
      const { directory, result } = yield* resultOf("roots")
      expect(String(result?.result)).toContain(`file://${directory}`)
      expect(String((yield* resultOf("sampling")).result?.result)).toContain("-32601")
    }).pipe(Effect.scoped))
})

describe("a server's process", () => {
  it.live("starts in the location with a small environment and what its setting adds, and no key of a provider", () =>
    Effect.gen(function*() {
      process.env.TEST_PROVIDER_API_KEY = "sk-secret"
      yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env.TEST_PROVIDER_API_KEY))
      const { directory, host, results, sessionID } = yield* world(
        (folder) => ({
          test: { command: program("plain", folder), env: { TOKEN: Redacted.make("given") } }
        }),
        [[call("test_env", {}), call("test_where", {})], "ok"]
      )
      yield* host.ask(sessionID, "go")
      const [environment, where] = results()
      expect(String(environment?.result)).not.toContain("sk-secret")
      const variables: object = JSON.parse(String(environment?.result))
      expect(variables).toMatchObject({ TOKEN: "given", PATH: process.env.PATH })
      expect(Object.keys(variables).filter((name) => name.startsWith("VITEST"))).toEqual([])
      expect(where?.result).toBe(directory)
    }).pipe(Effect.scoped))

  it.live("ends with the location, whatever it has started and whether or not it wants to", () =>
    Effect.gen(function*() {
      const [server, child] = yield* Effect.scoped(Effect.gen(function*() {
        const { folder, host, results, sessionID } = yield* world(
          (folder) => ({ test: { command: program("stays", folder) } }),
          [[call("test_child", {})], "ok"]
        )
        yield* host.ask(sessionID, "go")
        const pids = [starts(folder)[0] ?? 0, Number(results()[0]?.result)]
        expect(pids.map(isAlive)).toEqual([true, true])
        return pids
      }))
      expect([server ?? 0, child ?? 0].map(isAlive)).toEqual([false, false])
    }))
})
