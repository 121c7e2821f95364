/**
 * Every built-in tool through the command: a model at a server calls them all, and what it is sent back is looked at. One
 * run for all of them, for starting the command costs more than they do.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import type { JsonObject } from "../../packages/core/src/json/index.ts"
import type { RecordedRequest } from "../../packages/core/src/testing/model-server.ts"
import { type Home, makeHome } from "./command.ts"
import { messagesOf, serve, type WireMessage } from "./run-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

const page = () =>
  new Promise<string>((resolve) => {
    const server = http.createServer((_, response) => {
      response.setHeader("content-type", "text/html").end("<title>T</title><p>Hello <b>web</b></p>")
    }).listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))
    onTestFinished(() => void server.close())
  })

const pdf = (shown: string): string => {
  const stream = `BT /F 12 Tf 10 50 Td (${shown}) Tj ET`
  return `%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj\n` +
    `3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>endobj\n` +
    `4 0 obj<</Length ${stream.length}>>stream\n${stream}\nendstream endobj\n` +
    `5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Size 6/Root 1 0 R>>\n`
}

/** A call and what the model is told of it. */
type Row = readonly [tool: string, args: JsonObject, told: RegExp]

const rows = (url: string): ReadonlyArray<Row> => [
  ["read", { path: "one.txt" }, /^1\tone\n2\ttwo$/],
  ["read", { path: "one.txt", offset: 2, limit: 1 }, /^2\ttwo$/],
  ["read", { path: "a.pdf" }, /\[Page 1\]\n.*Hello PDF/],
  ["read", { path: "b.ipynb" }, /\[Cell 1, code\]\n.*1 \+ 1/],
  ["read", { path: "pixel.png" }, /image/],
  ["read", { path: "none.txt" }, /^Cannot read none\.txt: there is no such file/],
  ["write", { path: "new/made.txt", content: "made\n" }, /^Created new\/made\.txt \(5 bytes\)\.$/],
  ["edit", {
    path: "two.txt",
    edits: [{ oldText: "uno", newText: "one" }, { oldText: "dos", newText: "two" }]
  }, /two\.txt/],
  ["apply_patch", {
    patch: "*** Begin Patch\n*** Update File: three.txt\n-a\n+A\n*** Add File: four.txt\n+new\n*** End Patch"
  }, /three\.txt[\s\S]*four\.txt/],
  ["bash", { command: "echo out; echo err >&2; exit 3" }, /^out\nerr\n\[exit code 3\]$/],
  ["bash", { command: "echo up; exec sleep 600", background: true }, /^Started as job \S+\./],
  ["search", { pattern: "t[w]o", glob: "one.*" }, /^one\.txt:2: two$/m],
  ["list", { depth: 1 }, /^one\.txt$/m],
  ["web_fetch", { url }, /# T\n\nHello \*\*web\*\*/],
  ["todo", { items: [{ text: "look around", status: "in_progress" }] }, /^\[~\] look around\n/],
  ["skill", { name: "mine" }, /^The skill mine\. [\s\S]*Do it like this\./],
  ["question", { question: "Which?", options: ["a", "b"] }, /^Nobody is here to answer/],
  ["subagent", { description: "look", prompt: "What is in one.txt?" }, /^It says one\.$/],
  ["subagent", { description: "wait", prompt: "Wait.", background: true }, /works in the background, in session ses_/],
  ["nope", {}, /there is no tool/i],
  ["read", { path: 7 }, /path: expected string, got 7/]
]

const withFiles = (): Home => {
  const home = makeHome()
  home.write("work/one.txt", "one\ntwo\n")
  home.write("work/two.txt", "uno\ndos\n")
  home.write("work/three.txt", "a\n")
  home.write("work/a.pdf", pdf("Hello PDF"))
  home.write("work/b.ipynb", JSON.stringify({ cells: [{ cell_type: "code", source: "1 + 1" }] }))
  writeFileSync(join(home.work, "pixel.png"), Buffer.from(pixel, "base64"))
  home.write(".config/bezel/skills/mine/SKILL.md", "---\nname: mine\ndescription: How\n---\nDo it like this.\n")
  return home
}

interface Offered {
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonObject }
}

const toolsOf = ({ body }: RecordedRequest) => (body.tools ?? []) as unknown as ReadonlyArray<Offered>
const textOf = ({ content }: WireMessage): string => typeof content === "string" ? content : JSON.stringify(content)
const lastUser = ({ body }: RecordedRequest): string =>
  textOf(messagesOf(body).findLast(({ role }) => role === "user") ?? { role: "user" })

/** By the id of the call. */
const resultsOf = ({ body }: RecordedRequest): ReadonlyMap<string, string> =>
  new Map(
    messagesOf(body).filter(({ role }) => role === "tool").map((one) => [one.tool_call_id ?? "", textOf(one)])
  )

