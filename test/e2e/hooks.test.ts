/** Commands of a person around `bezel run`, with a model that looks at what it is sent. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { isAlive, messagesOf, result, serve, until } from "./run-fixture.ts"

const lastOf = (body: { readonly [key: string]: unknown } | undefined) => JSON.stringify(messagesOf(body).at(-1))

describe("hooks of the user", () => {
  it("block a call, whatever --yes allows, and tell the model why", async () => {
    const home = makeHome()
    const server = await serve(
      {
        calls: [{ name: "bash", args: { command: "rm -rf build" } }, { name: "bash", args: { command: "touch ran" } }]
      },
      { text: "I did not remove it." }
    )
    const gate = home.write(
      "gate.sh",
      `#!/bin/sh\ngrep -q 'rm -rf' && { echo "no rm -rf here" >&2; exit 2; }; exit 0\n`
    )
    home.useServer(server, { hooks: { beforeTool: [{ match: "bash", command: ["/bin/sh", gate] }] } })
    const ended = await home.run(["run", "--yes", "clean up"])
    expect(ended).toMatchObject({ code: 0, stdout: "I did not remove it.\n" })
    expect(JSON.stringify(messagesOf(server.requests[1]?.body))).toContain(
      "A hook of the user blocked this call: no rm -rf here"
    )
    expect(existsSync(join(home.work, "ran"))).toBe(true)
  }, 30_000)

  it("run behind a tool and at the end of a turn, which they can keep from ending", async () => {
    const home = makeHome()
    const server = await serve(
      { calls: [{ name: "write", args: { path: "a.txt", content: "one\n" } }] },
      { text: "Written." },
      { calls: [{ name: "write", args: { path: "b.txt", content: "two\n" } }] },
      { text: "Both written." }
    )
    home.useServer(server, {
      hooks: {
        afterTool: [{ match: ["write", "edit"], command: `cat >> ../told; echo '{"message":"formatted"}'` }],
        turnEnd: [{ command: "cat >> ../ends; test -e b.txt || { echo 'b.txt is missing' >&2; exit 2; }" }]
      }
    })
    const ended = await home.run(["run", "--json", "--yes", "write"])
    expect(ended.code).toBe(0)
    expect(ended.lines().at(-1)).toMatchObject({ ...result, status: "done", text: "Both written." })
    expect(lastOf(server.requests[1]?.body)).toContain("formatted")
    expect(lastOf(server.requests[2]?.body)).toContain("A hook of the user wants you to go on: b.txt is missing")
    const told = readFileSync(join(home.folder, "told"), "utf8").trim().split("\n").map((line) => JSON.parse(line))
    expect(told.map((one) => [one.event, one.call.name, one.call.arguments.path, one.result.status])).toEqual([
      ["afterTool", "write", "a.txt", "ok"],
      ["afterTool", "write", "b.txt", "ok"]
    ])
    expect(readFileSync(join(home.folder, "ends"), "utf8").trim().split("\n")).toHaveLength(2)
  }, 30_000)

  it("that fail behind a tool are told on stderr, and change nothing", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "list", args: {} }] }, { text: "Nothing." })
    home.useServer(server, { hooks: { afterTool: [{ command: "echo 'no formatter' >&2; exit 1" }] } })
    const ended = await home.run(["run", "look"])
    expect(ended).toMatchObject({ code: 0, stdout: "Nothing.\n" })
    expect(ended.stderr).toMatch(/^bezel: The hook ".*" after list failed: it ended with exit code 1: no formatter\.$/m)
  }, 30_000)

  it("of a project do nothing before it is trusted", async () => {
    const home = makeHome()
    home.write("work/bezel.jsonc", JSON.stringify({ hooks: { beforeTool: [{ command: "touch hooked; exit 2" }] } }))
    const ended = await home.run(["run", "list"])
    expect(ended.code).toBe(0)
    expect(ended.stderr).toContain("is not trusted, so hooks in it has no effect")
    expect(existsSync(join(home.work, "hooked"))).toBe(false)
    await home.run(["run", "--trust", "list"])
    expect(existsSync(join(home.work, "hooked"))).toBe(true)
  }, 30_000)

  it("for a tool that there is not are told, and those for all that a rule calls so run", async () => {
    const home = makeHome()
    const server = await serve(
      { calls: [{ name: "web_fetch", args: { url: "https://example.com" } }] },
      { text: "Nothing." }
    )
    home.useServer(server, {
      hooks: {
        beforeTool: [
          { match: ["lst", "li*", "files_*"], command: "true" },
          { match: "web", command: "echo not today >&2; exit 2" }
        ]
      },
      mcp: { files: { command: ["/no/such/program"], enabled: false } }
    })
    const ended = await home.run(["run", "--yes", "look"])
    expect(ended.stderr).toBe(
      'bezel: The hook "true" does not run for "lst": there is no tool "lst" here; did you mean list?\n' +
        "✗ web_fetch https://example.com (blocked)\n"
    )
  }, 30_000)

  it("written wrongly are refused with the place of the fault", async () => {
    const home = makeHome()
    home.settings({ hooks: { beforeTool: [{ command: "true", timeout: -1 }] } })
    const ended = await home.run(["run", "list"])
    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(/bezel\.jsonc:1: hooks\.beforeTool.*timeout.*above 0/)
  }, 30_000)
})

describe("a run that is interrupted", () => {
  it("tells a command of the end of the call, and is over when it was told", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "bash", args: { command: "touch started; sleep 600" } }] })
    home.useServer(server, { hooks: { afterTool: [{ command: "sleep 0.3; cat > ../told" }] } })
    const running = home.start(["run", "--yes", "go"])
    await until(() => existsSync(join(home.work, "started")))
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    expect(JSON.parse(readFileSync(join(home.folder, "told"), "utf8"))).toMatchObject({
      event: "afterTool",
      call: { name: "bash" },
      result: { status: "aborted" }
    })
  }, 30_000)

  it("while a command decides ends that command and all that it has started", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "list", args: {} }] })
    home.useServer(server, { hooks: { beforeTool: [{ command: "sleep 600 & echo $! > ../pid; wait" }] } })
    const running = home.start(["run", "--yes", "go"])
    const pid = () => existsSync(join(home.folder, "pid")) ? Number(readFileSync(join(home.folder, "pid"), "utf8")) : 0
    await until(() => pid() > 0)
    expect(isAlive(pid())).toBe(true)
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    await until(() => !isAlive(pid()))
  }, 30_000)
})

describe("a run that is killed while commands decide about a call", () => {
  it("does not have one run twice that had decided, and has the one run again that was interrupted", async () => {
    const home = makeHome()
    const server = await serve(
      { calls: [{ id: "c1", name: "bash", args: { command: "echo ran >> ran" } }] },
      { text: "It was interrupted." },
      { text: "Done." }
    )
    const decided = `cat >/dev/null; echo x >> ../first; echo '{"arguments":{"command":"echo changed >> ran"}}'`
    const kills = "cat >/dev/null; echo x >> ../second; test -e ../killed || { touch ../killed; kill -9 $PPID; }"
    home.useServer(server, {
      hooks: { beforeTool: [{ match: "bash", command: decided }, { match: "bash", command: kills }] }
    })
    const first = await home.run(["run", "--yes", "go"])
    expect(first.signal).toBe("SIGKILL")
    expect(existsSync(join(home.work, "ran"))).toBe(false)
    const next = await home.run(["run", "--continue", "--yes", "go on"])
    expect(next).toMatchObject({ code: 0 })
    const count = (name: string) => readFileSync(join(home.folder, name), "utf8").trim().split("\n")
    expect(count("first")).toHaveLength(1)
    expect(count("second")).toHaveLength(2)
    // What it had decided holds for the call that goes on.
    expect(readFileSync(join(home.work, "ran"), "utf8")).toBe("changed\n")
    const tools = messagesOf(server.requests.at(-1)?.body).filter((message) => message.role === "tool")
    expect(tools.map((message) => message.tool_call_id)).toEqual(["c1"])
  }, 30_000)
})
