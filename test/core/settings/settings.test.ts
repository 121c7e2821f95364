import { Settings, type SettingsError, SettingsKey } from "@bezel/core/settings"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import * as path from "node:path"
import { Colour, Files, readIn, secretOf, Server, services, Size, temporary, write } from "./support.ts"

const project = Effect.map(
  temporary,
  (home) => ({ home, root: path.join(home, "project"), file: path.join(home, "project", "bezel.jsonc") })
)

describe("layers", () => {
  it.effect("without any file every section has its default", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      const reader = yield* readIn(home, root)
      expect(reader.get(Colour)).toBe("red")
      expect(reader.get(Server)).toEqual({ host: "localhost" })
      expect(reader).toMatchObject({ sources: [], skipped: [], warnings: [] })
    }))

  it.effect("user, git root, folders below it and the command line follow each other, and the later wins", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { colour: "red", size: 1, server: { host: "user", port: 1 } } })
      write(root, {
        ".git/HEAD": "",
        "bezel.jsonc": { size: 2, server: { host: "root" } },
        "a/bezel.jsonc": { size: 3 },
        "a/b/bezel.jsonc": { colour: "blue" }
      })
      const reader = yield* readIn(home, path.join(root, "a", "b"), { trust: true, overrides: ["server.port=99"] })
      expect(reader.get(Colour)).toBe("blue")
      expect(reader.get(Size)).toBe(3)
      expect(reader.get(Server)).toEqual({ host: "root", port: 99 })
      expect(reader.sources.map((source) => source.kind)).toEqual(["user", "project", "project", "project", "override"])
    }))

  it.effect("a folder between the git root and the location holds, one above the root or beside it does not", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { ".git/HEAD": "", "bezel.jsonc": { size: 2 }, "beside/bezel.jsonc": { size: 7 }, "a/b/c/.keep": "" })
      write(home, { "bezel.jsonc": { size: 9, colour: "green" } })
      const reader = yield* readIn(home, path.join(root, "a/b/c"), { trust: true })
      expect(reader.get(Size)).toBe(2)
      expect(reader.get(Colour)).toBe("red")
    }))

  it.effect("outside a git work tree only the location's own files hold", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { colour: "green" }, "a/bezel.jsonc": { size: 4 } })
      const reader = yield* readIn(home, path.join(root, "a"))
      expect(reader.get(Colour)).toBe("red")
      expect(reader.get(Size)).toBe(4)
    }))

  it.effect("where a folder has both files, .bezel/bezel.jsonc comes later and wins", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { "bezel.jsonc": { colour: "green", size: 1 }, ".bezel/bezel.jsonc": { colour: "blue" } })
      const reader = yield* readIn(home, root)
      expect(reader.get(Colour)).toBe("blue")
      expect(reader.get(Size)).toBe(1)
    }))

  it.effect("objects merge, arrays are replaced", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { server: { host: "user", args: ["a", "b"] } } })
      write(root, { "bezel.jsonc": { server: { args: ["c"] } } })
      const reader = yield* readIn(home, root, { trust: true })
      expect(reader.get(Server)).toEqual({ host: "user", args: ["c"] })
    }))

  it.effect("a symbolic link to a location is the location", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { ".git/HEAD": "", "bezel.jsonc": { size: 2 }, "a/.keep": "" })
      const fs = yield* Effect.promise(() => import("node:fs"))
      fs.symlinkSync(path.join(root, "a"), path.join(home, "link"))
      const reader = yield* readIn(home, path.join(home, "link"), { trust: true })
      expect(reader.get(Size)).toBe(2)
    }))

  it.effect("who works inside the config folder does not meet the own settings as a stranger's", () =>
    Effect.gen(function*() {
      const { home } = yield* project
      write(home, { "config/bezel.jsonc": { server: { host: "mine" } } })
      const reader = yield* readIn(home, path.join(home, "config"))
      expect(reader.get(Server)).toEqual({ host: "mine" })
      expect(reader.skipped).toEqual([])
    }))

  it.effect("the user's reading has no project in it", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { size: 1 } })
      write(root, { "bezel.jsonc": { size: 2 } })
      const reader = yield* Effect.provide(Effect.flatMap(Settings, (settings) => settings.user), services(home))
      expect(reader.get(Size)).toBe(1)
    }))

  it.effect("a file's relative paths are as seen from that file", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(root, { ".bezel/bezel.jsonc": { files: ["./tool.ts"] } })
      const reader = yield* readIn(home, root, { trust: true })
      expect(reader.get(Files)).toEqual([path.join(root, ".bezel", "tool.ts")])
    }))

  it.effect("comments, trailing commas, a byte order mark, an empty file and $schema are fine", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": '\uFEFF// mine\n{ "$schema": "x", /* here */ "colour": "blue", }\n' })
      write(root, { "bezel.jsonc": "// nothing yet\n" })
      const reader = yield* readIn(home, root)
      expect(reader.get(Colour)).toBe("blue")
    }))
})

