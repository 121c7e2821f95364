import { makePresentation, Plugin } from "@bezel/core/host"
import { InteractionBroker } from "@bezel/core/service"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { builtinEntries, builtinTerminalPlugins } from "@bezel/plugins"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as facets from "../../../packages/plugins/src/session.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"

const ids = builtinEntries("test").map(({ id }) => id)

/** `bezel.session-directory` is exported as `sessionDirectory`. */
const exported = (id: string) =>
  id.replace("bezel.", "").replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

const all = ids.map((id) => {
  const facet = Object.entries(facets).find(([name]) => name === exported(id))?.[1]
  return Plugin.define({ id, ...(facet === undefined ? {} : { session: facet as never }) })
})

/** Ids of features in text of a package that must know none. */
const idsIn = (folder: string): ReadonlyArray<string> =>
  fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .flatMap((entry) => {
      const file = path.join(entry.parentPath, entry.name)
      const text = fs.readFileSync(file, "utf8")
      return ids.filter((id) => new RegExp(`\\b${id.replace(".", "\\.")}\\b(?![-.\\w])`).test(text)).map((id) =>
        `${file}: ${id}`
      )
    })

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-left-out-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const settings = (home: string) =>
  ConfigProvider.layer(ConfigProvider.fromEnv({
    env: Object.fromEntries(
      ["DATA", "CONFIG", "STATE", "CACHE"].map((name) => [`BEZEL_${name}_DIR`, path.join(home, name.toLowerCase())])
    )
  }))

describe("each built-in plugin of the terminal", () => {
  const order = ids.map((id) => ({ id }))

  it.live.each(["none of them", ...ids])("can be left out, and the rest works: %s", (left) =>
    Effect.gen(function*() {
      const home = yield* temporary
      yield* Effect.gen(function*() {
        const host = yield* testSessionHost(all, {
          directory: home,
          model: scriptedModel(["Here I am."]),
          entries: Object.fromEntries(order.map(({ id }) => [id, { required: true }]))
        })
        const { id } = yield* host.session.create({})
        const presentation = yield* makePresentation({ connection: yield* host.connect(id), location: host.location })
        const plugins = builtinTerminalPlugins("test").filter(({ entry }) => entry.id !== left)
        if (left === "bezel.chat") {
          // Its screen is the only one: the host is up and has nothing to show.
          const screen = yield* testTerminal({ presentation, plugins })
          return expect(yield* screen.text).not.toMatch(/\S/)
        }
        const screen = yield* testTerminal({ presentation, plugins })
        yield* screen.until("test/scripted")
        yield* screen.type("hi\r")
        yield* screen.until("Here I am.")
        expect(yield* screen.text).toContain("› hi")
      }).pipe(Effect.scoped, Effect.provide(settings(home)))
    }), 30_000)
})

describe("each built-in plugin", () => {
  it("is one of the session host, or has its facets elsewhere", () => {
    expect(all.filter(({ session }) => session === undefined).map(({ id }) => id)).toEqual([
      "bezel.reload",
      "bezel.versions",
      "bezel.chat"
    ])
    expect(ids.length).toBeGreaterThan(15)
  })

  it.live.each(["none of them", ...ids])("can be left out, and the rest works: %s", (left) =>
    Effect.gen(function*() {
      const home = yield* temporary
      const directory = path.join(home, "p")
      fs.mkdirSync(directory)
      fs.writeFileSync(path.join(directory, "a.txt"), "content of a")
      const model = scriptedModel([
        [call("read", { path: "a.txt" }), call("todo", { items: [{ text: "one", status: "pending" }] })],
        "done"
      ])
      yield* Effect.gen(function*() {
        const host = yield* testSessionHost(all.filter(({ id }) => id !== left), {
          directory,
          model,
          entries: Object.fromEntries(ids.map((id) => [id, { required: true }]))
        })
        const states = yield* host.plugins
        expect(states.filter(({ state }) => state !== "loaded" && state !== "absent")).toEqual([])
        expect(states.map(({ id }) => id)).not.toContain(left)
        const { id } = yield* host.session.create({})
        yield* Context.get(host.services, InteractionBroker).unattended(id, "deny")
        expect(yield* host.ask(id, "go")).toBe("done")
        const results = (model.requests.at(-1)?.messages ?? []).flatMap((message) =>
          message.role === "tool" ? message.content : []
        )
        expect(results.map(({ isFailure }) => isFailure)).toEqual([left === "bezel.tools", left === "bezel.todo"])
        if (left !== "bezel.tools") expect(String(results[0]?.result)).toContain("content of a")
        yield* host.connect(id)
      }).pipe(Effect.scoped, Effect.provide(settings(home)))
    }), 30_000)
})

describe("packages/core", () => {
  it("names no feature", () => {
    const root = path.join(import.meta.dirname, "../../../packages")
    expect(idsIn(path.join(root, "core/src"))).toEqual([])
    expect(idsIn(path.join(root, "plugins/src/permissions")).length).toBeGreaterThan(0)
  })
})
