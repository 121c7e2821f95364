import type { PickerEntry } from "@bezel/plugins/session-directory"
import { describe, expect, it } from "vitest"
import { forkTree, searchSessions } from "../../../packages/plugins/src/session-directory/tree.ts"

const session = (sessionID: string, forkedFrom?: string, title = sessionID): PickerEntry => ({
  sessionID,
  title,
  status: "idle",
  updatedAt: 0,
  ...(forkedFrom === undefined ? {} : { forkedFrom })
})

const shown = (entries: ReadonlyArray<PickerEntry>) =>
  forkTree(entries).map(({ depth, entry }) => `${"-".repeat(depth)}${entry.sessionID}`)

describe("sessions as a tree", () => {
  it("has each fork behind the session that it was forked from, and the order of the list otherwise", () => {
    expect(shown([session("d", "c"), session("a"), session("c", "a"), session("b", "a"), session("e")])).toEqual([
      "a",
      "-c",
      "--d",
      "-b",
      "e"
    ])
  })

  it("loses none: a fork of what is gone stands by itself, and so do those that lead in a circle", () => {
    expect(shown([session("b", "gone"), session("x", "y"), session("y", "x"), session("z", "z")])).toEqual([
      "b",
      "z",
      "x",
      "-y"
    ])
  })

  it("is searched by words of the title, in any case and order", () => {
    const all = [session("a", undefined, "Fix the Build"), session("b", undefined, "build a boat")]
    expect(searchSessions(all, "BUILD fix").map(({ sessionID }) => sessionID)).toEqual(["a"])
    expect(searchSessions(all, " ")).toEqual(all)
    expect(searchSessions(all, "nothing")).toEqual([])
  })
})