describe("errors", () => {
  const cases: ReadonlyArray<
    readonly [name: string, text: string, line: number, message: string, code: SettingsError["code"]]
  > = [
    [
      "an unknown section, with what was meant",
      '{\n  "color": "red"\n}',
      2,
      'color: unknown setting; did you mean "colour"?',
      "unknown_key"
    ],
    [
      "an unknown section that is like none, with what there is",
      '{\n\n"zzzzzz": 1 }',
      3,
      "zzzzzz: unknown setting; known here: colour, files, server, size",
      "unknown_key"
    ],
    [
      "an unknown member, with what was meant",
      '{ "server": {\n "host": "x",\n "prot": 1 } }',
      3,
      'server.prot: unknown setting; did you mean "port"?',
      "unknown_key"
    ],
    ["a wrong type", '{\n "size": "big" }', 2, "size: expected number, found text", "invalid_value"],
    [
      "a value that is not one of the allowed",
      '{ "colour": "gren" }',
      1,
      'colour: expected "red" or "green" or "blue", found "gren"',
      "invalid_value"
    ],
    [
      "a number out of range",
      '{ "server": { "host": "x",\n"port": 70000 } }',
      2,
      "server.port: expected a value between 1 and 65535, found 70000",
      "invalid_value"
    ],
    [
      "a wrong element of an array",
      '{ "files": [\n"a",\n3] }',
      3,
      "files[1]: expected string, found 3",
      "invalid_value"
    ],
    ["null", '{ "size": null }', 1, "size: expected number, found null", "invalid_value"],
    ["a missing comma", '{ "colour": "red"\n"size": 3 }', 2, "a comma is expected", "syntax"],
    ["a brace that is not closed", '{ "colour": "red"\n\n\n', 1, "a closing } is missing", "syntax"],
    ["single quotes", "{ 'colour': 'red' }", 1, "this is not JSON (names and text stand in double quotes)", "syntax"],
    ["something after the end", "{}\n}", 2, "nothing may follow the closing }", "syntax"],
    ["an array instead of an object", "[1]", 1, "expected an object { … }", "invalid_value"],
    ["a name twice", '{ "size": 1,\n"size": 2 }', 2, "size: this name is set twice; keep one of them", "syntax"],
    [
      "a name that is no setting but JavaScript",
      '{ "__proto__": 1 }',
      1,
      '["__proto__"]: this name cannot be used',
      "unknown_key"
    ],
    [
      "a depth that no setting has",
      "[".repeat(100_000),
      1,
      "nested deeper than 64 levels, which no setting is",
      "syntax"
    ]
  ]
  for (const [name, text, line, message, code] of cases) {
    it.effect(`${name} is told with file, line and path, in one line`, () =>
      Effect.gen(function*() {
        const { home, root } = yield* project
        write(home, { "config/bezel.jsonc": text })
        const file = path.join(home, "config", "bezel.jsonc")
        const error = yield* Effect.flip(readIn(home, root))
        expect(error).toMatchObject({
          _tag: "SettingsError",
          code,
          file,
          line,
          message: `${file}:${line}: ${message.replace('["__proto__"]', "__proto__")}`
        })
      }))
  }

  it.effect("several faults are told as the first and how many more there are", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      write(root, { "bezel.jsonc": '{ "size": "a",\n "colour": 3, "server": 4 }' })
      const error = yield* Effect.flip(readIn(home, root))
      expect(error.message).toBe(`${file}:1: size: expected number, found text (and 2 more)`)
    }))

  it.effect("a required member may come from another file; if none has it, the last that speaks of it is told", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      write(root, { "bezel.jsonc": '{\n"server": { "port": 1 } }' })
      const error = yield* Effect.flip(readIn(home, root, { trust: true }))
      expect(error.message).toBe(`${file}:2: server.host: this is required`)
      write(home, { "config/bezel.jsonc": { server: { host: "there" } } })
      expect((yield* readIn(home, root, { trust: true })).get(Server)).toEqual({ host: "there", port: 1 })
    }))

  it.effect("a folder, a FIFO and bytes that are no text are refused by name and never waited for", () =>
    Effect.gen(function*() {
      const { home, root, file } = yield* project
      const fs = yield* Effect.promise(() => import("node:fs"))
      const process = yield* Effect.promise(() => import("node:child_process"))
      fs.mkdirSync(file, { recursive: true })
      expect((yield* Effect.flip(readIn(home, root))).message).toBe(`${file}: cannot be read: it is a folder`)
      fs.rmdirSync(file)
      process.execFileSync("mkfifo", [file])
      expect((yield* Effect.flip(readIn(home, root))).message).toBe(`${file}: cannot be read: it is not a regular file`)
      fs.rmSync(file)
      fs.writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]))
      expect((yield* Effect.flip(readIn(home, root))).message).toBe(`${file}: cannot be read: it is not UTF-8 text`)
      fs.writeFileSync(file, " ".repeat(1024 * 1024 + 1))
      expect((yield* Effect.flip(readIn(home, root))).message).toBe(
        `${file}: cannot be read: it is larger than 1048576 bytes`
      )
    }))
})

