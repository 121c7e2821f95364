/** What a model is told of the place that it works in, of its agent and of what a prompt brings along, as it arrives there. */
import { execFileSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { imageSize } from "../../packages/core/src/model/index.ts"
import { noisyPng } from "../plugins/providers/noisy-png.ts"
import { makeHome } from "./command.ts"
import { messagesOf, serve } from "./run-fixture.ts"

type Body = { readonly [key: string]: unknown } | undefined

const systemOf = (body: Body): string => String(messagesOf(body).find(({ role }) => role === "system")?.content ?? "")
const toolsOf = (body: Body) =>
  ((body?.tools ?? []) as ReadonlyArray<{ readonly function: { readonly name: string } }>).map((tool) =>
    tool.function.name
  )
const askedOf = (body: Body): string =>
  JSON.stringify(messagesOf(body).findLast(({ role }) => role === "user")?.content ?? "")
const lastResult = (body: Body): string =>
  String(messagesOf(body).findLast(({ role }) => role === "tool")?.content ?? "")

describe("the system message", { timeout: 60_000 }, () => {
  it("says where the model is, and has AGENTS.md from the git root down and the user's, as they are at each request", async () => {
    const home = makeHome()
    execFileSync("git", ["init", "-q"], { cwd: home.work })
    home.write("AGENTS.md", "Above the root.")
    home.write("work/AGENTS.md", "Of the root.")
    home.write("work/part/AGENTS.md", "Of the part.")
    home.write("work/part/deep/AGENTS.md", "Below.")
    home.write("work/other/AGENTS.md", "Of another part.")
    home.write(".config/bezel/AGENTS.md", "Of the user.")
    const server = await serve()
    server.always((request) => {
      // Changed by somebody while the conversation goes on.
      if (messagesOf(request.body).some(({ role }) => role === "tool")) return { text: "ok" }
      home.write("work/part/AGENTS.md", "Of the part, edited.")
      return { calls: [{ name: "list", args: {} }] }
    })
    home.useServer(server)
    const part = join(home.work, "part")
    expect(await home.run(["run", "hello"], { cwd: part })).toMatchObject({
      code: 0,
      stdout: "ok\n",
      stderr: "✓ list\n"
    })
    const [first, second] = server.requests.map(({ body }) => systemOf(body))
    expect(first).toContain(`- Working directory: ${part}`)
    expect(first).toContain(`- Git repository: yes, its root is ${home.work}`)
    expect(first).toMatch(/- Platform: \S+ \(\w+\)\n- Today: \d{4}-\d\d-\d\d/)
    expect(first).toMatch(/Of the root\.[\s\S]*Of the part\.[\s\S]*Of the user\./)
    expect(first).not.toMatch(/Above the root|Below|another part/)
    expect(second).toBe(first?.replace("Of the part.", "Of the part, edited."))
  })
})

describe("agents", { timeout: 60_000 }, () => {
  it("of the settings and of files give a conversation their prompt, tools, model and thinking", async () => {
    const home = makeHome()
    home.write(
      ".config/bezel/agents/writer.md",
      "---\ndescription: Writes\ntools: { bash: false, web: false }\nmodel: test/n\nthinking: high\n---\nYou write documentation."
    )
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server, {
      providers: {
        test: {
          package: "@ai-sdk/openai-compatible",
          options: { baseURL: server.url, apiKey: "k" },
          models: { m: { name: "M" }, n: { name: "N", reasoning: true } }
        }
      },
      agents: {
        reader: { prompt: "You only read.", tools: { "*": false, read: true } },
        writer: { tools: { todo: false } },
        looker: { permissions: { "*": "deny", list: "allow", read: { ".env": "deny" } } }
      }
    })
    await home.run(["run", "--agent", "writer", "hi"])
    await home.run(["run", "--agent", "reader", "hi"])
    await home.run(["run", "hi"])
    await home.run(["run", "--agent", "looker", "hi"])
    const [writer, reader, build, looker] = server.requests.map(({ body }) => body)
    expect([writer?.model, writer?.reasoning_effort]).toEqual(["n", "high"])
    expect(systemOf(writer)).toMatch(/^You write documentation\./)
    expect(toolsOf(build)).toEqual(expect.arrayContaining(["bash", "web_fetch", "todo", "read", "edit"]))
    expect(toolsOf(writer)).toEqual(
      toolsOf(build).filter((name) => !["bash", "web_fetch", "todo"].includes(name))
    )
    expect([reader?.model, reader?.reasoning_effort, toolsOf(reader)]).toEqual(["m", undefined, ["read"]])
    expect(systemOf(reader)).toContain("You only read.")
    expect([...toolsOf(looker)].sort()).toEqual(["list", "read"])
    expect(systemOf(build)).not.toMatch(/You only read|You write documentation/)
  })

  it("take away what rules and --yes allow, for their sub-agents too; plan is offered nothing that writes", async () => {
    const home = makeHome()
    const touch = { calls: [{ name: "bash", args: { command: "touch made" } }] }
    const server = await serve()
    server.always((request) => {
      const results = messagesOf(request.body).filter(({ role }) => role === "tool").length
      const isChild = systemOf(request.body).includes("You are a sub-agent")
      if (results > 0) return { text: `${isChild ? "Child" : "Parent"}: ${lastResult(request.body)}` }
      return isChild || askedOf(request.body).includes("do it")
        ? touch
        : { calls: [{ name: "subagent", args: { description: "d", prompt: "Touch made.", agent: "build" } }] }
    })
    home.useServer(server, {
      permissions: { bash: "allow" },
      agents: { careful: { permissions: { bash: { "touch *": "deny" } } } }
    })
    const { stdout: own } = await home.run(["run", "--yes", "--agent", "careful", "do it"])
    expect(own).toMatch(/^Parent: A permission rule denies this call/)
    const { stdout: handedOn } = await home.run(["run", "--yes", "--agent", "careful", "hand it on"])
    expect(handedOn).toMatch(/^Parent: Child: A permission rule denies this call/)
    const { stdout: planned } = await home.run(["run", "--yes", "--agent", "plan", "hand it on"])
    expect(planned).toMatch(/^Parent: Child: A permission rule denies this call.*The agent plan only reads/)
    expect(existsSync(join(home.work, "made"))).toBe(false)
    const plan = server.requests.at(-1)?.body
    expect(systemOf(plan)).toMatch(/^You plan, you do not carry out\./)
    expect(toolsOf(plan).filter((name) => ["write", "edit", "apply_patch"].includes(name))).toEqual([])
    // It cannot hand on either, and has no tool to end what it would have handed on.
    expect((await home.run(["run", "--yes", "--agent", "explore", "hand it on"])).stdout).toMatch(
      /^Parent: .*not available/
    )
    const explore = server.requests.at(-1)?.body
    expect(systemOf(explore)).toMatch(/^You explore\./)
    expect(toolsOf(explore)).toEqual(
      toolsOf(plan).filter((name) => name !== "subagent" && name !== "subagent_stop")
    )
    await home.run(["run", "--agent", "review", "do it"])
    expect(systemOf(server.requests.at(-1)?.body)).toMatch(/^You review\./)
    expect(toolsOf(server.requests.at(-1)?.body)).toEqual(toolsOf(plan))
    expect((await home.run(["run", "--agent", "build", "do it"])).stdout).toMatch(/^Parent: .*exit code 0/s)
    expect(existsSync(join(home.work, "made"))).toBe(true)
  })
})

