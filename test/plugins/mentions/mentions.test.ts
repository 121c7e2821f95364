import { Plugin } from "@bezel/core/host"
import type { Prompt } from "@bezel/core/session"
import { scriptedModel, testSessionHost } from "@bezel/core/testing"
import { mentionsIn } from "@bezel/plugins/mentions"
import { MentionService } from "@bezel/plugins/mentions/contract"
import { session as mentions } from "@bezel/plugins/mentions/session"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-mentions-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const write = (directory: string, files: { readonly [name: string]: string | Buffer }): void => {
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), content)
  }
}

const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")

const world = (files: { readonly [name: string]: string | Buffer }, deny: ReadonlyArray<string> = []) =>
  Effect.gen(function*() {
    const home = yield* temporary
    const project = path.join(home, "p")
    write(project, { ".git/HEAD": "", ...files })
    const model = scriptedModel(Array.from({ length: 6 }, () => "ok"))
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.permissions", session: permissions }),
      Plugin.define({ id: "bezel.mentions", session: mentions })
    ], {
      directory: project,
      model,
      entries: {
        "bezel.permissions": { required: true, options: { stateDirectory: path.join(home, "state"), deny } }
      }
    })
    const service = yield* (yield* host.connect()).use(MentionService)
    /** What the model gets of a prompt, and what the person is told. */
    const resolve = (text: string, more: Partial<Prompt> = { written: true }) =>
      Effect.gen(function*() {
        const { id: sessionID } = yield* host.session.create({ title: "t" })
        const { inputID, notices = [] } = yield* host.session.prompt({ sessionID, prompt: { text, ...more } })
        yield* host.session.wait(sessionID, inputID)
        const message = model.requests.at(-1)?.messages.findLast(({ role }) => role === "user")
        const parts = message?.role === "user" ? message.content : []
        return {
          files: parts.flatMap((part) =>
            part.type !== "file" ? [] : [[
              part.fileName,
              part.mediaType === "text/plain" ? Buffer.from(String(part.data), "base64").toString() : part.mediaType
            ]]
          ),
          notices
        }
      })
    return { home, host, project, service, resolve }
  })

describe("a prompt's mentions", () => {
  it.each([
    ["@a.ts", ["a.ts"]],
    ["look at @src/a.ts, please", ["src/a.ts,", "src/a.ts"]],
    ["(@a.ts)", ["a.ts)", "a.ts"]],
    ["me@example.com", []],
    ["@", []],
    ["@ a", []],
    [`@"a name.md" and @'b'`, ["a name.md", "'b'", "'b"]],
    ["@a:3", ["a:3", "a"]],
    ["@a @a @b", ["a", "b"]],
    ["`@a`", ["a"]],
    ["数据 @数据.ts。", ["数据.ts。"]]
  ])("are words that begin with @: %j", (text, paths) => {
    expect(mentionsIn(text, 20).flatMap(({ readings }) => readings.map((reading) => reading.path))).toEqual(paths)
  })
})

