/** The shipped command as a session host's process, under a coordinator of the test's own. */
import { Coordinator, Plugin } from "@bezel/core/host"
import { SessionStore } from "@bezel/core/session"
import { Settings } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { emptySettings } from "@bezel/core/testing"
import { sessionDirectoryPlugin, SessionPicker } from "@bezel/plugins/session-directory"
import { Placement } from "@bezel/server"
import { processPlacement } from "@bezel/server/process"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { join } from "node:path"
import { makeHome, root } from "../e2e/command.ts"

describe("bezel host-session", { timeout: 60_000 }, () => {
  it.live("serves sessions with the built-in plugins, in the data folder that bezel run uses too", () =>
    Effect.gen(function*() {
      const home = makeHome()
      const data = join(home.folder, ".local/share/bezel")
      const stored = SessionStore.layer({ directory: data, version: "test" }).pipe(
        Layer.provideMerge(SessionStorage.layer({ directory: data })),
        Layer.merge(Layer.succeed(
          Settings,
          Settings.of({
            user: Effect.succeed(emptySettings),
            forLocation: () => Effect.succeed(emptySettings),
            keys: []
          })
        ))
      )
      const context = yield* Layer.build(
        processPlacement({
          command: [join(root, "bin/bezel"), "host-session"],
          state: join(home.folder, ".local/state/bezel"),
          plugins: () => Effect.succeed(Plugin.sources("coordinator", [sessionDirectoryPlugin])),
          options: { set: ["model=bezel/offline"], trust: false, verbose: false },
          environment: {
            HOME: home.folder,
            PATH: process.env.PATH,
            LANG: "C.UTF-8",
            BEZEL_SOURCE: process.env.BEZEL_SOURCE
          }
        }).pipe(Layer.provideMerge(stored))
      )
      const host = yield* Context.get(context, Placement).place(home.work)
      expect((yield* host.plugins).filter(({ state }) => state !== "loaded" && state !== "absent")).toEqual([])
      const picker = yield* (yield* host.connect({ label: "test" })).use(SessionPicker)
      yield* Effect.timeout(
        Stream.runHead(Stream.filter(picker.state.changes, ({ upstream }) => upstream === "connected")),
        "10 seconds"
      )
      const { sessionID } = yield* picker.create({ title: "elsewhere" })
      const { inputID } = yield* host.session.prompt({ sessionID, prompt: { text: "hi" } })
      expect(yield* host.session.wait(sessionID, inputID)).toMatchObject({ status: "done" })
      expect((yield* Context.get(context, Coordinator).clients).length).toBe(1)
      const listed = yield* Effect.promise(() => home.run(["session", "list", "--json"]))
      expect(listed.lines()).toMatchObject([{ id: sessionID, title: "elsewhere" }])
    }).pipe(Effect.scoped))

  it.live("does nothing without an order", () =>
    Effect.gen(function*() {
      const ended = yield* Effect.promise(() => makeHome().run(["host-session"]))
      expect(ended).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("This command is for Bezel itself")
      })
    }))
})

describe("/sessions and /new in the terminal", { timeout: 60_000 }, () => {
  it("show another session of the folder, and begin a new one", async () => {
    const { runInTerminal } = await import("../e2e/terminal.ts")
    const home = makeHome()
    await home.run(["run", "--title", "an earlier talk", "say EARLIER"])
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("/sessions\r")
    await terminal.shows(/Sessions[\s\S]*an earlier talk/)
    terminal.type("2")
    await terminal.shows(/EARLIER[\s\S]*context · bezel\/offline$/)
    terminal.type("/new a fresh start\r")
    // What has been used of the context is the session's.
    await terminal.shows(/work +bezel\/offline$/)
    terminal.type("/sessions\r")
    await terminal.shows(/1\. a fresh start {2}this one/)
    expect(terminal.text()).toContain("an earlier talk")
  })
})
