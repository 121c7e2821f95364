import { temporaryDirectory } from "@bezel/core/testing"
import { agentFiles, builtinAgents, collectAgents, hiddenTools, readAgent } from "@bezel/plugins/agents"
import { type AgentSettings, AgentsSetting } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"

const from = (source: string, name: string, agent: AgentSettings) => ({ name, source, agent: Result.succeed(agent) })

describe("agents of several places", () => {
  it("are the built-in ones, each with a description, and no more without settings and files", () => {
    const { agents, broken } = collectAgents([])
    expect([...agents.keys()]).toEqual(["build", "plan", "review", "explore"])
    for (const { description } of builtinAgents) expect(description).not.toBe("")
    expect(broken.size).toBe(0)
  })

  it("add up by name: a later one says more, and lifts nothing that was taken away", () => {
    const { agents } = collectAgents([
      from("settings", "plan", {
        prompt: "Plan.",
        tools: { write: true, web: false },
        permissions: { write: "allow", edit: { "*": "allow" }, bash: { "rm *": "deny" } }
      }),
      from("/p/plan.md", "plan", {
        tools: { web: true, bash: false },
        permissions: { bash: { "rm *": "allow" } },
        model: "a/b"
      })
    ])
    expect(agents.get("plan")).toMatchObject({
      source: "built-in, settings, /p/plan.md",
      description: builtinAgents.find(({ name }) => name === "plan")?.description,
      prompt: "Plan.",
      tools: { write: true, web: false, bash: false },
      permissions: { write: { "*": "deny" }, edit: { "*": "deny" }, bash: { "rm *": "deny" } },
      model: { provider: "a", model: "b" },
      readOnly: true
    })
  })

  it("do without one of whose parts one cannot be used, and say why", () => {
    const { agents, broken } = collectAgents([
      from("settings", "review", { model: "gpt" }),
      { name: "own", source: "/p/own.md", agent: Result.fail("its front matter is not YAML") },
      from("settings", "own", { description: "later" }),
      from("settings", "../x", {}),
      from("settings", "__proto__", {})
    ])
    expect([...agents.keys()]).toEqual(["build", "plan", "explore"])
    expect(broken.get("review")).toContain('"gpt" is not a model name')
    expect(broken.get("own")).toBe('The agent "own" in /p/own.md cannot be used: its front matter is not YAML.')
    expect([...broken.keys()]).toEqual(["review", "own", "../x", "__proto__"])
  })

  it("hide tools by name, or all that are not named", () => {
    const tools = ["bash", "read", "write"]
    const of = (map: AgentSettings["tools"]) =>
      [...collectAgents([from("settings", "a", { tools: map ?? {} })]).agents.values()]
        .filter(({ name }) => name === "a").flatMap((agent) => hiddenTools(agent, tools))
    expect(of({ write: false })).toEqual(["write"])
    expect(of({ "*": false, read: true })).toEqual(["bash", "write"])
    expect(of({ other: false, toString: true })).toEqual([])
    expect(of({ "r*": false, "re*": true, "w*": false })).toEqual(["write"])
    expect(of({ "w*": false, write: true, "*": true })).toEqual([])
    expect(of({})).toEqual([])
  })

  it("hide those also that go by another name in rules", () => {
    const tools = ["bash", "job_output", "job_stop", "subagent", "subagent_stop", "web_fetch"]
    const of = (map: NonNullable<AgentSettings["tools"]>) =>
      [...collectAgents([from("settings", "a", { tools: map })]).agents.values()]
        .filter(({ name }) => name === "a").flatMap((agent) => hiddenTools(agent, tools))
    expect(of({ web: false, job: false })).toEqual(["job_output", "job_stop", "web_fetch"])
    expect(of({ subagent: false })).toEqual(["subagent", "subagent_stop"])
    expect(of({ "*": false, web: true, subagent: true })).toEqual(["bash", "job_output", "job_stop"])
  })

  it("stay hidden, whichever way a later place names them", () => {
    const tools = ["bash", "read", "web_fetch", "write"]
    const of = (...maps: ReadonlyArray<NonNullable<AgentSettings["tools"]>>) =>
      [...collectAgents(maps.map((map) => from("settings", "a", { tools: map }))).agents.values()]
        .filter(({ name }) => name === "a").flatMap((agent) => hiddenTools(agent, tools))
    expect(of({ "*": false, read: true }, { bash: true, "w*": true })).toEqual(["bash", "web_fetch", "write"])
    expect(of({ web: false }, { web_fetch: true, "*": true })).toEqual(["web_fetch"])
    expect(of({ "wr*": false }, { "w*": true, write: true })).toEqual(["write"])
    expect(of({ bash: true }, { bash: false }, { bash: true })).toEqual(["bash"])
  })
})

