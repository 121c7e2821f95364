import { readdirSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { isAlive, messagesOf, result, serve, until } from "./run-fixture.ts"

describe("an answer", () => {
  const text = 'Zeile eins\r\nданные 数据 🎉👩‍👩‍👧 \u2028 e\u0301 "quoted" \\n end'

  it.each(["event", "whole", 1, 3, 7] as const)(
    "arrives byte for byte when the stream comes in chunks of %s",
    async (chunks) => {
      const home = makeHome()
      home.useServer(await serve({ text: [...text].map((point) => point), chunks }))
      expect(await home.run(["run", "say it"])).toMatchObject({ code: 0, stdout: `${text}\n`, stderr: "" })
    }
  )

  it("is asked for with the words of the command line, of stdin, or of both", async () => {
    const home = makeHome()
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server)
    await home.run(["run", "one", "two"])
    await home.run(["run"], { stdin: "from stdin\n" })
    await home.run(["run", "review:", "-"], { stdin: "diff" })
    const prompts = server.requests.map(({ body }) =>
      messagesOf(body).find((message) => message.role === "user")?.content
    )
    expect(JSON.stringify(prompts)).toBe(JSON.stringify(["one two", "from stdin\n", "review: diff"]))
  })

  it("can be asked about attached files; a file that is not there is a usage error", async () => {
    const home = makeHome()
    const server = await serve({ text: "ok" })
    home.useServer(server)
    home.write("work/a.txt", "content of a")
    expect((await home.run(["run", "--file", "a.txt", "what is it?"])).code).toBe(0)
    expect(JSON.stringify(server.requests[0]?.body)).toContain("content of a")
    expect(await home.run(["run", "--file", "b.txt", "hi"])).toMatchObject({
      code: 2,
      stderr: "bezel: --file b.txt: it does not exist\n"
    })
  })

  it("has what --system says in its system prompt", async () => {
    const home = makeHome()
    const server = await serve({ text: "ok" })
    home.useServer(server)
    await home.run(["run", "--system", "Speak like a pirate.", "hi"])
    expect(JSON.stringify(messagesOf(server.requests[0]?.body).filter((message) => message.role === "system")))
      .toContain("like a pirate")
  })

  it("leaves no trace of a failed attempt in a pipe", async () => {
    const home = makeHome()
    home.useServer(
      await serve({ text: ["wrong ", "start"], stop: { afterBytes: 300, then: "destroy" } }, { text: "right" })
    )
    const ended = await home.run(["run", "hi"])
    expect(ended).toMatchObject({ code: 0, stdout: "right\n" })
    expect(ended.stderr).toMatch(/^↻ trying again: .*\n$/)
  })
})

describe("--json", () => {
  it("begins with the session, has every event on a line of its own and ends with the result", async () => {
    const home = makeHome()
    home.useServer(await serve({ text: ["Hel", "lo"] }))
    const { code, lines, stderr } = await home.run(["run", "--json", "hi"])
    const types = lines().map((line) => line.type)
    expect([code, stderr, types[0], types.at(-1)]).toEqual([0, "", "session", "result"])
    expect(types).toEqual(
      expect.arrayContaining(["turn.started", "generation.started", "text.delta", "generation.completed", "turn.ended"])
    )
    expect(lines().filter((line) => line.type === "text.delta").map((line) => line.text).join("")).toBe("Hello")
    expect(lines().at(-1)).toMatchObject({ ...result, status: "done", text: "Hello", usage: { input: 10, output: 5 } })
  })

  it("has the reason of an unanswered run in the result", async () => {
    const home = makeHome()
    home.useServer(await serve({ status: 401, json: { error: { message: "bad key" } } }))
    const { code, lines } = await home.run(["run", "--json", "hi"])
    expect(code).toBe(1)
    expect(lines().at(-1)).toMatchObject({ ...result, status: "unanswered", reason: "failed", text: "" })
  })
})

describe("what is said before calls", () => {
  it("is given once, however many results come behind it", async () => {
    const home = makeHome()
    home.write("work/a.txt", "A")
    const calls = ["a.txt", "a.txt", "a.txt"].map((path) => ({ name: "read", args: { path } }))
    home.useServer(await serve({ text: "Let me look.", calls }, { text: "It says A." }))
    const { lines } = await home.run(["run", "--json", "go"])
    const deltas = lines().filter((line) => line.type === "text.delta").map((line) => line.text).join("|")
    expect(deltas.split("Let me look.").length - 1).toBe(1)
    expect(deltas.replaceAll("|", "")).toBe("Let me look.It says A.")
  })
})

