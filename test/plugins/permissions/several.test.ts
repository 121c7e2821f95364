/** Several terminals on one session, and several questions at once, over a real session host. */
import { makePresentation, Plugin } from "@bezel/core/host"
import { call } from "@bezel/core/testing"
import { text } from "@bezel/tui"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { tui } from "../../../packages/plugins/src/permissions/tui.ts"
import { tui as questionTui } from "../../../packages/plugins/src/question/tui.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { task, world } from "../subagent/world.ts"

type World = Effect.Success<ReturnType<typeof world>>

/** One more terminal on the session. */
const terminalOn = ({ host, id }: Pick<World, "host" | "id">) =>
  Effect.gen(function*() {
    const screen = yield* testTerminal({
      presentation: yield* makePresentation({ connection: yield* host.connect(id), location: host.location }),
      plugins: Plugin.sources("tui", [
        Plugin.define({ id: "bezel.permissions", tui }),
        Plugin.define({ id: "bezel.question", tui: questionTui }),
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
    return screen
  })

const listens = (title: string) => new RegExp(`${title}[\\s\\S]*enter choose · esc cancel`)
const closed = (title: string) => new RegExp(`^(?![\\s\\S]*${title}[\\s\\S]*enter choose)`)

describe("an approval that two terminals show", () => {
  it.live("closes in the other one with a word, when one has answered it", () =>
    Effect.gen(function*() {
      const made = yield* world({ go: [[call("touch", { name: "own" })], "end"] })
      const one = yield* terminalOn(made)
      const two = yield* terminalOn(made)
      const answer = yield* Effect.forkScoped(made.host.ask(made.id, "go"))
      yield* one.until(listens("Allow touch\\?"))
      yield* two.until(listens("Allow touch\\?"))
      yield* two.type("1")
      yield* one.until("Allow touch? was answered elsewhere.")
      yield* one.until(closed("Allow touch\\?"))
      expect(yield* two.text).not.toContain("elsewhere")
      expect(yield* Fiber.join(answer)).toBe("end")
    }).pipe(Effect.scoped))

  it.live("closes in both with a word, when the turn is interrupted", () =>
    Effect.gen(function*() {
      const made = yield* world({ go: [[call("touch", { name: "own" })], "end"] })
      const one = yield* terminalOn(made)
      const two = yield* terminalOn(made)
      const answer = yield* Effect.forkScoped(Effect.exit(made.host.ask(made.id, "go")))
      yield* one.until(listens("Allow touch\\?"))
      yield* two.until(listens("Allow touch\\?"))
      yield* made.host.session.interrupt(made.id, "enough")
      yield* one.until("Allow touch? is not asked any more.")
      yield* two.until("Allow touch? is not asked any more.")
      expect((yield* Fiber.join(answer))._tag).toBeDefined()
    }).pipe(Effect.scoped))

  it.live("is there for who comes later, also behind another one, and says which sub-agent asks", () =>
    Effect.gen(function*() {
      const made = yield* world({
        go: [[call("touch", { name: "own" }), task("look around")], "end"],
        "look around": [[call("touch", { name: "theirs" })], "seen"]
      })
      const one = yield* terminalOn(made)
      const answer = yield* Effect.forkScoped(made.host.ask(made.id, "go"))
      yield* one.until(/Allow touch\? +1 of 2/)
      const late = yield* terminalOn(made)
      yield* late.until(/Allow touch\? +1 of 2/)
      // Whichever asked first, the sub-agent's says so and the other does not.
      const first = yield* late.text
      const isTheirs = first.includes("For the sub-agent build: do look around")
      expect(first.includes("theirs")).toBe(isTheirs)
      yield* late.until(listens("Allow touch\\?"))
      yield* late.type("1")
      yield* one.until("Allow touch? was answered elsewhere.")
      yield* one.until(
        isTheirs ? /Allow touch\?\n[^─]*"own"/ : /For the sub-agent build: do look around\n[^─]*"theirs"/
      )
      yield* one.until(listens("Allow touch\\?"))
      yield* one.type("1")
      yield* late.until("Allow touch? was answered elsewhere.")
      expect(yield* Fiber.join(answer)).toBe("end")
    }).pipe(Effect.scoped))

  it.live("takes the words of a no before what waits behind it, and shows what they are about", () =>
    Effect.gen(function*() {
      const made = yield* world({
        go: [[call("touch", { name: "own" }), task("look around")], "end"],
        "look around": [[call("touch", { name: "theirs" })], "seen"]
      })
      const one = yield* terminalOn(made)
      const answer = yield* Effect.forkScoped(made.host.ask(made.id, "go"))
      yield* one.until(/Allow touch\? +1 of 2/)
      yield* one.until(listens("Allow touch\\?"))
      const name = (yield* one.text).includes("theirs") ? "theirs" : "own"
      yield* one.type("4")
      yield* one.until(new RegExp(`No touch\\. What should it do instead\\? +1 of 2\\n[\\s\\S]*"${name}"`))
      yield* one.type("read it\r")
      yield* one.until(/Allow touch\?\n[\s\S]*enter choose/)
      yield* one.type("1")
      expect(yield* Fiber.join(answer)).toBe("end")
    }).pipe(Effect.scoped))
})