describe("--set", () => {
  const value = (override: string) =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      const reader = yield* readIn(home, root, { overrides: [override] })
      return { colour: reader.get(Colour), size: reader.get(Size), server: reader.get(Server) }
    })

  it.effect("the value is JSON, or text where it is not", () =>
    Effect.gen(function*() {
      expect(yield* value("size=3")).toMatchObject({ size: 3 })
      expect(yield* value("colour=blue")).toMatchObject({ colour: "blue" })
      expect(yield* value('colour="blue"')).toMatchObject({ colour: "blue" })
      expect(yield* value('server={"host":"x","port":1}')).toMatchObject({ server: { host: "x", port: 1 } })
      expect(yield* value("server.host=a=b")).toMatchObject({ server: { host: "a=b" } })
    }))

  it.effect("a value that reads as JSON is text where text is expected", () =>
    Effect.gen(function*() {
      expect(yield* value("server.host=8080")).toMatchObject({ server: { host: "8080" } })
    }))

  it.effect("a fault names the option and what would be right", () =>
    Effect.gen(function*() {
      const message = (override: string) => Effect.map(Effect.flip(value(override)), (error) => error.message)
      expect(yield* message("sise=3")).toBe('--set: sise: unknown setting; did you mean "size"?')
      expect(yield* message("size=big")).toBe("--set: size: expected number, found text")
      expect(yield* message("server.hots=x")).toBe('--set: server.hots: unknown setting; did you mean "host"?')
      expect(yield* message("size")).toBe("--set size: expected key=value, for example --set compaction.threshold=0.7")
      expect(yield* message("=3")).toContain("--set =3: expected a dotted key")
      expect(yield* message("a..b=3")).toContain("expected a dotted key")
    }))
})

