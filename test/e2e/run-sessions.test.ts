import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { isAlive, messagesOf, serve, until } from "./run-fixture.ts"

describe("a session", () => {
  it("goes on with --continue and --session, and its name can be given", async () => {
    const home = makeHome()
    const server = await serve({ text: "one" }, { text: "two" }, { text: "three" })
    home.useServer(server)
    const first = await home.run(["run", "--json", "--title", "My work", "first"])
    const sessionID = String(first.lines()[0]?.sessionID)
    await home.run(["run", "--continue", "second"])
    await home.run(["run", "--session", sessionID, "third"])
    expect(
      messagesOf(server.requests[2]?.body).filter((message) => message.role !== "system").map((message) =>
        JSON.stringify(message.content)
      )
    ).toEqual(
      ['"first"', '"one"', '"second"', '"two"', '"third"']
    )
    expect((await home.run(["session", "list"])).stdout).toMatch(new RegExp(`^${sessionID}  .*My work\n$`))
  })

  it("is forked with --fork, and the original stays as it is", async () => {
    const home = makeHome()
    const server = await serve({ text: "one" }, { text: "two" }, { text: "three" })
    home.useServer(server)
    const original = String((await home.run(["run", "--json", "first"])).lines()[0]?.sessionID)
    const copy = String((await home.run(["run", "--json", "--fork", "latest", "aside"])).lines()[0]?.sessionID)
    expect(copy).not.toBe(original)
    expect((await home.run(["session", "show", copy])).stdout).toContain("> first")
    await home.run(["run", "--session", original, "main again"])
    const last = JSON.stringify(messagesOf(server.requests[2]?.body))
    expect([last.includes("first"), last.includes("aside"), last.includes("main again")]).toEqual([true, false, true])
  })

  it("that does not exist, or belongs to another folder, is refused by name", async () => {
    const home = makeHome()
    home.useServer(await serve({ text: "one" }))
    expect(await home.run(["run", "--session", "ses_none", "hi"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bezel: .*ses_none.*\n$/)
    })
    const sessionID = String((await home.run(["run", "--json", "first"])).lines()[0]?.sessionID)
    mkdirSync(join(home.folder, "elsewhere"))
    expect(await home.run(["run", "--session", sessionID, "hi"], { cwd: join(home.folder, "elsewhere") }))
      .toMatchObject({
        code: 2,
        stderr: expect.stringMatching(new RegExp(`^bezel: .*${sessionID}.*\n$`))
      })
  })

  it("survives kill -9 in a tool: each call has exactly one result and nothing acknowledged is lost", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ id: "c1", name: "bash", args: { command: "echo $$ > pid; sleep 60" } }] }, {
      text: "I see."
    }, { text: "It was killed." })
    home.useServer(server)
    const running = home.start(["run", "--json", "--yes", "go"])
    await until(() => readdirSync(home.work).includes("pid"))
    running.process.kill("SIGKILL")
    await running.ended
    expect(await home.run(["run", "--continue", "--yes", "what happened?"])).toMatchObject({
      code: 0,
      stdout: "It was killed.\n"
    })
    const sent = messagesOf(server.requests.at(-1)?.body)
    expect(sent.filter((message) => message.role === "user").map((message) => message.content)).toEqual([
      "go",
      "what happened?"
    ])
    expect(sent.filter((message) => message.role === "tool").map((message) => message.tool_call_id)).toEqual(["c1"])
    expect(JSON.stringify(sent)).toMatch(/was stopped while bash was running/)
  })

  it("ends at the next start what commands of a killed one have left running, and nothing of one that lives", async () => {
    const home = makeHome()
    const start = (name: string) => home.start(["run", "--yes", `run echo $$ > ${name}; exec sleep 300`])
    const [killed] = [start("orphan"), start("busy")]
    const pidOf = (name: string): number =>
      readdirSync(home.work).includes(name) ? Number(readFileSync(join(home.work, name), "utf8")) : 0
    await until(() => pidOf("orphan") > 0 && pidOf("busy") > 0)
    killed?.process.kill("SIGKILL")
    await killed?.ended
    expect([isAlive(pidOf("orphan")), isAlive(pidOf("busy"))]).toEqual([true, true])
    await home.run(["run", "list"])
    await until(() => !isAlive(pidOf("orphan")))
    expect(isAlive(pidOf("busy"))).toBe(true)
    process.kill(pidOf("busy"))
  })

  it("is listed, shown, exported and removed", async () => {
    const home = makeHome()
    home.write("work/a.txt", "A")
    home.useServer(
      await serve({ text: "Let me look.", calls: [{ name: "read", args: { path: "a.txt" } }] }, { text: "It says A." })
    )
    const sessionID = String((await home.run(["run", "--json", "what is in a.txt?"])).lines()[0]?.sessionID)
    expect((await home.run(["session", "show", sessionID])).stdout).toBe(
      "> what is in a.txt?\n\nLet me look.\n* read a.txt\n\nIt says A.\n\n"
    )
    expect(JSON.parse((await home.run(["session", "export", sessionID])).stdout)).toMatchObject({
      bezel: "session",
      record: { id: sessionID }
    })
    expect((await home.run(["session", "list", "--json"])).lines()).toMatchObject([{
      id: sessionID,
      status: "idle",
      usage: { input: 20 }
    }])
    expect(await home.run(["session", "remove", sessionID])).toMatchObject({ code: 0, stdout: "" })
    expect((await home.run(["session", "list"])).stdout).toBe("")
    expect(await home.run(["session", "show", sessionID])).toMatchObject({ code: 2 })
  })

  it("is copied up to an entry, carried to another folder and summarized", async () => {
    const home = makeHome()
    home.useServer(
      await serve({ text: "One." }, { text: "Two." }, { text: "The short of it." }, { text: "Four." }, {
        text: "Five."
      })
    )
    const original = String((await home.run(["run", "--json", "first"])).lines()[0]?.sessionID)
    const entries = (await home.run(["session", "show", original, "--json"])).lines()
    await home.run(["run", "--continue", "second"])
    const forked = (await home.run(["session", "fork", original, "--at", String(entries.at(-1)?.id)])).stdout.trim()
    expect((await home.run(["session", "show", forked])).stdout).toBe("> first\n\nOne.\n\n")
    expect(await home.run(["session", "fork", original, "--at", "e999"])).toMatchObject({ code: 2 })

    home.write("other/.keep", "")
    const document = (await home.run(["session", "export", original])).stdout
    const other = { cwd: join(home.folder, "other") }
    const carried = (await home.run(["session", "import"], { ...other, stdin: document })).stdout.trim()
    expect((await home.run(["session", "list"], other)).stdout).toContain(carried)
    expect(await home.run(["session", "import"], { ...other, stdin: "{" })).toMatchObject({ code: 2 })

    expect(await home.run(["session", "compact", original])).toMatchObject({ code: 0 })
    expect(await home.run(["run", "--session", original, "go on"])).toMatchObject({ code: 0, stdout: "Four.\n" })
  })

  it("is kept as JSON lines where the user's settings say so, and goes on as it began", async () => {
    const home = makeHome()
    home.write("work/a.txt", "A")
    home.settings({ sessions: { format: "jsonl", durability: "power" } })
    const sessionID = String((await home.run(["run", "--json", "read a.txt"])).lines()[0]?.sessionID)
    const journal = join(home.folder, ".local/share/bezel/sessions", sessionID, "journal/000001.jsonl")
    expect(readFileSync(journal, "utf8")).toContain("read a.txt")
    home.settings({})
    expect(await home.run(["run", "--continue", "read a.txt"])).toMatchObject({ code: 0, stdout: "A\n" })
    expect(readFileSync(journal, "utf8").match(/"kind":"bezel.user","data"/g)?.length).toBe(2)
  })

  it("is kept in files that only their owner can read, without the key", async () => {
    const home = makeHome()
    home.useServer(await serve({ text: "ok" }))
    await home.run(["run", "hi"])
    const files = readdirSync(home.folder, { recursive: true, withFileTypes: true }).map((entry) => ({
      path: join(entry.parentPath, entry.name),
      isFile: entry.isFile()
    })).filter(({ path }) => path.includes("/.local/"))
    const open = files.filter(({ isFile, path }) => isFile && (statSync(path).mode & 0o077) !== 0).map(({ path }) =>
      path
    )
    expect([files.length > 0, open]).toEqual([true, []])
    expect(statSync(join(home.folder, ".local/share/bezel/sessions")).mode & 0o077).toBe(0)
    for (const { isFile, path } of files) if (isFile) expect(readFileSync(path, "latin1")).not.toContain("k-secret-123")
  })
})