describe("mentions", () => {
  it.effect("attach files, lines of them, folders and images, in their order", () =>
    Effect.gen(function*() {
      const { resolve } = yield* world({
        "a.ts": "one\ntwo\nthree\nfour",
        "a name.md": "spaced",
        "src/b.ts": "b",
        "src/deep/c.ts": "c",
        "shot.png": png
      })
      expect(yield* resolve(`@a.ts:2-3, @"a name.md" @src/ (@shot.png) and @a.ts.`)).toEqual({
        files: [
          ["a.ts:2-3", "two\nthree"],
          ["a name.md", "spaced"],
          ["src/", "b.ts\ndeep/\ndeep/c.ts"],
          ["shot.png", "image/png"],
          ["a.ts", "one\ntwo\nthree\nfour"]
        ],
        notices: []
      })
    }))

  const edges: ReadonlyArray<readonly [text: string, files: ReadonlyArray<unknown>, notice: RegExp | null]> = [
    ["@nobody and me@a.ts", [], null],
    ["@empty", [["empty", ""]], null],
    ["@program", [], /program is not attached: it is an ELF program/],
    ["@pipe", [], /@pipe is not attached: it is no regular file/],
    ["@/etc/passwd", [], /no rule allows to read \/etc\/passwd without asking/],
    ["@out", [], /no rule allows to read .*secret without asking/],
    ["@../secret", [], /no rule allows/],
    ["@hidden.pem", [], /no rule allows to read hidden\.pem/],
    ["@a.ts:900-901", [["a.ts:900-901", ""]], null],
    ["@\u0000a", [], null]
  ]
  it.effect.each(edges)(
    "of %j are attached within the rules, or it is said why not",
    ([text, files, notice]) =>
      Effect.gen(function*() {
        const { home, project, resolve } = yield* world({
          "a.ts": "one",
          empty: "",
          program: Buffer.from("7f454c4600000000", "hex"),
          "hidden.pem": "k-secret"
        }, ["read(*.pem)"])
        write(home, { secret: "k-secret" })
        fs.symlinkSync("../secret", path.join(project, "out"))
        execFileSync("mkfifo", [path.join(project, "pipe")])
        const found = yield* resolve(text)
        expect(found.files).toEqual(files)
        expect(found.notices.join("\n")).toMatch(notice ?? /^$/)
        expect(JSON.stringify(found)).not.toContain("k-secret")
      })
  )

  it.effect("are looked for in what a person wrote alone, and not attached twice", () =>
    Effect.gen(function*() {
      const { resolve } = yield* world({ "a.ts": "one", "b.ts": "two" })
      const nothing = { files: [], notices: [] }
      expect(yield* resolve("@a.ts", {})).toEqual(nothing)
      expect(yield* resolve("@a.ts", { written: false })).toEqual(nothing)
      expect(yield* resolve("review: see @a.ts in + @b.ts", { written: "review: see @b.ts" })).toEqual({
        files: [["b.ts", "two"]],
        notices: []
      })
      const file = { type: "file" as const, mediaType: "text/plain", fileName: "a.ts", data: btoa("as it was") }
      expect(yield* resolve("@a.ts @b.ts", { written: true, files: [file] })).toEqual({
        files: [["a.ts", "as it was"], ["b.ts", "two"]],
        notices: []
      })
    }))

  it.effect("are bounded: each file, and all together", () =>
    Effect.gen(function*() {
      const { resolve } = yield* world(
        Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}`, "é".repeat(100_000)]))
      )
      const { files, notices } = yield* resolve(Array.from({ length: 30 }, (_, index) => `@f${index}`).join(" "))
      const all = files.map(([, text]) => String(text))
      expect(all[0]).toMatch(/é\n\[The rest is left out; read f0 for it\.\]$/)
      expect(Buffer.byteLength(all.join(""))).toBeLessThan(258 * 1024)
      expect(all.join("")).not.toContain("\ufffd")
      expect(notices.at(-1)).toMatch(/too much together/)
    }))
})

describe("what is typed after @", () => {
  it.effect("is completed from the files that git does not ignore, also in part and out of order", () =>
    Effect.gen(function*() {
      const { service } = yield* world({
        ".gitignore": "dist\n",
        "dist/model.js": "",
        "src/model/registry.ts": "",
        "src/model/provider.ts": "",
        "README.md": ""
      })
      const complete = (word: string) => service.complete({ word })
      expect(yield* complete("")).toEqual(["src/", ".gitignore", "README.md"])
      expect(yield* complete("src/")).toEqual(["src/model/"])
      expect((yield* complete("modreg"))[0]).toBe("src/model/registry.ts")
      expect((yield* complete("readme"))[0]).toBe("README.md")
      expect(yield* complete("dist")).toEqual([])
      expect(yield* complete("zzzz")).toEqual([])
    }))

  it.live("is completed quickly in a repository of 50,000 files", () =>
    Effect.gen(function*() {
      const { project, service } = yield* world({})
      for (let folder = 0; folder < 250; folder++) {
        fs.mkdirSync(path.join(project, `p${folder}`))
        for (let file = 0; file < 200; file++) {
          fs.writeFileSync(path.join(project, `p${folder}/m-${folder}-${file}`), "")
        }
      }
      // Who asks first is answered from what is found by then.
      yield* service.complete({ word: "m" })
      while ((yield* service.complete({ word: "m-249-199" }))[0] !== "p249/m-249-199") yield* Effect.sleep("100 millis")
      // Time of the processor: the machine may have other things to do.
      const began = process.cpuUsage()
      expect((yield* service.complete({ word: "m24977" }))[0]).toBe("p249/m-249-77")
      expect(process.cpuUsage(began).user).toBeLessThan(400_000)
    }), 120_000)
})
