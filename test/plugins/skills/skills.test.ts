import { Plugin } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { InteractionBroker } from "@bezel/core/service"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { SkillList } from "@bezel/plugins/skills/contract"
import { session as skills } from "@bezel/plugins/skills/session"
import { session as tools } from "@bezel/plugins/tools/session"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-skills-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

const write = (directory: string, files: { readonly [name: string]: string }): void => {
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), content)
  }
}

const skill = (name: string, description: string, body = "Do it.") =>
  `---\nname: ${name}\ndescription: ${description}\nlicense: MIT\n---\n${body}\n`

/** A host over a project with these files, and with these of the user; what a client sees, and what the model is sent. */
const world = (
  files: {
    readonly project?: { readonly [name: string]: string }
    readonly user?: { readonly [name: string]: string }
  },
  options: { readonly trusted?: boolean; readonly script?: Parameters<typeof scriptedModel>[0] } = {}
) =>
  Effect.gen(function*() {
    const home = yield* temporary
    const project = path.join(home, "p")
    write(project, { ".git/HEAD": "", ...files.project })
    write(path.join(home, "config"), files.user ?? {})
    const model = scriptedModel(options.script ?? ["ok"])
    const host = yield* testSessionHost(
      [
        Plugin.define({ id: "bezel.tools", session: tools }),
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.skills", session: skills })
      ],
      {
        directory: project,
        model,
        entries: {
          "bezel.permissions": { required: true, options: { stateDirectory: path.join(home, "state") } },
          "bezel.skills": {
            required: true,
            options: { configDirectory: path.join(home, "config"), trusted: options.trusted ?? true }
          }
        }
      }
    )
    const client = yield* host.connect()
    const list = Effect.flatMap(client.use(SkillList), (service) => service.list())
    const ask = (text: string) =>
      Effect.gen(function*() {
        const { id } = yield* host.session.create({})
        yield* Context.get(host.services, InteractionBroker).unattended(id, "deny")
        return yield* host.ask(id, text)
      })
    const system = () => {
      const message = model.requests.at(-1)?.messages[0]
      return message?.role === "system" ? message.content : ""
    }
    const results = () =>
      (model.requests.at(-1)?.messages ?? []).flatMap((message) =>
        message.role === "tool" ? message.content.map(({ result }) => JSON.stringify(result)) : []
      )
    return { home, project, model, list, ask, system, results }
  })

