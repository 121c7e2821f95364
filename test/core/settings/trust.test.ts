import { Settings, Trust } from "@bezel/core/settings"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { Colour, readIn, Server, services, Size, temporary, write } from "./support.ts"

const project = Effect.map(
  temporary,
  (home) => ({ home, root: path.join(home, "project"), file: path.join(home, "project", "bezel.jsonc") })
)

const status = (home: string, directory: string) =>
  Effect.provide(Effect.flatMap(Trust, (trust) => trust.status(directory)), services(home))
const grant = (home: string, directory: string, hash?: string) =>
  Effect.provide(Effect.flatMap(Trust, (trust) => trust.grant(directory, hash)), services(home))

describe("a project that is not trusted", () => {
  it.effect("sets only what each section lets through, and the rest is listed by file and key", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      write(root, { "bezel.jsonc": { colour: "blue", size: 5, server: { host: "evil" } } })
      const reader = yield* readIn(home, root)
      expect(reader.get(Colour)).toBe("blue")
      expect(reader.get(Size)).toBe(5)
      expect(reader.get(Server)).toEqual({ host: "localhost" })
      expect(reader.skipped).toEqual([{ file, key: "server", partly: false }])
      expect(reader.sources).toEqual([{ kind: "project", file, trusted: false, keys: ["colour", "size", "server"] }])
    }))

  it.effect("can tighten a limit and never loosen it, whichever of its files says so", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { size: 6 } })
      write(root, { "bezel.jsonc": { size: 3 }, ".bezel/bezel.jsonc": { size: 8 } })
      const reader = yield* readIn(home, root)
      expect(reader.get(Size)).toBe(3)
      expect(reader.skipped.map((each) => each.key)).toEqual(["size"])
    }))

  it.effect("is measured against what the user has, not against its own other files", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { size: 6 } })
      write(root, { "bezel.jsonc": { size: 3 }, ".bezel/bezel.jsonc": { size: 5 } })
      expect((yield* readIn(home, root)).get(Size)).toBe(5)
    }))

  it.effect("does not get {env:} and {file:}, not even where the section itself is kept", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { server: { host: "{env:CANARY}", key: "{file:/etc/hostname}" } } })
      const reader = yield* readIn(home, root, {}, { CANARY: "canary" })
      expect(reader.get(Server)).toEqual({ host: "localhost" })
      expect(JSON.stringify(reader)).not.toContain("canary")
      expect(reader.warnings).toEqual([])
    }))

  it.effect("--trust makes it count as trusted for one run and remembers nothing", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { server: { host: "ours" } } })
      expect((yield* readIn(home, root, { trust: true })).get(Server)).toEqual({ host: "ours" })
      expect((yield* readIn(home, root)).get(Server)).toEqual({ host: "localhost" })
      expect(fs.existsSync(path.join(home, "state"))).toBe(false)
    }))
})

