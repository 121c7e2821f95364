import { temporaryDirectory } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { applySteps, NotApplied } from "../../../packages/plugins/src/history/apply.ts"
import { type FileState, observe } from "../../../packages/plugins/src/history/file-state.ts"
import { KeptContent } from "../../../packages/plugins/src/history/kept-content.ts"

const megabyte = 1_000_000

describe("the steps of a plan", () => {
  it.live("are all undone when one cannot be taken, whatever the others were", () =>
    Effect.gen(function*() {
      const directory = fs.realpathSync(yield* temporaryDirectory)
      const kept = new KeptContent(`${directory}/kept`, megabyte)
      const at = (name: string) => `${directory}/${name}`
      fs.writeFileSync(at("changed"), "now\n", { mode: 0o640 })
      fs.writeFileSync(at("removed"), "now\n")
      fs.symlinkSync("target", at("link"))
      const stateOf = (path: string) =>
        Effect.promise(async () => {
          const { content, state } = await observe(path, megabyte)
          if (content !== null && "id" in state) await kept.put(state.id, content)
          return state
        })
      const changed = yield* stateOf(at("changed"))
      const removed = yield* stateOf(at("removed"))
      const link = yield* stateOf(at("link"))
      const nothing: FileState = { type: "absent", below: directory }
      const failure = yield* Effect.promise(() =>
        applySteps(
          [
            { path: at("removed"), from: removed, to: nothing },
            { path: at("changed"), from: changed, to: link },
            { path: at("new/deep/made"), from: nothing, to: removed },
            { path: at("link"), from: changed, to: removed }
          ],
          kept,
          megabyte
        ).then(() => null, (error: unknown) => error)
      )
      expect(failure).toBeInstanceOf(NotApplied)
      expect(failure).toMatchObject({
        path: at("link"),
        left: [],
        message: expect.stringContaining("changed meanwhile")
      })
      expect(yield* stateOf(at("changed"))).toEqual(changed)
      expect(yield* stateOf(at("removed"))).toEqual(removed)
      expect(yield* stateOf(at("link"))).toEqual(link)
      expect(fs.existsSync(at("new"))).toBe(false)
      expect(fs.readdirSync(directory).sort()).toEqual(["changed", "kept", "link", "removed"])
    }).pipe(Effect.scoped))

  it.live("leave what they cannot undo either as it is, and name it", () =>
    Effect.gen(function*() {
      const directory = fs.realpathSync(yield* temporaryDirectory)
      const kept = new KeptContent(`${directory}/kept`, megabyte)
      fs.writeFileSync(`${directory}/a`, "a\n")
      const state = (yield* Effect.promise(() => observe(`${directory}/a`, megabyte))).state
      const failure = yield* Effect.promise(() =>
        applySteps(
          [
            // Its content was never kept, so that it cannot be made again.
            { path: `${directory}/a`, from: state, to: { type: "absent", below: directory } },
            { path: `${directory}/b`, from: state, to: { type: "absent", below: directory } }
          ],
          kept,
          megabyte
        ).then(() => null, (error: unknown) => error)
      )
      expect(failure).toMatchObject({ path: `${directory}/b`, left: [`${directory}/a`] })
    }).pipe(Effect.scoped))
})
