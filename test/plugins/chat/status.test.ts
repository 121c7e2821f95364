import type { ConversationView, ViewTurn } from "@bezel/core/harness"
import { renderBlocks } from "@bezel/tui/testing"
import { describe, expect, it } from "vitest"
import { activityBlock, activityOf, queueBlocks, statusBlock } from "../../../packages/plugins/src/chat/status.ts"

const base: ConversationView = {
  conversation: { id: "main", sessionID: "s", parent: null, owner: null },
  entries: [],
  config: { model: null, agent: null, thinking: "off", queue: "one" },
  inbox: [],
  turn: null,
  compaction: null,
  tasks: {},
  plugins: {},
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, context: 0 }
}
const generation = { task: "t", stage: "streaming" as const, attempt: 1, model: null, retryAt: null, error: null }
const turn = (given: Partial<ViewTurn>): ConversationView => ({
  ...base,
  turn: { inputs: [], generation, message: null, tools: [], ...given }
})
const tool = (name: string, status: "running" | "waiting") => ({
  task: name,
  callId: name,
  name,
  args: {},
  status,
  waitingOn: null,
  output: "",
  progress: null,
  details: null,
  continuedBy: null,
  entry: null
})
const line = (view: ConversationView, now = 65_000): string =>
  renderBlocks([activityBlock(activityOf(view), 0, now)], 60).join("").replace(/^\S /, "").replace(/ {2,}.*$/, "")

describe("the activity row", () => {
  it("says what the turn does and for how long", () => {
    expect(line(base)).toBe("")
    expect(line(turn({ generation: { ...generation, stage: "requesting" } }))).toBe("Thinking 1m 5s")
    expect(line(turn({}), 9_000)).toBe("Working 9s")
    expect(line(turn({ tools: [tool("bash", "running")] }), 1_000)).toBe("Running bash 1s")
    expect(line(turn({ tools: [tool("bash", "running"), tool("read", "running")] }), 1_000)).toBe("Running 2 tools 1s")
  })

  it("says that the older part is summarized, with or without a turn, and when it is tried again", () => {
    const running = { task: "c", reason: "auto", status: "running", retryAt: null }
    expect(line({ ...base, compaction: running }, 3_000)).toBe("Summarizing the older part 3s")
    expect(line({ ...turn({}), compaction: running }, 3_000)).toBe("Summarizing the older part 3s")
    const retrying = { ...running, status: "retrying", retryAt: 9_000 }
    expect(line({ ...base, compaction: retrying }, 3_000)).toBe("Summarizing the older part again in 6s")
  })

  it("keeps its words where there is little room", () => {
    const rows = renderBlocks([activityBlock(activityOf(turn({})), 0, 3_000, 20)], 20)
    expect(rows[0]).toMatch(/^. Working 3s +esc$/)
  })

  it("says who waits for the person before what runs", () => {
    expect(line(turn({ tools: [tool("read", "running"), tool("bash", "waiting")] }))).toBe("bash waits for you")
  })

  it("counts down to the next try, never below zero", () => {
    const view = turn({
      generation: {
        ...generation,
        stage: "retrying",
        attempt: 2,
        retryAt: 70_000,
        error: { kind: "overloaded", message: "busy" }
      }
    })
    expect(line(view, 65_000)).toBe("Retry in 5s (attempt 3): busy")
    expect(line(view, 90_000)).toBe("Retry in 0s (attempt 3): busy")
  })
})

describe("the queue", () => {
  it("shows what waits, one row each, and how many more there are", () => {
    const inbox = Array.from(
      { length: 7 },
      (_, index) => ({
        id: `${index}`,
        text: `input ${index}\nsecond line`,
        whenBusy: index === 0 ? "steer" as const : "followUp" as const
      })
    )
    expect(renderBlocks(queueBlocks(inbox), 40)).toEqual([
      "↳ next: input 0 second line",
      ...[1, 2, 3, 4].map((index) => `↳ later: input ${index} second line`),
      "  2 more; /queue changes them"
    ])
  })

  it("says what it waits for where no turn runs", () => {
    const inbox = [{ id: "0", text: "input", whenBusy: "followUp" as const }]
    expect(renderBlocks(queueBlocks(inbox, false), 80)).toEqual([
      "↳ later: input",
      "  they wait for your next prompt; /queue changes them"
    ])
  })
})

describe("the status row", () => {
  it("keeps the model where there is no room for all of it", () => {
    const config = {
      model: { provider: "anthropic", model: "claude" },
      agent: "plan",
      thinking: "off",
      queue: "one"
    } as const
    const view = { ...base, config, usage: { ...base.usage, context: 52_000, cost: 0.5 } }
    const at = (columns: number) =>
      renderBlocks([statusBlock({ view, status: "live", location: "/p", home: null, columns })], columns).join("")
    expect(at(60)).toMatch(/^\/p +52\.0k context · \$0\.500 · plan · anthropic\/claude$/)
    expect(at(40)).toMatch(/^\/p +\$0\.500 · plan · anthropic\/claude$/)
    expect(at(20)).toBe("/p  anthropic/claude")
  })

  const status = (view: ConversationView | undefined, width: number, state: "live" | "stale" = "live") =>
    renderBlocks([statusBlock({ view, status: state, location: "/home/ada/project", home: "/home/ada" })], width).join(
      ""
    )

  it("shows place, context, cost and model", () => {
    const view = {
      ...base,
      config: { ...base.config, model: { provider: "local", model: "qwen" } },
      usage: { ...base.usage, context: 12_345, cost: 0.0421 }
    }
    expect(status(view, 70)).toMatch(/^~\/project +12\.3k context · \$0\.042 · local\/qwen$/)
  })

  it("names the model that answered last when none is chosen", () => {
    const entries = [{
      id: "e",
      kind: "bezel.assistant",
      data: { model: "a/b" },
      model: [{ role: "assistant" as const, content: [] }],
      head: false,
      createdAt: 0
    }]
    expect(status({ ...base, entries }, 60)).toMatch(/a\/b$/)
    expect(status(base, 60)).toMatch(/default model$/)
  })

  it("says that it is disconnected, and works without a session and in few columns", () => {
    expect(status(base, 80, "stale")).toContain("disconnected, shown as last known")
    expect(status(undefined, 80)).toBe("~/project")
    for (let width = 1; width < 40; width++) expect(status(base, width).length).toBeLessThanOrEqual(width)
  })

  it("says how much of the model's context is in use, where that is known", () => {
    const view = { ...base, usage: { ...base.usage, context: 50_000 } }
    const parts = { view, status: "live", location: "/a", model: "p/m", home: null } as const
    expect(renderBlocks([statusBlock({ ...parts, window: 200_000 })], 60)[0]).toMatch(/ 50\.0k context \(25%\) · p\/m$/)
    expect(renderBlocks([statusBlock({ ...parts, window: 40_000 })], 60)[0]).toMatch(/ \(100%\) · p\/m$/)
    expect(renderBlocks([statusBlock({ ...parts, window: null })], 60)[0]).toMatch(/ 50\.0k context · p\/m$/)
  })
})