describe("images", { timeout: 60_000 }, () => {
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

  it("that a prompt mentions or --file names go to a model that reads them, and are told of to one that does not", async () => {
    const home = makeHome()
    for (const name of ["a.png", "b.png"]) writeFileSync(join(home.work, name), Buffer.from(pixel, "base64"))
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server, {
      providers: {
        test: {
          package: "@ai-sdk/openai-compatible",
          options: { baseURL: server.url, apiKey: "k" },
          models: { m: { name: "M", images: true }, n: { name: "N" } }
        }
      }
    })
    for (const model of ["test/m", "test/n"]) {
      await home.run(["run", "--model", model, "--file", "b.png", "what is in @a.png?"])
    }
    const [seeing, blind] = server.requests.map(({ body }) => askedOf(body))
    expect(seeing?.split(`data:image/png;base64,${pixel}`)).toHaveLength(3)
    expect(blind).not.toContain(pixel)
    expect(blind).toContain('A file \\"a.png\\" of type image/png is not shown')
    expect(blind).toContain('A file \\"b.png\\" of type image/png is not shown')
  })

  it("that are larger than the model's provider takes go to it as smaller copies, also those that the read tool reads", async () => {
    const home = makeHome()
    const image = noisyPng(1_300, 1_300)
    expect(image.toString("base64").length).toBeGreaterThan(5 * 1024 * 1024)
    for (const name of ["a.png", "b.png"]) writeFileSync(join(home.work, name), image)
    const server = await serve(
      { calls: [{ name: "read", args: { path: "b.png" } }] },
      { text: "noise" }
    )
    home.settings({
      model: "anthropic/claude-a",
      providers: {
        anthropic: {
          options: { baseURL: server.url, apiKey: "k" },
          models: { "claude-a": { name: "A", images: true, maxOutput: 4_096 } }
        }
      }
    })
    expect((await home.run(["run", "--file", "a.png", "what is it?"])).stdout).toBe("noise\n")
    const sources = JSON.stringify(server.requests[1]?.body).match(/"media_type":"image\/jpeg","data":"[^"]+"/g) ?? []
    expect(sources).toHaveLength(2)
    for (const source of sources) {
      const data = source.split('"').at(-2) ?? ""
      expect(data.length).toBeLessThanOrEqual(5 * 1024 * 1024)
      expect(imageSize(Buffer.from(data, "base64"))).toEqual({ width: 1_300, height: 1_300 })
    }
  })
})
