import type { Section } from "@bezel/core/harness"
import { Plugin } from "@bezel/core/host"
import { scriptedModel, testSessionHost } from "@bezel/core/testing"
import { session } from "@bezel/plugins/context/session"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-context-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const write = (directory: string, files: { readonly [name: string]: string }): void => {
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), content)
  }
}

/** The sections that the facet registers for a location, in order, as one text each. */
const sections = (directory: string, options: unknown) =>
  Effect.gen(function*() {
    const registered: Array<Section> = []
    yield* session({
      options,
      location: { directory, workspaceID: null },
      section: (section) =>
        Effect.sync(() => {
          registered.push(section)
          return { unregister: Effect.void }
        })
    })
    registered.sort((left, right) => left.order - right.order)
    const texts = new Map<string, string | null>()
    for (const section of registered) {
      texts.set(
        section.id,
        yield* section.text({
          conversationID: "c",
          config: { model: null, agent: null, thinking: "off", queue: "one" }
        })
      )
    }
    return texts
  })

describe("the system message", () => {
  it.effect("says who answers, where it is and what day it is", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      const root = path.join(home, "p")
      write(root, { "a.txt": "" })
      yield* TestClock.setTime(new Date(2026, 10, 30, 12).getTime())
      const texts = yield* sections(root, { configDirectory: home })
      expect([...texts.keys()]).toEqual(["context.base", "context.environment", "context.instructions"])
      expect(texts.get("context.base")).toContain("You are Bezel")
      expect(texts.get("context.environment")).toContain(`- Working directory: ${root}\n- Git repository: no\n`)
      expect(texts.get("context.environment")).toContain("- Today: 2026-11-30")
      expect(texts.get("context.instructions")).toBeNull()
    }))

  it.effect("knows a git repository, also from a folder inside it and from a work tree whose .git is a file", () =>
    Effect.gen(function*() {
      const root = yield* temporary
      write(root, { ".git": "gitdir: elsewhere", "a/b/.keep": "" })
      const environment = (directory: string) =>
        Effect.map(sections(directory, { configDirectory: "/nowhere" }), (texts) => texts.get("context.environment"))
      expect(yield* environment(root)).toContain("- Git repository: yes\n")
      expect(yield* environment(path.join(root, "a/b"))).toContain(`- Git repository: yes, its root is ${root}\n`)
    }))

  it.effect("holds AGENTS.md from the git root down to the location, then the user's", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      write(home, { "AGENTS.md": "not mine", "config/AGENTS.md": "of the user\n" })
      write(path.join(home, "p"), {
        ".git/HEAD": "",
        "AGENTS.md": "of the root",
        "a/AGENTS.md": "of a",
        "a/b/.keep": "",
        "c/AGENTS.md": "of c"
      })
      const texts = yield* sections(path.join(home, "p/a/b"), { configDirectory: path.join(home, "config") })
      expect(texts.get("context.instructions")).toBe([
        `Instructions from ${home}/p/AGENTS.md:\n\nof the root`,
        `Instructions from ${home}/p/a/AGENTS.md:\n\nof a`,
        `Instructions from ${home}/config/AGENTS.md:\n\nof the user`
      ].join("\n\n"))
    }))

  it.effect("finds the user's file in the config folder of the environment", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      write(home, { "own/AGENTS.md": "mine", "p/x": "" })
      const texts = yield* sections(path.join(home, "p"), undefined).pipe(
        Effect.provide(
          ConfigProvider.layer(ConfigProvider.fromEnv({ env: { BEZEL_CONFIG_DIR: path.join(home, "own") } }))
        )
      )
      expect(texts.get("context.instructions")).toContain("mine")
    }))

  it.effect("tells which file was cut, and cuts between characters", () =>
    Effect.gen(function*() {
      const root = yield* temporary
      write(root, { "AGENTS.md": "x" + "é".repeat(40_000) })
      const text = (yield* sections(root, { configDirectory: "/nowhere" })).get("context.instructions") ?? ""
      expect(Buffer.byteLength(text)).toBeLessThan(33 * 1024)
      expect(text).not.toContain("\uFFFD")
      expect(text).toContain(
        `(The rest of ${root}/AGENTS.md is left out because it is too long. Read it if you need it.)`
      )
    }))

  it.effect("is bounded as a whole, however many folders have something to say", () =>
    Effect.gen(function*() {
      const root = yield* temporary
      const names = ["", "a/", "a/b/", "a/b/c/", "a/b/c/d/"]
      write(root, {
        ".git/HEAD": "",
        ...Object.fromEntries(names.map((name) => [`${name}AGENTS.md`, "x".repeat(30 * 1024)]))
      })
      const text =
        (yield* sections(path.join(root, "a/b/c/d"), { configDirectory: "/nowhere" })).get("context.instructions") ?? ""
      expect(Buffer.byteLength(text)).toBeLessThan(66 * 1024)
      expect(text.match(/is left out/g)).toHaveLength(3)
    }))

  it.effect("tells what could not be read, and is never held up by it", () =>
    Effect.gen(function*() {
      const root = yield* temporary
      const told = Effect.map(sections(root, { configDirectory: "/nowhere" }), (texts) =>
        texts.get("context.instructions"))
      fs.mkdirSync(path.join(root, "AGENTS.md"))
      expect(yield* told).toBe(`(${root}/AGENTS.md could not be read: it is a folder.)`)
      fs.rmdirSync(path.join(root, "AGENTS.md"))
      execFileSync("/usr/bin/env", ["mkfifo", path.join(root, "AGENTS.md")])
      expect(yield* told).toBe(`(${root}/AGENTS.md could not be read: it is not a regular file.)`)
      fs.rmSync(path.join(root, "AGENTS.md"))
      fs.symlinkSync("AGENTS.md", path.join(root, "AGENTS.md"))
      expect(yield* told).toBe(`(${root}/AGENTS.md could not be read: its links go in a circle.)`)
      fs.rmSync(path.join(root, "AGENTS.md"))
      fs.writeFileSync(path.join(root, "AGENTS.md"), "a\u0000b")
      expect(yield* told).toBe(`(${root}/AGENTS.md could not be read: it is not text.)`)
      fs.writeFileSync(path.join(root, "AGENTS.md"), "  \n")
      expect(yield* told).toBeNull()
    }))

  it.effect("what the caller adds comes last", () =>
    Effect.gen(function*() {
      const texts = yield* sections("/nowhere", { configDirectory: "/nowhere", system: "Answer in verse." })
      expect([...texts.entries()].at(-1)).toEqual(["context.system", "Answer in verse."])
      expect([...(yield* sections("/nowhere", { configDirectory: "/nowhere", system: " " })).keys()]).not.toContain(
        "context.system"
      )
    }))

  it.effect("options that it does not know are refused", () =>
    Effect.gen(function*() {
      expect(String(yield* Effect.flip(sections("/nowhere", { sytem: "x" })))).toContain("sytem")
    }))

  it.effect("never holds a file that a project's link leads to outside of it, and says so", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      write(home, { secret: "k-secret", "beside/AGENTS.md": "k-secret", "p/.git/x": "", "p/docs/rules.md": "use tabs" })
      const location = path.join(home, "p/a")
      fs.mkdirSync(location)
      fs.symlinkSync(path.join(home, "secret"), path.join(location, "AGENTS.md"))
      fs.symlinkSync("docs/rules.md", path.join(home, "p/AGENTS.md"))
      const warned: Array<unknown> = []
      const logger = Logger.layer([Logger.make(({ message }) => warned.push(message))])
      const texts = yield* Effect.provide(sections(location, { configDirectory: home }), logger)
      const said = `${location}/AGENTS.md could not be read: it is a link that leads out of the project.`
      expect(texts.get("context.instructions")).toBe(
        `Instructions from ${home}/p/AGENTS.md:\n\nuse tabs\n\n(${said})`
      )
      expect(warned.flat()).toEqual([said])
    }))

  it.effect("holds the user's AGENTS.md wherever a link of the user leads", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      write(home, { "dotfiles/agents.md": "mine", "p/x": "", "config/x": "" })
      fs.symlinkSync("../dotfiles/agents.md", path.join(home, "config/AGENTS.md"))
      const texts = yield* sections(path.join(home, "p"), { configDirectory: path.join(home, "config") })
      expect(texts.get("context.instructions")).toContain("mine")
      const there = yield* sections(path.join(home, "config"), { configDirectory: path.join(home, "config") })
      expect(there.get("context.instructions")).toContain("mine")
    }))

  it.live("reaches the model, an edited AGENTS.md from the next request on", () =>
    Effect.gen(function*() {
      const directory = yield* temporary
      write(directory, { "AGENTS.md": "use tabs" })
      const model = scriptedModel(["one", "two"])
      const host = yield* testSessionHost([Plugin.define({ id: "bezel.context", session })], { directory, model })
      const { id } = yield* host.session.create({ title: "t" })
      yield* host.ask(id, "hi")
      write(directory, { "AGENTS.md": "use spaces" })
      yield* host.ask(id, "hi again")
      const system = model.requests.map((request) =>
        JSON.stringify(request.messages.filter((message) => message.role === "system"))
      )
      expect(system[0]).toContain("use tabs")
      expect(system[1]).toContain("use spaces")
      expect(system[1]).not.toContain("use tabs")
    }).pipe(Effect.scoped))
})
