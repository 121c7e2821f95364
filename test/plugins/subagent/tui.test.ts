import type { ToolCallView } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { SubagentDetails } from "../../../packages/plugins/src/subagent/contract.ts"
import { subagentRenderer } from "../../../packages/plugins/src/subagent/tui.ts"
import { toolCard } from "../../../packages/tui/src/card.ts"

const show = (given: Partial<ToolCallView>, expanded = false) =>
  renderBlocks(
    toolCard(
      {
        callID: "c",
        name: "subagent",
        args: { description: "look around", prompt: "Look at everything.", agent: "review" },
        argsText: "",
        status: "running",
        output: "",
        progress: null,
        details: null,
        isError: false,
        ...given
      },
      subagentRenderer,
      { expanded }
    ),
    60
  )

const details = (given: Partial<SubagentDetails> = {}): SubagentDetails => ({
  sessionID: "ses_1",
  description: "look around",
  agent: "build",
  status: "completed",
  reason: null,
  calls: 3,
  usage: { input: 1_000, output: 234, cacheRead: 0, cacheWrite: 0, cost: 0.01234 },
  ...given
})

describe("a sub-agent's card", () => {
  it("shows what the sub-agent does while it works", () => {
    expect(show({})).toEqual(["● subagent review look around"])
    expect(show({ progress: { sessionID: "ses_1", activity: "bash npm test", calls: 0 } }))
      .toEqual(["● subagent review look around", "  bash npm test"])
    expect(show({ progress: { sessionID: "ses_1", activity: "thinking", calls: 1 } }))
      .toEqual(["● subagent review look around", "  thinking  (1 call so far)"])
  })

  it("shows what it took once it has answered, and the answer when everything is to be seen", () => {
    const ended = { status: "completed", output: "It is blue.", details: details() } as const
    expect(show(ended)).toEqual(["✓ subagent review look around", "  3 calls · 1,234 tokens · $0.012"])
    expect(show(ended, true)).toEqual([
      "✓ subagent review look around",
      "  3 calls · 1,234 tokens · $0.012",
      "  It is blue."
    ])
  })

  it("shows why there is no answer", () => {
    const output = "The sub-agent gave no answer: the key is wrong"
    expect(show({ status: "failed", isError: true, output, details: details({ status: "unanswered", calls: 0 }) }))
      .toEqual(["✗ subagent review look around", "  0 calls · 1,234 tokens · $0.012", `  ${output}`])
    expect(show({ status: "failed", isError: true, output: "There is no agent." }))
      .toEqual(["✗ subagent review look around", "  There is no agent."])
  })

  it("shows whatever a model sends", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), fc.boolean(), (args, progress, ended, isError) => {
        const rows = show({
          args: args as ToolCallView["args"],
          progress: progress as ToolCallView["progress"],
          details: ended as ToolCallView["details"],
          isError
        })
        expect(rows[0]).toMatch(/^● subagent/)
      })
    )
  })
})