describe("an answer without a word", () => {
  it("is no answer: it is asked for again, and told in the end", async () => {
    const home = makeHome()
    const server = await serve({ text: "" }, { text: "Here I am." })
    home.useServer(server)
    expect(await home.run(["run", "hi"])).toMatchObject({ code: 0, stdout: "Here I am.\n" })
    expect(server.requests.length).toBe(2)
  })
})

describe("a session that another process works in", () => {
  it("is refused with its holder, also as JSON and by remove", async () => {
    const home = makeHome()
    home.useServer(await serve({ calls: [{ name: "bash", args: { command: "sleep 30" } }] }, { text: "late" }))
    const running = home.start(["run", "--yes", "--json", "wait"])
    await running.seen(/tool.started/)
    const sessionID = String(JSON.parse(running.output.stdout.split("\n")[0] ?? "{}").sessionID)
    const inUse = /^bezel: the session ses_\w+ is in use by process \d+ .*\n$/
    const second = await home.run(["run", "--continue", "hello"])
    expect([second.code, second.stdout]).toEqual([1, ""])
    expect(second.stderr).toMatch(inUse)
    const json = await home.run(["run", "--json", "--session", sessionID, "hello"])
    expect(json.lines().at(-1)).toMatchObject({ type: "result", status: "unanswered", reason: "error" })
    expect((await home.run(["session", "remove", sessionID])).stderr).toMatch(inUse)
    running.process.kill("SIGTERM")
    await running.ended
  })
})

describe("five parallel calls", () => {
  it("have five results under their ids, in order, and broken JSON never goes back to the model", async () => {
    const home = makeHome()
    home.write("work/a.txt", "AAA")
    home.write("work/b.txt", "BBB")
    const server = await serve({
      calls: [
        { id: "c1", name: "read", args: { path: "a.txt" } },
        { id: "c2", name: "raed", args: { path: "a.txt" } },
        { id: "c3", name: "read", args: { path: 7 } },
        { id: "c4", name: "read", args: '{"path": "a.txt", limit":}' },
        { id: "c5", name: "read", args: { path: "b.txt" } }
      ]
    }, { text: "done" })
    home.useServer(server)
    expect(await home.run(["run", "go"])).toMatchObject({ code: 0, stdout: "done\n" })
    const sent = messagesOf(server.requests[1]?.body)
    const results = sent.filter((message) => message.role === "tool")
    expect(results.map((message) => message.tool_call_id)).toEqual(["c1", "c2", "c3", "c4", "c5"])
    const texts = results.map((message) => JSON.stringify(message.content))
    expect(texts[0]).toContain("AAA")
    expect(texts[1]).toMatch(/raed.*read/)
    expect(texts[2]).toContain("path")
    expect(texts[3]).toMatch(/JSON/)
    expect(texts[4]).toContain("BBB")
    const calls = sent.flatMap((message) => message.tool_calls ?? [])
    expect(calls.map((call) => call.id)).toEqual(["c1", "c2", "c3", "c4", "c5"])
    for (const call of calls) expect(typeof JSON.parse(call.function.arguments)).toBe("object")
    expect(JSON.stringify(server.requests[1]?.body)).not.toContain('limit\\":}')
  })
})

