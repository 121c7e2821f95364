/** The session of a sub-agent on the screen, and the way back. */
import type { ViewEntry } from "@bezel/core/harness"
import { makePresentation } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { run } from "@bezel/core/testing"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { subagentsOf } from "../../../packages/plugins/src/subagent/tui.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { tool } from "../../tui/stub-session.ts"
import { task, world } from "./world.ts"

describe("the sub-agents of a session", () => {
  it.live("can be looked into while they work and afterwards, and left again; both sessions stay in the history", () =>
    Effect.gen(function*() {
      const finish = yield* Deferred.make<void>()
      const { host, id } = yield* world({
        go: [[task("look around")], "end"],
        "look around": [[run(Deferred.await(finish))], "seen"]
      })
      const connection = yield* host.connect(id)
      const screen = yield* testTerminal({
        presentation: yield* makePresentation({ connection, location: host.location }),
        plugins: builtinTerminalPlugins("test")
      })
      yield* screen.until("test/scripted")
      yield* screen.type("/subagents\r")
      yield* screen.until("This session has no sub-agents.")
      const answer = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* screen.until(/● subagent do look around\n {2}thinking/)
      yield* screen.type("/subagents\r")
      yield* screen.until(/Sub-agents\n› 1\. do look around/)
      yield* screen.type("1")
      yield* screen.until(/› go[\s\S]*› look around/)
      yield* screen.until("/back leads to the one that you were in")
      yield* Deferred.succeed(finish, undefined)
      expect(yield* Fiber.join(answer)).toBe("end")
      yield* screen.until("seen")
      yield* screen.type("/back\r")
      yield* screen.until(/› look around[\s\S]*seen[\s\S]*› go[\s\S]*end/)
      yield* screen.until(/^(?![\s\S]*leads to the one)/)
      yield* screen.type("/back\r")
      yield* screen.until("This session was not opened as a sub-agent's.")
      yield* screen.type("/subagents\r")
      yield* screen.until(/Sub-agents\n› 1\. build do look around {2}has answered/)
    }).pipe(Effect.scoped))

  it("are told of each once, by the newest that is known, whatever else stands in the view", () => {
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }
    const details = {
      sessionID: "a",
      description: "look\naround",
      agent: "build",
      status: "completed",
      reason: null,
      calls: 1,
      usage
    }
    const entry = (data: JsonValue): ViewEntry => ({
      id: "e",
      kind: "bezel.tool_result",
      data,
      model: null,
      head: false,
      createdAt: 0
    })
    const view: Parameters<typeof subagentsOf>[0] = {
      entries: [
        entry(null),
        entry("x"),
        entry({ details: "x" }),
        entry({ details }),
        entry({ details: { ...details, sessionID: "b", status: "background" } })
      ],
      tasks: {
        t: {
          kind: "subagent.background",
          background: true,
          status: { sessionID: "b", description: "count", agent: "plan" }
        },
        u: { kind: "other", background: true, status: null }
      },
      turn: {
        inputs: [],
        generation: null,
        message: null,
        tools: [
          tool({
            callId: "1",
            name: "subagent",
            args: null,
            progress: { sessionID: "c", activity: "reads", calls: 0 }
          }),
          tool({ callId: "2", name: "subagent", progress: "no" })
        ]
      }
    }
    expect(subagentsOf(view)).toEqual([
      { sessionID: "c", name: "", state: "reads" },
      { sessionID: "b", name: "plan count", state: "in the background" },
      { sessionID: "a", name: "build look around", state: "has answered" }
    ])
    expect(subagentsOf(undefined)).toEqual([])
  })
})