describe("agents in several settings files", () => {
  it("add up, and a later one does not lift an earlier one's deny", () => {
    const merged = AgentsSetting.merge(
      {
        a: { description: "x", permissions: { bash: { "rm *": "deny", "git *": "ask" } } },
        b: { permissions: { web: "deny" } }
      },
      { a: { prompt: "p", permissions: { bash: { "rm *": "allow", "git *": "allow" } } }, c: {} }
    )
    expect(merged).toEqual({
      a: { description: "x", prompt: "p", permissions: { bash: { "rm *": "deny", "git *": "allow" } } },
      b: { permissions: { web: "deny" } },
      c: {}
    })
  })

  it("add up, and a later one does not offer what an earlier one has taken away", () => {
    const merged = AgentsSetting.merge(
      { a: { tools: { "*": false, read: true } }, b: { tools: { bash: false } }, c: { tools: { bash: false } } },
      { a: { tools: { bash: true, read: true } }, b: { tools: { bash: true, write: false } }, c: { tools: "none" } }
    )
    expect(merged).toMatchObject({
      a: { tools: { "*": false, read: true, bash: false } },
      b: { tools: { bash: false, write: false } },
      c: { tools: "none" }
    })
  })

  it("are merged whatever they hold", () => {
    expect(
      AgentsSetting.merge({ a: 1, b: { permissions: 2 } }, {
        a: { permissions: {} },
        b: { permissions: { x: "deny" } }
      })
    )
      .toMatchObject({ a: { permissions: {} } })
    expect(AgentsSetting.merge([], { a: {} })).toEqual({ a: {} })
  })
})

describe("an agent's file", () => {
  it("has what is said of the agent in front matter, and its prompt below", () => {
    const text = [
      "---",
      'description: Reviews "everything": code, texts',
      "model: local/qwen",
      "thinking: high",
      "tools:",
      "  write: false",
      "permissions:",
      "  write: deny",
      "  bash:",
      '    "git *": allow',
      "---",
      "",
      "You review.",
      "",
      "---",
      "",
      "Be strict.",
      ""
    ].join("\n")
    const expected = {
      description: 'Reviews "everything": code, texts',
      model: "local/qwen",
      thinking: "high",
      tools: { write: false },
      permissions: { write: "deny", bash: { "git *": "allow" } },
      prompt: "You review.\n\n---\n\nBe strict."
    }
    expect(readAgent(text.replace('Reviews "everything": code, texts', "'Reviews \"everything\": code, texts'")))
      .toEqual(
        Result.succeed(expected)
      )
    expect(readAgent(text.replace('Reviews "everything": code, texts', "x").replaceAll("\n", "\r\n"))).toMatchObject({
      success: { description: "x", tools: { write: false } }
    })
  })

  it("may be a prompt alone, or front matter alone", () => {
    expect(readAgent("Be short.\n")).toEqual(Result.succeed({ prompt: "Be short." }))
    expect(readAgent("---\ndescription: x\n---")).toEqual(Result.succeed({ description: "x" }))
    expect(readAgent("---\n---\nBe short.")).toEqual(Result.succeed({ prompt: "Be short." }))
    expect(readAgent("")).toEqual(Result.succeed({}))
  })

  it("is refused with what is wrong when it is something else", () => {
    const problem = (text: string) => Result.isFailure(readAgent(text)) ? String(readAgent(text)).length > 0 : false
    for (
      const head of [
        "a: [",
        "- a",
        "just words",
        "tools: all",
        "toolz: {}",
        "prompt: x",
        "permissions:\n  write: maybe"
      ]
    ) {
      expect([head, problem(`---\n${head}\n---\nx`)]).toEqual([head, true])
    }
    expect(readAgent("---\ntoolz: {}\n---\n")).toMatchObject({ failure: expect.stringContaining("toolz") })
  })

  it.live("is found by its name in the folder; what is no agent is told by name", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryDirectory
      fs.writeFileSync(path.join(folder, "b.md"), "B")
      fs.writeFileSync(path.join(folder, "a.md"), "---\nx: 1\n---\n")
      fs.writeFileSync(path.join(folder, "notes.txt"), "x")
      fs.writeFileSync(path.join(folder, ".hidden.md"), "x")
      fs.mkdirSync(path.join(folder, "dir.md"))
      fs.writeFileSync(path.join(folder, "huge.md"), "x".repeat(300 * 1024))
      fs.symlinkSync("nowhere", path.join(folder, "link.md"))
      const found = yield* agentFiles(folder)
      expect(found.map(({ agent, name }) => [name, Result.isSuccess(agent)])).toEqual([
        ["a", false],
        ["b", true],
        ["dir", false],
        ["huge", false],
        ["link", false]
      ])
      expect(found[1]).toMatchObject({ source: path.join(folder, "b.md"), agent: { success: { prompt: "B" } } })
      expect(yield* agentFiles(path.join(folder, "not-there"))).toEqual([])
    }).pipe(Effect.scoped))

  it.live("of a project must lie in the project, whatever a link in it says", () =>
    Effect.gen(function*() {
      const folder = fs.realpathSync(yield* temporaryDirectory)
      const agents = path.join(folder, "p/.bezel/agents")
      fs.mkdirSync(agents, { recursive: true })
      fs.writeFileSync(path.join(folder, "secret.md"), "k-secret")
      fs.writeFileSync(path.join(folder, "p/inside.md"), "inside")
      fs.symlinkSync(path.join(folder, "secret.md"), path.join(agents, "a.md"))
      fs.symlinkSync("../../inside.md", path.join(agents, "b.md"))
      const found = yield* agentFiles(agents, path.join(folder, "p"))
      expect(found.map(({ agent }) => agent)).toEqual([
        Result.fail("it is a link that leads out of the project"),
        Result.succeed({ prompt: "inside" })
      ])
    }).pipe(Effect.scoped))
})