describe("the exit code is", () => {
  it("1 with one line when the model does not answer", async () => {
    const home = makeHome()
    home.useServer(await serve({ status: 401, json: { error: { message: "invalid key" } } }))
    const { code, stderr, stdout } = await home.run(["run", "hi"])
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toMatch(/^bezel: [^\n]+\n$/)
    expect(stderr).not.toMatch(/\n\s+at |k-secret-123/)
  })

  it("2 for a model that does not exist, named with what there is", async () => {
    const home = makeHome()
    home.useServer(await serve())
    expect(await home.run(["run", "--model", "test/n", "hi"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: 'bezel: There is no model "n" at the provider "test"; did you mean m?\n'
    })
    expect((await home.run(["run", "--model", "nonsense", "hi"])).code).toBe(2)
    home.settings({ model: "gone/m" })
    expect(await home.run(["run", "hi"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bezel: .*"gone".*\n$/)
    })
  })

  it("3 when something was denied because nobody could be asked, and the answer is printed all the same", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "bash", args: { command: "touch made" } }] }, { text: "I could not." })
    home.useServer(server)
    expect(await home.run(["run", "go"])).toMatchObject({ code: 3, stdout: "I could not.\n" })
    expect(JSON.stringify(server.requests[1]?.body)).toContain("nobody is here")
    expect(readdirSync(home.work)).toEqual([])
  })

  it("0 when an explicit rule denied it", async () => {
    const home = makeHome()
    const server = await serve()
    server.always(({ body }) =>
      messagesOf(body).some((message) => message.role === "tool")
        ? { text: "no" }
        : { calls: [{ name: "bash", args: { command: "touch made" } }] }
    )
    home.useServer(server, { permissions: { bash: { "touch *": "deny", "*": "ask" } } })
    expect((await home.run(["run", "--yes", "go"])).code).toBe(0)
    home.useServer(server)
    expect((await home.run(["run", "--yes", "--deny", "bash(touch *)", "go"])).code).toBe(0)
    expect(readdirSync(home.work)).toEqual([])
    expect((await home.run(["run", "--allow", "bash(touch *)", "go"])).code).toBe(0)
    expect(readdirSync(home.work)).toEqual(["made"])
  })

  it("2 for a rule that cannot be read", async () => {
    expect(await makeHome().run(["run", "--allow", "bash(", "hi"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bezel: "bash\(" .*\n$/)
    })
  })

  it("124 after --timeout, with the command that ran gone and the session fit to be continued", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "bash", args: { command: "echo $$ > pid; sleep 60" } }] }, {
      text: "on we go"
    })
    home.useServer(server)
    const ended = await home.run(["run", "--yes", "--timeout", "4", "go"])
    expect(ended).toMatchObject({ code: 124, stdout: "" })
    expect(isAlive(Number(readFileSync(join(home.work, "pid"), "utf8")))).toBe(false)
    expect(await home.run(["run", "--continue", "and now?"])).toMatchObject({ code: 0, stdout: "on we go\n" })
    const results = messagesOf(server.requests[1]?.body).filter((message) => message.role === "tool")
    expect(results).toHaveLength(1)
  })

  it("130 after an interrupt, before 3", async () => {
    const home = makeHome()
    home.useServer(
      await serve({
        calls: [{ name: "write", args: { path: "x", content: "x" } }, {
          name: "bash",
          args: { command: "sleep 60" }
        }]
      })
    )
    const running = home.start(["run", "--json", "--allow", "bash", "go"])
    await running.seen(/"unattended"/)
    await running.seen(/"tool.started".*sleep/)
    running.process.kill("SIGINT")
    const { code, lines } = await running.ended
    expect([code, lines().at(-1)?.reason]).toEqual([130, "interrupted"])
  })

  it("130 at once after a second interrupt, and nothing that ran is left", async () => {
    const home = makeHome()
    home.useServer(
      await serve({
        calls: [{
          name: "bash",
          args: { command: "trap '' INT TERM; echo $$ > pid; echo up; while :; do sleep 1; done" }
        }]
      })
    )
    const running = home.start(["run", "--json", "--yes", "go"])
    await running.seen(/tool\.started/)
    await until(() => readdirSync(home.work).includes("pid") && readFileSync(join(home.work, "pid"), "utf8") !== "")
    running.process.kill("SIGINT")
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    const pid = Number(readFileSync(join(home.work, "pid"), "utf8"))
    await until(() => !isAlive(pid))
    expect(isAlive(pid)).toBe(false)
  })

  it("1 when the limit of steps ends the turn", async () => {
    const home = makeHome()
    const server = await serve()
    server.always({ calls: [{ name: "list", args: {} }] })
    home.useServer(server)
    expect(await home.run(["run", "--max-steps", "2", "go"])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/bezel: .*2 requests/)
    })
    expect(server.requests).toHaveLength(2)
  })
})

describe("the folder that it works in", () => {
  it("is the process's real working directory or --dir, never $PWD", async () => {
    const home = makeHome()
    home.write("work/here.txt", "right")
    home.write("other/here.txt", "wrong")
    symlinkSync(home.work, join(home.folder, "link"))
    const env = { PWD: join(home.folder, "other") }
    expect((await home.run(["run", "read here.txt"], { env })).stdout).toContain("right")
    expect((await home.run(["run", "read here.txt"], { cwd: join(home.folder, "link"), env })).stdout).toContain(
      "right"
    )
    expect((await home.run(["run", "--dir", "../link", "read here.txt"])).stdout).toContain("right")
    expect((await home.run(["run", "--dir", "../other", "read here.txt"])).stdout).toContain("wrong")
    const folders = (await home.run(["session", "list", "--all", "--json"])).lines().map((line) => line.location)
    expect(new Set(folders.map((location) => JSON.stringify(location))).size).toBe(2)
  })
})