describe("skills", () => {
  it.effect("are told to the model by name and description, and loaded with their folder and files when it asks", () =>
    Effect.gen(function*() {
      const at = yield* world({
        user: {
          "skills/release/SKILL.md": skill("release", "How to make\n  a release", "Run scripts/tag.sh."),
          "skills/release/scripts/tag.sh": "echo tag",
          "skills/release/.hidden": "x"
        }
      }, { script: [[call("skill", { name: "release" })], "done"] })
      expect(yield* at.ask("make a release")).toBe("done")
      expect(at.system()).toContain("- release: How to make a release")
      expect(at.system()).not.toContain("Run scripts/tag.sh.")
      const [loaded] = at.results()
      expect(loaded).toContain(`Its base folder is ${at.home}/config/skills/release`)
      expect(loaded).toContain("- scripts/tag.sh")
      expect(loaded).toContain("Run scripts/tag.sh.")
      expect(loaded).not.toContain(".hidden")
    }))

  it.effect("have files that can be read without a rule, and nothing beside their folders", () =>
    Effect.gen(function*() {
      const at = yield* world({
        user: { "skills/a/SKILL.md": skill("a", "A"), "skills/a/more.md": "the rest", "skills/other.md": "no" }
      }, {
        script: [
          ({ messages }) =>
            ["a/more.md", "other.md"].map((name) =>
              call("read", {
                path: path.join(JSON.stringify(messages).match(/config folder (\S+?) /)?.[1] ?? "", name)
              })
            ),
          "done"
        ]
      })
      expect(yield* at.ask(`config folder ${at.home}/config/skills please`)).toBe("done")
      const [inside, beside] = at.results()
      expect(inside).toContain("the rest")
      expect(beside).toMatch(/No rule allows read/)
    }))

  it.effect("say nothing and offer no tool where there are none", () =>
    Effect.gen(function*() {
      const at = yield* world({})
      expect(yield* at.ask("hi")).toBe("ok")
      expect(at.system()).not.toContain("Skills")
      expect(at.model.requests[0]?.tools.map(({ name }) => name)).not.toContain("skill")
      expect(yield* at.list).toEqual({ skills: [], problems: [] })
    }))

  it.effect.each([[false, []], [true, ["one", "three", "two"]]] as const)(
    "of a project count once it is trusted (%s), in each of its folders",
    ([trusted, names]) =>
      Effect.gen(function*() {
        const project = {
          ".bezel/skills/one/SKILL.md": skill("one", "first"),
          ".claude/skills/two/SKILL.md": skill("two", "second"),
          ".agents/skills/three/SKILL.md": skill("three", "third")
        }
        const at = yield* world({ project }, { trusted })
        expect((yield* at.list).skills.map(({ name }) => name)).toEqual(names)
      })
  )

  it.effect("of one name are told, and the nearest is used; one that is reached in two ways is one", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      const project = path.join(home, "q")
      write(project, { ".agents/skills/same/SKILL.md": skill("same", "the same") })
      fs.mkdirSync(path.join(project, ".claude"))
      fs.symlinkSync("../.agents/skills", path.join(project, ".claude/skills"))
      const at = yield* world({
        user: { "skills/x/SKILL.md": skill("deploy", "mine") },
        project: { ".bezel/skills/x/SKILL.md": skill("deploy", "theirs") }
      })
      const found = yield* at.list
      expect(found.skills.map(({ description, name, source }) => [name, description, source])).toEqual([
        ["deploy", "theirs", "project"]
      ])
      expect(found.problems).toEqual([
        `There are two skills named deploy: ${at.project}/.bezel/skills/x/SKILL.md is used, ${at.home}/config/skills/x/SKILL.md is not.`
      ])
      const { findSkills } = yield* Effect.promise(() => import("@bezel/plugins/skills"))
      const linked = yield* findSkills("/nowhere", [project])
      expect(linked.problems).toEqual([])
      expect(linked.skills.map(({ name }) => name)).toEqual(["same"])
    }))

  const broken: ReadonlyArray<readonly [what: string, text: string, problem: RegExp]> = [
    ["front matter that is no YAML", "---\nname: x\ndescription: a: b\n---\n", /skills\/x\/SKILL\.md:3: .*not YAML/],
    ["no front matter", "Just text", /skills\/x\/SKILL\.md:1: it has no description/],
    ["an empty description", "---\nname: x\ndescription: ''\n---\n", /SKILL\.md:3: its description is empty/],
    ["a description that is no text", "---\ndescription: [1]\n---\n", /SKILL\.md:2: its front matter is not valid/],
    ["a name that is none", "---\nname: a/b\ndescription: x\n---\n", /SKILL\.md:2: "a\/b" is no name for a skill/],
    ["front matter without an end", "---\nname: x\n", /SKILL\.md:1: .*not ended/]
  ]
  it.effect.each(broken)(
    "with %s are left out and told with file and line",
    ([, text, problem]) =>
      Effect.gen(function*() {
        const at = yield* world({ user: { "skills/x/SKILL.md": text, "skills/y/SKILL.md": skill("y", "fine") } })
        const found = yield* at.list
        expect(found.skills.map(({ name }) => name)).toEqual(["y"])
        expect(found.problems).toHaveLength(1)
        expect(found.problems[0]).toMatch(problem)
      })
  )

  const odd: ReadonlyArray<readonly [args: JsonValue, told: string]> = [
    [{}, "name: is required"],
    [{ name: 5 }, "name: expected string, got 5"],
    [{ name: "y", file: "a" }, "file: there is no such parameter"],
    [{ name: "z" }, 'There is no skill \\"z\\"; there are y.'],
    [{ name: "" }, 'There is no skill \\"\\"; there are y.'],
    [{ name: "../y" }, 'There is no skill \\"../y\\"; there are y.'],
    [{ name: "z".repeat(5_000) }, `There is no skill \\"${"z".repeat(80)}\\"; there are y.`],
    [{ name: " y " }, "The skill y. Its base folder is"]
  ]
  it.effect.each(odd)(
    "that are not there are refused with the names of those that are: %j",
    ([args, told]) =>
      Effect.gen(function*() {
        const at = yield* world({ user: { "skills/y/SKILL.md": skill("y", "fine") } }, {
          script: [[call("skill", args)], "done"]
        })
        yield* at.ask("go")
        expect(at.results()[0]).toContain(told)
      })
  )

  it.effect("have a list that is bounded, however many there are", () =>
    Effect.gen(function*() {
      const user = Object.fromEntries(
        Array.from({ length: 60 }, (_, index) => [`skills/s${index}/SKILL.md`, skill(`s${index}`, "x".repeat(1_500))])
      )
      const at = yield* world({ user })
      yield* at.ask("hi")
      expect(Buffer.byteLength(at.system())).toBeLessThan(20 * 1024)
      expect(at.system()).toMatch(/\(4\d more are not listed: s\d/)
    }))
})