describe("trust", () => {
  it.effect("there is nothing to trust where a project sets nothing", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { ".git/HEAD": "", "bezel.jsonc": "{}" })
      expect(yield* status(home, root)).toMatchObject({ status: "nothing", sets: [] })
    }))

  it.effect("once granted, everything the project sets takes effect", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      write(root, { "bezel.jsonc": { server: { host: "ours" } } })
      expect(yield* status(home, root)).toMatchObject({
        status: "untrusted",
        folders: [root],
        sets: [{ file, keys: ["server"] }]
      })
      expect(yield* grant(home, root)).toMatchObject({ status: "trusted" })
      expect(yield* status(home, root)).toMatchObject({ status: "trusted" })
      const reader = yield* readIn(home, root)
      expect(reader.get(Server)).toEqual({ host: "ours" })
      expect(reader.skipped).toEqual([])
    }))

  it.effect("is asked for again when what the project sets changes, and not for comments or spacing", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { server: { host: "ours", port: 1 } } })
      yield* grant(home, root)
      write(root, { "bezel.jsonc": '// tidy\n{ "server": { "port": 1, "host": "ours" } }' })
      expect(yield* status(home, root)).toMatchObject({ status: "trusted" })
      write(root, { "bezel.jsonc": { server: { host: "theirs", port: 1 } } })
      expect(yield* status(home, root)).toMatchObject({ status: "changed" })
      expect((yield* readIn(home, root)).get(Server)).toEqual({ host: "localhost" })
    }))

  it.effect("covers the project's plugin files, so a changed one is asked for again", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { ".bezel/plugins/a.ts": "export default 1" })
      expect(yield* status(home, root)).toMatchObject({
        status: "untrusted",
        sets: [{ file: path.join(root, ".bezel/plugins"), keys: [] }]
      })
      yield* grant(home, root)
      expect(yield* status(home, root)).toMatchObject({ status: "trusted" })
      write(root, { ".bezel/plugins/deep/b.ts": "export default 2" })
      expect(yield* status(home, root)).toMatchObject({ status: "changed" })
    }))

  it.effect("covers the project's agents, beside its plugins", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { ".bezel/plugins/a.ts": "export default 1", ".bezel/agents/a.md": "Be kind." })
      expect((yield* status(home, root)).sets).toEqual([
        { file: path.join(root, ".bezel/plugins"), keys: [] },
        { file: path.join(root, ".bezel/agents"), keys: [] }
      ])
      yield* grant(home, root)
      expect(yield* status(home, root)).toMatchObject({ status: "trusted" })
      write(root, { ".bezel/agents/a.md": "Be evil." })
      expect(yield* status(home, root)).toMatchObject({ status: "changed" })
    }))

  it.effect("holds for the folders of a project wherever one works in it, and a folder below that sets more is asked for", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, {
        ".git/HEAD": "",
        "bezel.jsonc": { size: 99 },
        "plain/.keep": "",
        "more/bezel.jsonc": { server: { host: "x" } }
      })
      yield* grant(home, root)
      expect(yield* status(home, path.join(root, "plain"))).toMatchObject({ status: "trusted" })
      expect(yield* status(home, path.join(root, "more"))).toMatchObject({ status: "untrusted" })
    }))

  it.effect("is not given to what changed after it was shown", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { size: 99 } })
      const shown = yield* status(home, root)
      write(root, { "bezel.jsonc": { server: { host: "theirs" } } })
      const error = yield* Effect.flip(grant(home, root, shown.hash))
      expect(error.message).toContain("changed while you were asked")
      expect(yield* status(home, root)).toMatchObject({ status: "untrusted" })
    }))

  it.effect("is kept in a file that only this user can read", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { size: 99 } })
      yield* grant(home, root)
      expect(fs.statSync(path.join(home, "state", "trust.json")).mode & 0o777).toBe(0o600)
      expect(fs.statSync(path.join(home, "state")).mode & 0o777).toBe(0o700)
      expect(fs.readdirSync(path.join(home, "state"))).toEqual(["trust.json"])
    }))

  it.effect("a damaged record trusts nothing and can be granted anew", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { size: 99 } })
      yield* grant(home, root)
      for (const damage of ["", "{", '{"version":2,"folders":{}}', "null"]) {
        write(home, { "state/trust.json": damage })
        expect(yield* status(home, root)).toMatchObject({ status: "untrusted" })
      }
      expect(yield* grant(home, root)).toMatchObject({ status: "trusted" })
    }))

  it.effect("a record that cannot be read trusts nothing, and says so", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { server: { host: "ours" } } })
      fs.mkdirSync(path.join(home, "state", "trust.json"), { recursive: true })
      const reader = yield* Effect.provide(
        Effect.flatMap(Settings, (settings) => settings.forLocation(root)),
        services(home)
      )
      expect(reader.get(Server)).toEqual({ host: "localhost" })
      expect(reader.warnings).toEqual([expect.stringContaining("this project counts as not trusted")])
    }))

  it.effect("grants at the same time are all kept", () =>
    Effect.gen(function*() {
      const { home } = yield* project
      const roots = ["a", "b", "c", "d"].map((name) => path.join(home, name))
      for (const root of roots) write(root, { "bezel.jsonc": { size: 99 } })
      yield* Effect.provide(
        Effect.flatMap(Trust, (trust) =>
          Effect.forEach(roots, (root) => trust.grant(root), { concurrency: "unbounded" })),
        services(home)
      )
      for (const root of roots) {
        expect(yield* status(home, root)).toMatchObject({ status: "trusted" })
      }
    }))
})

describe("a link in a project that leads out of it", () => {
  it.effect("is refused where the project's settings should be, and told by name", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      write(home, { "elsewhere.jsonc": { colour: "blue" }, "project/x": "" })
      fs.symlinkSync(path.join(home, "elsewhere.jsonc"), file)
      const error = yield* Effect.flip(readIn(home, root))
      expect(error).toMatchObject({ code: "unreadable", file })
      expect(error.message).toContain("it is a link that leads out of the project")
    }))

  it.effect("may lead to another file of the project, and the user's settings may be a link to anywhere", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      write(home, { "elsewhere.jsonc": { size: 7 }, "project/conf/b.jsonc": { colour: "blue" }, "config/x": "" })
      fs.symlinkSync("conf/b.jsonc", file)
      fs.symlinkSync("../elsewhere.jsonc", path.join(home, "config/bezel.jsonc"))
      const reader = yield* readIn(home, root)
      expect([reader.get(Colour), reader.get(Size)]).toEqual(["blue", 7])
    }))

  it.effect("does not keep the rest of the project from being trusted", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { secret: "s", "project/.bezel/plugins/a.ts": "" })
      fs.symlinkSync(path.join(home, "secret"), path.join(root, ".bezel/plugins/b.ts"))
      yield* grant(home, root)
      expect((yield* status(home, root)).status).toBe("trusted")
    }))
})