describe("odd places", () => {
  it("a folder that was deleted is told in one line", async () => {
    const home = makeHome()
    const ran = await home.run(["run", "hi"], { gone: true })
    // The shell that starts the command has a word of its own about such a folder.
    expect([ran.code, ran.stderr.split("\n").filter((line) => line.startsWith("bezel:"))]).toEqual([
      2,
      ["bezel: the current folder was deleted; change to another one, or name one with --dir"]
    ])
  })

  it("a settings file that is a device or a pipe is refused, not read for ever", async () => {
    const home = makeHome()
    symlinkSync("/dev/zero", join(home.work, "bezel.jsonc"))
    expect(await home.run(["run", "hi"])).toMatchObject({ code: 2, stdout: "" })
  })

  it("a data folder that cannot be made is told in one line", async () => {
    const home = makeHome()
    const ran = await home.run(["run", "hi"], { env: { BEZEL_DATA_DIR: "/proc/bezel" } })
    expect(ran.code).not.toBe(0)
    expect(ran.stderr).toMatch(/^bezel: .*\/proc\/bezel.*\n$/)
  })

  it("an output that cannot be written is told in one line, and the session is closed in order", async () => {
    const home = makeHome()
    const ran = await home.run(["run", "hi"], { stdoutTo: "/dev/full" })
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringMatching(/^bezel: stdout cannot be written: ENOSPC.*\n$/)])
    expect((await home.run(["doctor"])).stdout).toMatch(/^✓ locks: no session is in use$/m)
    // What is written before the end ends what runs.
    const early = await home.run(["run", "--json", "--yes", "run sleep 20"], { stdoutTo: "/dev/full" })
    expect([early.code, early.stderr]).toEqual([
      1,
      expect.stringMatching(/^bezel: stdout cannot be written: ENOSPC.*\n$/)
    ])
    expect((await home.run(["doctor"])).stdout).toMatch(/^✓ locks: no session is in use$/m)
  })
})

describe("settings", () => {
  it.each([
    ["an unknown setting", '{\n  "modle": "a/b"\n}', /bezel\.jsonc:2.*modle.*model/],
    ["broken JSONC", '{\n  // fine\n  "model": "a/b",,\n}', /bezel\.jsonc:3/],
    ["a value of a wrong type", '{ "model": 7 }', /bezel\.jsonc:1.*model/]
  ])("with %s are refused with file and line", async (_, content, message) => {
    const home = makeHome()
    home.settings(content)
    const { code, stderr, stdout } = await home.run(["run", "hi"])
    expect([code, stdout]).toEqual([2, ""])
    expect(stderr).toMatch(message)
    expect(stderr).toMatch(/^bezel: [^\n]+\n$/)
  })

  it("can be overridden for one run, and a wrong override is refused", async () => {
    const home = makeHome()
    const server = await serve({ text: "ok" })
    home.useServer(server, { model: "gone/m" })
    expect((await home.run(["run", "--set", "model=test/m", "hi"])).code).toBe(0)
    expect(await home.run(["run", "--set", "modle=x", "hi"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--set.*modle/)
    })
  })

  it("of a project that nobody trusts are skipped and named, unless --trust says otherwise", async () => {
    const home = makeHome()
    const server = await serve({ text: "from the user's" }, { text: "from the project's" })
    home.useServer(server)
    home.write(
      "work/bezel.jsonc",
      JSON.stringify({
        model: "evil/m",
        providers: {
          evil: { package: "@ai-sdk/openai-compatible", options: { baseURL: server.url }, models: { m: {} } }
        }
      })
    )
    const first = await home.run(["run", "hi"])
    expect(first).toMatchObject({ code: 0, stdout: "from the user's\n" })
    expect(first.stderr).toMatch(/^bezel: .*bezel\.jsonc is not trusted, so model, providers in it have no effect.*\n$/)
    expect(await home.run(["run", "--trust", "hi"])).toMatchObject({
      code: 0,
      stdout: "from the project's\n",
      stderr: ""
    })
    expect(server.requests.map(({ body }) => body.model)).toEqual(["m", "m"])
  })
})

describe("with no settings at all", () => {
  it("the offline model works through the real tools", async () => {
    const home = makeHome()
    home.write("work/src/a.ts", "export const answer = 42\n")
    const { code, stderr, stdout } = await home.run([
      "run",
      "--yes",
      "list then search answer in **/*.ts then read src/a.ts then write b.txt: hello then edit b.txt: hello => bye then run cat b.txt"
    ])
    expect(code).toBe(0)
    expect(stdout).toContain("answer = 42")
    expect(stdout).toContain("bye")
    expect(stderr.trim().split("\n").map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual(
      ["✓ list", "✓ search", "✓ read", "✓ write", "✓ edit", "✓ bash"]
    )
  })

  it("says what it is and how to connect a real one", async () => {
    const { code, stdout } = await makeHome().run(["run", "how are you?"])
    expect([code, stdout.includes("bezel/offline"), stdout.includes("bezel.jsonc")]).toEqual([0, true, true])
  })
})
