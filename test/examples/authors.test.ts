import { makePresentation, Plugin } from "@bezel/core/host"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as path from "node:path"
import { countOf, deployment, deployWith } from "../../examples/authors/checks.ts"
import guard from "../../examples/authors/guard.ts"
import notes, { Notes } from "../../examples/authors/notes.ts"
import parrot from "../../examples/authors/parrot.ts"
import reminder from "../../examples/authors/reminder.ts"
import { makeHome, root } from "../e2e/command.ts"
import { testTerminal } from "../tui/memory-terminal.ts"

describe("the examples for authors", () => {
  it.live("guard: deploys after a yes, and blocks after a no or where nobody is", () =>
    Effect.gen(function*() {
      expect(yield* deployWith(true)).toMatchObject({ answer: "Done.", targets: ["production"] })
      const refused = yield* deployWith(false)
      expect(refused.targets).toEqual([])
      expect(refused.told).toContain("The user has not agreed to this deployment.")
      const { plugin, targets } = deployment()
      const host = yield* testSessionHost([plugin, guard], {
        model: scriptedModel([[call("deploy", { target: "production" })], "No."])
      })
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "deploy it")).toBe("No.")
      expect(targets).toEqual([])
    }).pipe(Effect.scoped))

  it.live("counter: is in the view of a client", () =>
    Effect.gen(function*() {
      expect(Option.getOrNull(yield* countOf)).toBe(1)
    }).pipe(Effect.scoped))

  it.live("notes: what the terminal notes is shown there and read by the model", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["Hm."])
      const host = yield* testSessionHost([notes], { model })
      const { id } = yield* host.session.create()
      const connection = yield* host.connect(id)
      const presentation = yield* makePresentation({ connection, location: host.location })
      const screen = yield* testTerminal({
        presentation,
        plugins: [...builtinTerminalPlugins("test"), ...Plugin.sources("tui", [notes])]
      })
      yield* screen.until("0 notes")
      yield* screen.type("/note buy milk\r")
      yield* screen.until("1 notes")
      expect((yield* connection.use(Notes)).notes.value).toEqual(["buy milk"])
      yield* host.ask(id, "what now?")
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("Notes of the user:\\n- buy milk")
    }).pipe(Effect.scoped))

  it.live("reminder: tells the model when the time has come", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("remind", { text: "Tea is ready.", seconds: 0 })], "Later.", "Yes."])
      const host = yield* testSessionHost([reminder], { model })
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "remind me")).toBe("Later.")
      yield* host.ask(id, "and?")
      expect(JSON.stringify(yield* host.session.context(id))).toContain("Tea is ready.")
    }).pipe(Effect.scoped))

  it.live("parrot: answers what was said, as the default model", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([parrot])
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "hello, hello")).toBe("hello, hello")
    }).pipe(Effect.scoped))

  it("load as files that settings name", async () => {
    const home = makeHome()
    const files = ["guard", "notes", "counter", "reminder", "parrot"]
    home.settings({ plugins: files.map((name) => path.join(root, `examples/authors/${name}.ts`)) })
    const ended = await home.run(["plugin", "doctor"], { env: { BEZEL_SOURCE: "1" } })
    expect(ended).toMatchObject({ code: 0, stderr: "" })
    for (const name of files) expect(ended.stdout).toMatch(new RegExp(`^✓ example\\.${name}: `, "m"))
  })
})