describe("the built-in tools", { timeout: 60_000 }, () => {
  it("are offered to a model, which is told what each call has done", async () => {
    const home = withFiles()
    const calls = rows(await page())
    const main: Array<RecordedRequest> = []
    const children: Array<RecordedRequest> = []
    const resultIn = (id: string) => resultsOf(main.at(-1) as RecordedRequest).get(id) ?? ""
    const server = await serve()
    server.always((request) => {
      if (JSON.stringify(request.body.messages).includes("You are a sub-agent")) {
        children.push(request)
        if (lastUser(request) === "Wait.") return { text: "", stop: { afterBytes: 0, how: "hang" } }
        return resultsOf(request).size === 0
          ? { calls: [{ id: "child", name: "read", args: { path: "one.txt" } }] }
          : { text: "It says one." }
      }
      main.push(request)
      switch (main.length) {
        case 1:
          return { calls: calls.map(([name, args], index) => ({ id: `c${index}`, name, args })) }
        case 2: {
          const job = /job (\S+)\./.exec(resultIn("c10"))?.[1] ?? ""
          const session = /ses_\w+/.exec(resultIn("c18"))?.[0] ?? ""
          return {
            calls: [
              { id: "d0", name: "job_stop", args: { job } },
              { id: "d1", name: "subagent_stop", args: { session } }
            ]
          }
        }
        case 3: {
          const job = /job (\S+)\./.exec(resultIn("c10"))?.[1] ?? ""
          return { calls: [{ id: "e0", name: "job_output", args: { job } }] }
        }
        default:
          return { text: "All called." }
      }
    })
    const models = { m: { name: "M", images: true } }
    home.useServer(server, {
      providers: {
        test: { package: "@ai-sdk/openai-compatible", options: { baseURL: server.url, apiKey: "k" }, models }
      },
      permissions: { "*": "allow" },
      web: { privateHosts: ["127.0.0.1"] }
    })
    const ended = await home.run(["run", "--json", "go"])
    const { sessionID, ...result } = ended.lines().at(-1) ?? { type: "none" }
    // Nobody was there to answer a question.
    expect([ended.code, result]).toEqual([3, expect.objectContaining({ status: "done", text: "All called." })])

    const [first, second, third, fourth] = main
    const offered = first === undefined ? [] : toolsOf(first)
    expect(offered.map((tool) => tool.function.name).sort()).toEqual(
      [...new Set(calls.map(([name]) => name)), "job_output", "job_stop", "subagent_stop"].filter((name) =>
        name !== "nope"
      ).sort()
    )
    for (const { function: { description, name, parameters } } of offered) {
      expect(description.length, name).toBeGreaterThan(20)
      expect(parameters, name).toMatchObject({ type: "object", properties: expect.any(Object) })
    }
    const results = second === undefined ? new Map<string, string>() : resultsOf(second)
    expect([...results.keys()]).toEqual(calls.map((_, index) => `c${index}`))
    calls.forEach(([name, args, told], index) => {
      expect(results.get(`c${index}`), `${name} ${JSON.stringify(args)}`).toMatch(told)
    })
    expect(JSON.stringify(second?.body)).toContain(`data:image/png;base64,${pixel}`)
    expect(readFileSync(join(home.work, "new/made.txt"), "utf8")).toBe("made\n")
    expect(readFileSync(join(home.work, "two.txt"), "utf8")).toBe("one\ntwo\n")
    expect(readFileSync(join(home.work, "three.txt"), "utf8")).toBe("A\n")
    expect(existsSync(join(home.work, "four.txt"))).toBe(true)

    expect(third === undefined ? "" : resultsOf(third).get("d0")).toMatch(/^Stopped the job \S+\. Its last output:\n/)
    expect(third === undefined ? "" : resultsOf(third).get("d1")).toBe("It is being ended.")
    expect(fourth === undefined ? "" : resultsOf(fourth).get("e0")).toMatch(/^The job \S+ was stopped\./)

    // The sub-agents: a fresh context, and the request of the one that was stopped is closed.
    const looked = children.find((request) => lastUser(request) === "What is in one.txt?")
    expect(JSON.stringify(looked?.body.messages)).not.toContain('"go"')
    expect(looked === undefined ? [] : toolsOf(looked).map((tool) => tool.function.name)).toContain("read")
    expect(children.some((request) => resultsOf(request).get("child") === "1\tone\n2\ttwo")).toBe(true)
    expect(await children.find((request) => lastUser(request) === "Wait.")?.closed).toBe(true)

    // What renderers and machines get beside the model's text.
    const { stdout } = await home.run(["session", "export", String(sessionID)])
    expect(JSON.stringify(JSON.parse(stdout))).toContain("-uno\\n-dos\\n+one\\n+two")
  })

  it("show in the terminal what a command prints while it runs, and what the person has answered goes to the model", async () => {
    const home = makeHome()
    const gate = home.write("work/gate", "")
    const server = await serve(
      {
        calls: [{
          name: "bash",
          args: { command: `echo first line; while [ -e ${gate} ]; do sleep 0.05; done; echo last` }
        }]
      },
      { calls: [{ name: "question", args: { question: "Which colour?", options: ["red", "green"] } }] },
      { text: "Painted." }
    )
    home.useServer(server, { permissions: { bash: "allow" } })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("paint it\r")
    await terminal.shows(/^\s*first line\s*$/m)
    expect(server.requests).toHaveLength(1)
    rmSync(gate)
    await terminal.shows(/1\. red[\s\S]*2\. green[\s\S]*enter choose · esc cancel/)
    terminal.type("2")
    await terminal.shows(/Painted\./)
    const told = messagesOf(server.requests.at(-1)?.body).filter(({ role }) => role === "tool").map(textOf)
    expect(told).toEqual([expect.stringMatching(/^first line\nlast\n/), "The user chose: green"])
  })
})
