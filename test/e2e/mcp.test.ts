/** Real servers of the Model Context Protocol through `bezel run`, with a model that looks at what it is sent. */
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { makeHome, root } from "./command.ts"
import { isAlive, messagesOf, serve, until } from "./run-fixture.ts"

const everything = join(root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
const filesystem = join(root, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
const scripted = join(root, "test/plugins/mcp/server-program.ts")

const every = { every: { command: [process.execPath, everything, "stdio"] } }
const files = { files: { command: [process.execPath, filesystem, "."] } }

const toolsOf = (body: { readonly [key: string]: unknown } | undefined) =>
  (body?.tools ?? []) as ReadonlyArray<{ readonly function: { readonly name: string; readonly parameters: object } }>

const namesOf = (body: { readonly [key: string]: unknown } | undefined) =>
  toolsOf(body).map((each) => each.function.name)

const lastOf = (body: { readonly [key: string]: unknown } | undefined) => JSON.stringify(messagesOf(body).at(-1))

/** `server-everything` over streamable HTTP, on a free port. */
const startEverything = async (): Promise<string> => {
  const probe = createServer().listen(0, "127.0.0.1")
  await new Promise((resolve) => probe.once("listening", resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  const child = spawn(process.execPath, [everything, "streamableHttp"], {
    env: { PATH: process.env.PATH ?? "", PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"]
  })
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  await new Promise<void>((resolve, reject) => {
    let said = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text
      if (said.includes("listening")) resolve()
    })
    child.once("exit", () => reject(new Error(said)))
  })
  return `http://127.0.0.1:${port}/mcp`
}

describe("bezel run with server-everything and server-filesystem", () => {
  it("offers their tools, runs them where rules allow it, and leaves no process and no output of theirs", async () => {
    const home = makeHome()
    const server = await serve(
      {
        calls: [
          { name: "every_get-sum", args: { a: 2, b: 40 } },
          { name: "every_get-tiny-image", args: {} },
          { name: "every_get-structured-content", args: { location: "New York" } },
          { name: "files_write_file", args: { path: "note.txt", content: "from a server" } },
          { name: "every_get-roots-list", args: {} }
        ]
      },
      { text: "Done." }
    )
    home.useServer(server, { mcp: { ...every, ...files }, permissions: { "every_*": "allow" } })
    const ended = await home.run(["run", "--allow", "files_write_file", "go"])
    expect(ended).toMatchObject({ code: 0, stdout: "Done.\n" })
    expect(ended.stderr).not.toMatch(/Starting default|Secure MCP|warn/i)
    const names = namesOf(server.requests[0]?.body)
    expect(names).toEqual([...names].sort())
    expect(names).toContain("files_read_text_file")
    const sum = toolsOf(server.requests[0]?.body).find((each) => each.function.name === "every_get-sum")
    expect(sum?.function.parameters).toMatchObject({ type: "object", required: ["a", "b"] })
    const told = JSON.stringify(messagesOf(server.requests[1]?.body))
    expect(told).toContain("The sum of 2 and 40 is 42.")
    expect(told).toContain("temperature")
    expect(told).toContain(`file://${home.work}`)
    expect(readFileSync(join(home.work, "note.txt"), "utf8")).toBe("from a server")
  }, 60_000)

  it("denies what no rule allows, and does not offer what a rule denies", async () => {
    const home = makeHome()
    const server = await serve(
      { calls: [{ name: "files_write_file", args: { path: "note.txt", content: "x" } }] },
      { text: "I may not." },
      { text: "There is none." }
    )
    home.useServer(server, { mcp: files })
    const asked = await home.run(["run", "go"])
    expect(asked.code).toBe(3)
    expect(lastOf(server.requests[1]?.body)).toContain("needs a user's approval")
    expect(existsSync(join(home.work, "note.txt"))).toBe(false)
    const denied = await home.run(["run", "--deny", "files_*", "go"])
    expect(denied).toMatchObject({ code: 0, stdout: "There is none.\n" })
    expect(namesOf(server.requests[2]?.body).filter((name) => name.startsWith("files_"))).toEqual([])
  }, 60_000)

  it("lists and reads resources, and waits for a call that takes its time", async () => {
    const home = makeHome()
    const server = await serve(
      {
        calls: [
          { name: "every_trigger-long-running-operation", args: { duration: 0.4, steps: 4 } },
          { name: "list_mcp_resources", args: {} }
        ]
      },
      ({ body }) => {
        const uri = /demo:\/\/resource\/static\/document\/[\w.-]+/.exec(JSON.stringify(body.messages))?.[0] ?? "none"
        return { calls: [{ name: "read_mcp_resource", args: { server: "every", uri } }] }
      },
      { text: "Read." }
    )
    home.useServer(server, { mcp: every })
    const ended = await home.run(["run", "--yes", "go"])
    expect(ended.code).toBe(0)
    expect(lastOf(server.requests[2]?.body)).toContain("demo://resource/static/document/")
    expect(lastOf(server.requests[2]?.body)).not.toContain("The MCP server")
  }, 60_000)

  it("sends a prompt of a server with its places filled in, and says what is missing", async () => {
    const home = makeHome()
    const server = await serve({ text: "Reviewed." })
    const marks = join(home.folder, "marks")
    home.write("marks/.keep", "")
    home.useServer(server, { mcp: { own: { command: [process.execPath, scripted, "plain", marks] } } })
    expect(await home.run(["run", "/own:review a.ts in short"])).toMatchObject({ code: 0, stdout: "Reviewed.\n" })
    expect(lastOf(server.requests[0]?.body)).toContain(
      JSON.stringify('Review {"file":"a.ts","how":"in short"}').slice(1, -1)
    )
    const missing = await home.run(["run", "/own:review"])
    expect(missing.code).toBe(2)
    expect(missing.stderr).toContain("The prompt /own:review needs file: /own:review file [how]")
  }, 60_000)

  it("works the same over streamable HTTP", async () => {
    const home = makeHome()
    const url = await startEverything()
    const server = await serve(
      {
        calls: [
          { name: "web_get-sum", args: { a: 1, b: 2 } },
          { name: "web_trigger-long-running-operation", args: { duration: 0.3, steps: 3 } }
        ]
      },
      { text: "Three." }
    )
    home.useServer(server, { mcp: { web: { url } } })
    const ended = await home.run(["run", "--yes", "go"])
    expect(ended).toMatchObject({ code: 0, stdout: "Three.\n" })
    const told = JSON.stringify(messagesOf(server.requests[1]?.body))
    expect(told).toContain("The sum of 1 and 2 is 3.")
    expect(told).toContain("Long running operation completed")
    const listed = await home.run(["tool", "list"])
    expect(listed.stdout).toContain("web_get-sum")
    const looked = await home.run(["doctor"])
    expect(looked.stdout).toMatch(/^✓ mcp: web is connected/m)
  }, 60_000)
})

describe("a server that is not there", () => {
  it("is told once, by name and with the reason, and the run goes on without it", async () => {
    const home = makeHome()
    home.settings({ mcp: { gone: { command: ["/no/such/program"] }, off: { command: ["x"], enabled: false } } })
    const ended = await home.run(["run", "list"])
    expect(ended.code).toBe(0)
    expect(ended.stderr).toContain(
      "the MCP server gone is not connected, so its tools are not offered: its command could not be started: there is no program /no/such/program\n"
    )
    expect(ended.stderr).not.toContain("server off")
    const looked = await home.run(["doctor"])
    expect(looked.code).toBe(1)
    expect(looked.stdout).toMatch(/^✗ mcp: gone is not connected: /m)
    expect(looked.stdout).toMatch(/^✓ mcp: off is disabled$/m)
  }, 60_000)

  it("of a project is not started before the project is trusted", async () => {
    const home = makeHome()
    const marks = join(home.folder, "marks")
    home.write("marks/.keep", "")
    home.write(
      "work/bezel.jsonc",
      JSON.stringify({ mcp: { own: { command: [process.execPath, scripted, "plain", marks] } } })
    )
    const ended = await home.run(["run", "list"])
    expect(ended.stderr).toContain("is not trusted, so mcp in it has no effect")
    expect(existsSync(join(marks, "started"))).toBe(false)
    expect((await home.run(["tool", "list", "--trust"])).stdout).toContain("own_echo")
  }, 60_000)
})

describe("a run that is interrupted", () => {
  it("while it waits for a server to answer ends at once", async () => {
    const home = makeHome()
    const marks = join(home.folder, "marks")
    home.write("marks/.keep", "")
    home.settings({ mcp: { own: { command: [process.execPath, scripted, "silent", marks] } } })
    const running = home.start(["run", "list"])
    await until(() => existsSync(join(marks, "ready")))
    const pid = Number(readFileSync(join(marks, "started"), "utf8"))
    const began = performance.now()
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    expect(performance.now() - began).toBeLessThan(8_000)
    await until(() => !isAlive(pid))
  }, 60_000)

  it("cancels the call at the server, and takes the server and its children with it", async () => {
    const home = makeHome()
    const marks = join(home.folder, "marks")
    home.write("marks/.keep", "")
    const server = await serve(
      { calls: [{ name: "own_child", args: {} }] },
      { calls: [{ name: "own_wait", args: {} }] },
      { text: "never" }
    )
    home.useServer(server, { mcp: { own: { command: [process.execPath, scripted, "stays", marks] } } })
    const running = home.start(["run", "--yes", "go"])
    const seen = () => existsSync(join(marks, "marks")) ? readFileSync(join(marks, "marks"), "utf8") : ""
    await until(() => seen().includes("waiting"))
    const pids = [
      Number(readFileSync(join(marks, "started"), "utf8")),
      Number(/"content":"(\d+)"/.exec(lastOf(server.requests[1]?.body))?.[1])
    ]
    expect(pids.map(isAlive)).toEqual([true, true])
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    expect(seen()).toContain("cancelled wait")
    await until(() => !pids.some(isAlive))
  }, 60_000)
})

describe("a run that is killed", () => {
  it("leaves a server and its children that the next one ends", async () => {
    const home = makeHome()
    const marks = join(home.folder, "marks")
    home.write("marks/.keep", "")
    const server = await serve(
      { calls: [{ name: "own_child", args: {} }] },
      { calls: [{ name: "own_wait", args: {} }] },
      { text: "later" }
    )
    home.useServer(server, { mcp: { own: { command: [process.execPath, scripted, "stays", marks] } } })
    const running = home.start(["run", "--yes", "go"])
    const seen = () => existsSync(join(marks, "marks")) ? readFileSync(join(marks, "marks"), "utf8") : ""
    await until(() => seen().includes("waiting"))
    const pids = [
      Number(readFileSync(join(marks, "started"), "utf8")),
      Number(/"content":"(\d+)"/.exec(lastOf(server.requests[1]?.body))?.[1])
    ]
    running.process.kill("SIGKILL")
    await running.ended
    expect(pids.map(isAlive)).toEqual([true, true])
    home.useServer(server, {})
    await home.run(["run", "go on"])
    await until(() => !pids.some(isAlive))
  }, 60_000)
})

describe("a server that is written down wrongly", () => {
  it.each([
    [{ command: [""] }, "mcp.a.command[0]: expected the name or the path of a program as the first item"],
    [{ command: [" ", "x"] }, "mcp.a.command[0]: expected the name or the path of a program as the first item"],
    [{ command: [] }, "mcp.a.command[0]: this is required"],
    [{ url: "ftp://x" }, 'mcp.a.url: expected an address that begins with "http://" or "https://"']
  ])("is told with file and path: %j", async (server, expected) => {
    const home = makeHome()
    home.settings({ mcp: { a: server } })
    const { code, stderr } = await home.run(["run", "hello"])
    expect(code).toBe(2)
    expect(stderr).toContain(`.config/bezel/bezel.jsonc:1: ${expected}`)
  })
})
