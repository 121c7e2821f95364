/** The approval dialog and the list of what is always allowed, on a terminal in memory over a real session host. */
import { makePresentation, Plugin } from "@bezel/core/host"
import { call, temporaryDirectory } from "@bezel/core/testing"
import { text } from "@bezel/tui"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { tui } from "../../../packages/plugins/src/permissions/tui.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { task, world as subagents } from "../subagent/world.ts"
import { bash, world } from "./world.ts"

const open = (script: Parameters<typeof world>[0]) =>
  Effect.gen(function*() {
    const made = yield* world(script, { options: { stateDirectory: yield* temporaryDirectory }, unattended: "wait" })
    const { host, sessionID } = made
    const screen = yield* testTerminal({
      presentation: yield* makePresentation({ connection: yield* host.connect(sessionID), location: host.location }),
      plugins: Plugin.sources("tui", [
        Plugin.define({ id: "bezel.permissions", tui }),
        Plugin.define({
          id: "test.screen",
          tui: (ctx) =>
            Effect.gen(function*() {
              yield* ctx.keybindings.bind("ctrl+p", { command: "permissions.show" })
              yield* ctx.screens.register("chat", {
                title: "Test",
                open: Effect.succeed({ body: () => [text("the body")] })
              })
            })
        })
      ])
    })
    yield* screen.until("the body")
    return { ...made, screen }
  })

describe("the approval dialog", () => {
  it.live("says which sub-agent asks and what for, and nothing of that where the session itself does", () =>
    Effect.gen(function*() {
      const { host, id } = yield* subagents({
        go: [[call("touch", { name: "own" })], [task("look around")], "end"],
        "look around": [[call("touch", { name: "theirs" })], "seen"]
      })
      const connection = yield* host.connect(id)
      const screen = yield* testTerminal({
        presentation: yield* makePresentation({ connection, location: host.location }),
        plugins: Plugin.sources("tui", [
          Plugin.define({ id: "bezel.permissions", tui }),
          Plugin.define({
            id: "test.screen",
            tui: (ctx) =>
              Effect.asVoid(ctx.screens.register("chat", {
                title: "Test",
                open: Effect.succeed({ body: () => [text("the body")] })
              }))
          })
        ])
      })
      yield* screen.until("the body")
      const answer = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* screen.until(/Allow touch\?[\s\S]*own/)
      expect(yield* screen.text).not.toContain("sub-agent")
      yield* screen.type("1")
      yield* screen.until(/Allow touch\?\s+For the sub-agent build: do look around[\s\S]*theirs/)
      yield* screen.type("1")
      expect(yield* Fiber.join(answer)).toBe("end")
    }).pipe(Effect.scoped))

  it.live("offers to allow it always, and /permissions shows that and takes it back", () =>
    Effect.gen(function*() {
      const { host, ran, screen, sessionID } = yield* open([[bash("make")], "one", [bash("make")], "two", [
        bash("make")
      ], "three"])
      const first = yield* Effect.forkScoped(host.ask(sessionID, "1"))
      yield* screen.until(/2\. Allow for this session {2}bash\(make\)[\s\S]*3\. Always allow in this project/)
      yield* screen.type("3")
      expect(yield* Fiber.join(first)).toBe("one")
      expect(yield* host.ask(sessionID, "2")).toBe("two")
      expect(ran).toHaveLength(2)

      yield* screen.type("\x10")
      yield* screen.until(/Always allowed in this project[\s\S]*1\. bash\(make\)/)
      yield* screen.type("1")
      yield* screen.until("Ask about bash(make) again?")
      yield* screen.type("1")
      yield* screen.until("bash(make) is asked about again.")

      yield* Effect.forkScoped(host.ask(sessionID, "3"))
      yield* screen.until("Allow bash?")
      yield* screen.type("\x1b")
    }).pipe(Effect.scoped))
})
