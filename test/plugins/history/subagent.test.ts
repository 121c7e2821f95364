import { Plugin } from "@bezel/core/host"
import { call } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { bash, edit, world } from "./fixture.ts"

/** Has another session do something, as a sub-agent does. */
const delegate = (children: Array<string>) =>
  Plugin.define({
    id: "test.delegate",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) =>
        draft.set(
          "subagent",
          tool({
            description: "Has a sub-agent work",
            input: Schema.Struct({}),
            permission: () => ({ access: "subagent", subjects: [] }),
            execute: (_, { sessionID }) =>
              Effect.gen(function*() {
                const child = yield* ctx.session.create({ parentID: sessionID })
                children.push(child.id)
                const { inputID } = yield* ctx.session.prompt({ sessionID: child.id, prompt: { text: "do it" } })
                yield* ctx.session.wait(child.id, inputID)
                return "done"
              }).pipe(Effect.orDie)
          })
        )
      ))
  })

describe("what a sub-agent changed", () => {
  it.live("is taken back with the turn that it worked for, and can be taken back in its own session", () =>
    Effect.gen(function*() {
      const children: Array<string> = []
      const { ask, host, read, stage } = yield* world([
        "hello",
        [call("subagent", {})],
        edit("a.txt", "one", "two"),
        bash("echo new > made.txt"),
        "child done",
        edit("a.txt", "two", "three"),
        "done"
      ], { files: { "a.txt": "one\n" }, plugins: [delegate(children)] })
      yield* ask("first")
      yield* ask("second")
      expect([read("a.txt"), read("made.txt")]).toEqual(["three\n", "new\n"])
      const [child = ""] = children
      const own = yield* host.session.revert.stage(child, { to: "last" })
      expect(own).toMatchObject({ status: "conflict", prompt: "do it" })
      const staged = yield* stage()
      expect(staged).toMatchObject({ status: "staged", prompt: "second", conflicts: [] })
      expect([read("a.txt"), read("made.txt")]).toEqual(["one\n", null])
      expect(yield* host.session.revert.stage(child, { to: "last", dryRun: true })).toMatchObject({ files: [] })
    }).pipe(Effect.scoped))
})
