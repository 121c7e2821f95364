import type { ConversationView } from "@bezel/core/harness"
import { jobBlocks } from "@bezel/plugins/tools/tui"
import { expect, it } from "vitest"

it("a running job is one line of the terminal: its id, its command and the last line that it printed", () => {
  const status = { command: ["/bin/sh", "-c", "x", "npm run\n dev"], stage: "running", run: 1, output: "one\ntwo\n" }
  const tasks = {
    t7: { kind: "bezel.job", background: true, status },
    t8: { kind: "bezel.job", background: true, status: "odd" },
    t9: { kind: "other", background: true, status }
  }
  const blocks = JSON.stringify(jobBlocks({ tasks } as unknown as ConversationView))
  expect(blocks).toMatch(/t7 .*npm run dev.* two/)
  expect(blocks).not.toMatch(/t8|t9|one/)
  expect(jobBlocks(undefined)).toEqual([])
})