describe("{env:} and {file:}", () => {
  it.effect("are replaced in the user's file, and a key whose schema says so is redacted", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, {
        "config/bezel.jsonc": { server: { host: "http://{env:HOST_NAME}:1", key: "{file:key.txt}" } },
        "config/key.txt": "sesame\n"
      })
      const server = (yield* readIn(home, root, {}, { HOST_NAME: "example" })).get(Server)
      expect(server.host).toBe("http://example:1")
      expect(secretOf(server.key)).toBe("sesame")
      expect(Redacted.isRedacted(server.key) && String(server.key)).toBe("<redacted>")
      expect(JSON.stringify(server)).not.toContain("sesame")
    }))

  it.effect("a variable that is not set makes its member absent, and is told", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { server: { host: "x", key: "{env:NO_SUCH_KEY}" } } })
      const reader = yield* readIn(home, root)
      expect(reader.get(Server)).toEqual({ host: "x" })
      expect(reader.warnings).toEqual([
        `${
          path.join(home, "config/bezel.jsonc")
        }:4: server.key: the environment variable NO_SUCH_KEY is not set, so this counts as absent`
      ])
    }))

  it.effect("a missing variable inside an array and a missing file are errors", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { server: { host: "x", args: ["a", "{env:NO_SUCH_KEY}"] } } })
      expect((yield* Effect.flip(readIn(home, root))).message).toContain(
        "server.args[1]: the environment variable NO_SUCH_KEY is not set"
      )
      write(home, { "config/bezel.jsonc": { server: { host: "x", key: "{file:./no-such-key}" } } })
      expect((yield* Effect.flip(readIn(home, root))).message).toContain(
        `server.key: there is no file ${path.join(home, "config/no-such-key")}`
      )
    }))

  it.effect("what was substituted is in no error", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": '{ "colour": "{env:CANARY}" }' })
      const error = yield* Effect.flip(readIn(home, root, {}, { CANARY: "gre-canary" }))
      expect(JSON.stringify(error)).not.toContain("gre-canary")
      expect(error.message).toContain('found "{env:CANARY}"')
    }))
})

describe("a setting that has one of several forms", () => {
  const common = { enabled: Schema.optionalKey(Schema.Boolean) }
  const Place = SettingsKey.make("place", {
    schema: Schema.Record(
      Schema.String,
      Schema.Union([
        Schema.Struct({
          command: Schema.NonEmptyArray(Schema.String),
          cwd: Schema.optionalKey(Schema.String),
          ...common
        }),
        Schema.Struct({ url: Schema.String.check(Schema.isStartingWith("https://")), ...common })
      ])
    ),
    default: {},
    untrusted: "keep"
  })
  const messageOf = (text: string) =>
    Effect.gen(function*() {
      const home = yield* temporary
      write(home, { "config/bezel.jsonc": text })
      const error = yield* Effect.flip(readIn(home, home, { keys: [Place] }))
      return error.message.replace(/^.*jsonc:\d+: /, "")
    })

  it.effect("is told what is wrong with it, and not that its members are unknown", () =>
    Effect.gen(function*() {
      expect(yield* messageOf('{ "place": { "a": { "url": "nope" } } }')).toMatch(/^place\.a\.url: expected .*https:/)
      expect(yield* messageOf('{ "place": { "a": { "command": [] } } }')).toMatch(
        /^place\.a\.command\[0\]: this is required/
      )
      expect(yield* messageOf('{ "place": { "a": { "command": "x" } } }')).toMatch(/^place\.a\.command: expected array/)
    }))

  it.effect("names members that cannot stand side by side", () =>
    Effect.gen(function*() {
      expect(yield* messageOf('{ "place": { "a": { "command": ["x"], "url": "https://x" } } }'))
        .toMatch(/^place\.a\.url: does not go with the other settings beside it/)
    }))

  it.effect("is still told of a member that no form has", () =>
    Effect.gen(function*() {
      expect(yield* messageOf('{ "place": { "a": { "command": ["x"], "cdw": "." } } }'))
        .toMatch(/^place\.a\.cdw: unknown setting; did you mean "cwd"\?/)
    }))

  it.effect("may be made of parts in two files", () =>
    Effect.gen(function*() {
      const { home, root } = yield* project
      write(home, { "config/bezel.jsonc": { place: { a: { command: ["x"] } } } })
      write(root, { "bezel.jsonc": { place: { a: { cwd: "src" } } } })
      const reader = yield* readIn(home, root, { keys: [Place], trust: true })
      expect(reader.get(Place)).toEqual({ a: { command: ["x"], cwd: "src" } })
    }))
})
