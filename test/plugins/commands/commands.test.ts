import { Plugin } from "@bezel/core/host"
import { scriptedModel, testSessionHost } from "@bezel/core/testing"
import { expandTemplate, parseCall, wordsOf } from "@bezel/plugins/commands"
import { PromptCommandList } from "@bezel/plugins/commands/contract"
import { session as commands } from "@bezel/plugins/commands/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-commands-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const write = (directory: string, files: { readonly [name: string]: string }): void => {
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), content)
  }
}

const world = (files: { readonly [name: string]: string }, trusted = true) =>
  Effect.gen(function*() {
    const home = yield* temporary
    const project = path.join(home, "p")
    write(home, { "p/.git/HEAD": "", ...files })
    const model = scriptedModel(["ok", "ok"])
    const host = yield* testSessionHost([Plugin.define({ id: "bezel.commands", session: commands })], {
      directory: project,
      model,
      entries: {
        "bezel.commands": { required: true, options: { configDirectory: path.join(home, "config"), trusted } }
      }
    })
    const service = yield* (yield* host.connect()).use(PromptCommandList)
    return { home, host, model, service }
  })

describe("a command's text", () => {
  it.each([
    ["Fix $ARGUMENTS now", "a b", "Fix a b now"],
    ["$1 then $2, $3", "one 'two words' ", "one then two words, "],
    ["$2$1", "a b", "ba"],
    ["$10|$1", "1 2 3 4 5 6 7 8 9 ten", "ten|1"],
    ["Say $1", "$2", "Say $2"],
    ["Say $1", "$ARGUMENTS $1", "Say $ARGUMENTS"],
    ["costs \\$1 and $1", "x", "costs $1 and x"],
    ["a plain \\$ARGUMENTS", "", "a plain $ARGUMENTS"],
    ["no place", "but words", "no place\n\nbut words"],
    ["no place", "", "no place"],
    ["$ARGUMENTSX $x $$", "", "$ARGUMENTSX $x $$"],
    ["a $& b $1", "$& $' $`", "a $& b $&"]
  ])("%j called with %j is %j", (template, args, text) => {
    expect(expandTemplate(template, args)).toBe(text)
  })

  it.each([
    ["", []],
    ["  a   b ", ["a", "b"]],
    [`"a b" c`, ["a b", "c"]],
    [`a"b c"d`, ["ab cd"]],
    [`'it''s' "q\\"q"`, ["its", `q"q`]],
    [`"open quote`, ["open quote"]],
    [`'open`, ["open"]],
    [`a\\ b`, ["a b"]],
    ["\\", ["\\"]],
    ["ä 数据", ["ä", "数据"]]
  ])("has the words of %j as its arguments", (line, words) => {
    expect(wordsOf(line)).toEqual(words)
  })
})

describe("a prompt", () => {
  it.each([
    ["/fix it now", { name: "fix", arguments: "it now" }],
    ["  /fix", { name: "fix", arguments: "" }],
    ["/fix\nline one\nline two", { name: "fix", arguments: "line one\nline two" }],
    ["/etc/hosts is what?", null],
    ["/", null],
    ["/ fix", null],
    ["fix /this", null],
    ["//fix", null]
  ])("%j calls %j", (prompt, called) => {
    expect(parseCall(prompt)).toEqual(called)
  })
})

describe("commands", () => {
  it.effect("are sent to the session with their arguments, once", () =>
    Effect.gen(function*() {
      const { host, model, service } = yield* world({
        "config/commands/fix.md": "---\ndescription: Fixes\nmodel: scripted/other\nagent: build\n---\nFix issue $1.\n"
      })
      const { id } = yield* host.session.create({})
      const { inputID } = yield* service.run({ sessionID: id, name: "fix", arguments: "42 x", requestID: "r" })
      yield* Effect.exit(host.session.wait(id, inputID))
      expect(yield* host.session.get(id)).toMatchObject({ title: "Fix issue 42." })
      const again = yield* service.run({ sessionID: id, name: "fix", arguments: "42 x", requestID: "r" })
      expect(again.inputID).toBe(inputID)
      expect(model.requests.length).toBeLessThan(2)
    }))

  it.effect("are listed with what they take, those of a project once it is trusted", () =>
    Effect.gen(function*() {
      const files = {
        "config/commands/a.md": "Ask about $ARGUMENTS\nand more",
        "p/.bezel/commands/b.md": "---\ndescription: |\n  two\n  lines\nargument: BRANCH\n---\nDo $1"
      }
      const { home, service } = yield* world(files)
      expect(yield* service.list()).toEqual({
        commands: [
          {
            name: "a",
            description: "Ask about $ARGUMENTS",
            argument: "[ARGUMENTS]",
            agent: null,
            model: null,
            file: `${home}/config/commands/a.md`,
            source: "user"
          },
          {
            name: "b",
            description: "two lines",
            argument: "BRANCH",
            agent: null,
            model: null,
            file: `${home}/p/.bezel/commands/b.md`,
            source: "project"
          }
        ],
        problems: []
      })
    }))

  it.effect("of a project that is not trusted are none", () =>
    Effect.gen(function*() {
      const { service } = yield* world({ "p/.bezel/commands/b.md": "Do it" }, false)
      expect(yield* service.list()).toEqual({ commands: [], problems: [] })
    }))

  it.effect.each(
    [
      ["---\nmodel: gpt\n---\ntext", /commands\/x\.md:2: "gpt" is not a model name/],
      ["---\ndescription: a: b\n---\ntext", /commands\/x\.md:2: its front matter is not YAML/],
      ["---\ndescription: x\n---\n", /commands\/x\.md: it has no text after its front matter/],
      ["---\nagent: [a]\n---\nx", /commands\/x\.md:2: its front matter is not valid/]
    ] as const
  )("that are broken are told with file and line and left out: %j", ([text, problem]) =>
    Effect.gen(function*() {
      const { service } = yield* world({ "config/commands/x.md": text, "config/commands/y.md": "fine" })
      const found = yield* service.list()
      expect(found.commands.map(({ name }) => name)).toEqual(["y"])
      expect(found.problems[0]).toMatch(problem)
    }))

  it.effect("that are not there are refused with the names of those that are", () =>
    Effect.gen(function*() {
      const { host, service } = yield* world({ "config/commands/y.md": "fine" })
      const { id } = yield* host.session.create({})
      const error = yield* Effect.flip(service.run({ sessionID: id, name: "z", arguments: "" }))
      expect(error).toMatchObject({ code: "unknown_command", message: "There is no command /z here; there are y." })
      expect(yield* Effect.flip(service.run({ sessionID: "ses_none", name: "y", arguments: "" }))).toMatchObject({
        code: "refused"
      })
    }))
})
