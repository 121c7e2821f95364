import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { type ScriptedReply, startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { isAlive } from "../tui/terminal.ts"
import { makeHome } from "./command.ts"
import { eventually, hostsOf, startServer } from "./serve-fixture.ts"

const state = ".local/state/bezel/server"

/** A model that never answers. */
const hanging: ScriptedReply = { text: "never", stop: { afterBytes: 0, how: "hang" } }

const modelServer = async () => {
  const server = await startModelServer()
  onTestFinished(() => server.close())
  return server
}

describe("bezel serve", { timeout: 90_000 }, () => {
  it("answers once its first line is out, with the token of that line, and ends with 0 when it is told to", async () => {
    const home = makeHome()
    const server = await startServer(home)
    expect(server.first).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      token: expect.stringMatching(/^bzl_/),
      pid: server.process.pid,
      isolation: "location",
      resumed: 0
    })
    expect(await server.call("GET", "/health", undefined, null)).toMatchObject({ status: 200, body: { status: "ok" } })
    server.process.kill("SIGTERM")
    expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: "" })
    expect(readdirSync(join(home.folder, state))).toEqual(["token"])
  })

  it.each(["none", "location", "session"])("answers prompts with --isolation %s", async (isolation) => {
    const home = makeHome()
    const server = await startServer(home, ["--isolation", isolation])
    const one = await server.create()
    const two = await server.create()
    home.write("work/note.txt", "Bezels hold stones.\n")
    for (const id of [one, two]) {
      expect(await server.prompt(id, "read note.txt")).toMatchObject({
        status: "done",
        text: expect.stringContaining("Bezels hold stones")
      })
    }
    expect(hostsOf(home)).toHaveLength({ none: 0, location: 1, session: 2 }[isolation] ?? -1)
    const hosts = hostsOf(home)
    server.process.kill("SIGINT")
    expect((await server.ended).code).toBe(0)
    expect([hosts.filter(isAlive), hostsOf(home)]).toEqual([[], []])
  })

  it("says where it is and who finds it, for people", async () => {
    const home = makeHome()
    const server = home.start(["serve", "--port", "0"])
    await server.seen(/Bezel serves sessions on http:\/\/127\.0\.0\.1:\d+; Ctrl-C ends it\.\n.*bezel attach/)
    expect(server.output.stdout).not.toContain("bzl_")
    server.process.kill("SIGTERM")
    await server.ended
  })

  it("keeps its token from one start to the next, readable by this user only, and takes that of BEZEL_TOKEN instead", async () => {
    const home = makeHome()
    const first = await startServer(home)
    const file = join(home.folder, state, "token")
    expect(readFileSync(file, "utf8").trim()).toBe(first.token)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    first.process.kill("SIGTERM")
    await first.ended
    chmodSync(file, 0o644)
    const second = await startServer(home)
    expect(second.token).toBe(first.token)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    second.process.kill("SIGTERM")
    await second.ended
    const third = await startServer(home, [], { BEZEL_TOKEN: "a-token-of-my-own" })
    expect(third.token).toBe("a-token-of-my-own")
    expect((await third.call("GET", "/session", undefined, first.token)).status).toBe(401)
    expect((await third.call("GET", "/session")).status).toBe(200)
  })

  it("does not hand its token to what it runs", async () => {
    const home = makeHome()
    home.settings({ permissions: { bash: "allow" } })
    const server = await startServer(home, [], { BEZEL_TOKEN: "a-token-of-my-own" })
    const id = await server.create()
    expect(await server.prompt(id, "run env; echo done")).toMatchObject({ text: expect.stringContaining("done") })
    const messages = JSON.stringify((await server.call("GET", `/session/${id}/message`)).body)
    expect(messages).toContain("PATH=")
    expect(messages).not.toContain("a-token-of-my-own")
  })

  it("refuses a wrong token, no token, and a Host that is not its own", async () => {
    const home = makeHome()
    const server = await startServer(home, ["--allow-host", "bezel.test"])
    expect((await server.call("GET", "/session", undefined, "wrong")).status).toBe(401)
    expect((await server.call("GET", "/session", undefined, null)).status).toBe(401)
    const withHost = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { host, authorization: `Bearer ${server.token}` }
        request(`${server.url}/session`, { headers }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        }).on("error", reject).end()
      })
    expect(await withHost("evil.test")).toBe(403)
    expect(await withHost("bezel.test")).toBe(200)
  })

  it("tells who has the port, with exit code 2", async () => {
    const home = makeHome()
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => {
      other.close()
    })
    const address = other.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    expect(await home.run(["serve", "--port", `${port}`])).toMatchObject({
      code: 2,
      stdout: "",
      stderr:
        `bezel: Port ${port} of 127.0.0.1 is in use by another program; choose another one with --port, or --port 0 for any.\n`
    })
    expect(readdirSync(join(home.folder, state))).toEqual(["token"])
  })

  it.each([
    [["--port", "70000"], "--port takes a port, which is 65535 at most, not 70000"],
    [["--host", "no.such.host.invalid"], "Listening on no.such.host.invalid lets other machines in"],
    [["--allow-host", "http://bezel.test"], "--allow-host takes a name without scheme and port"],
    [["--allow-origin", "https://bezel.test/"], "--allow-origin takes an origin as browsers write it"]
  ])("refuses %j before anything starts", async (more, message) => {
    const home = makeHome()
    const refused = await home.run(["serve", "--port", "0", ...more])
    expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) })
    expect(existsSync(join(home.folder, ".local/share/bezel"))).toBe(false)
  })

  it("says what is wrong with a folder that it cannot use", async () => {
    const home = makeHome()
    home.write("blocked", "a file")
    const refused = await home.run(["serve", "--port", "0"], { env: { BEZEL_DATA_DIR: join(home.folder, "blocked") } })
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(/^bezel: .*blocked.*\n$/)
  })

  it("answers what it has accepted also when it is told to stop", async () => {
    const home = makeHome()
    const model = await modelServer()
    home.useServer(model)
    model.reply(hanging)
    const server = await startServer(home)
    const id = await server.create()
    await server.say(id, "go on")
    await eventually(() => model.requests.length === 1)
    const waiting = server.call("POST", `/session/${id}/wait?timeout=60`)
    const events = await fetch(`${server.url}/session/${id}/event`, {
      headers: { authorization: `Bearer ${server.token}` }
    })
    server.process.kill("SIGTERM")
    expect(await waiting).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } })
    await events.text()
    expect((await server.ended).code).toBe(0)
  })

  it("lets no other machine in without a token that somebody has chosen, and says what that means", async () => {
    const home = makeHome()
    const refused = await home.run(["serve", "--host", "0.0.0.0", "--port", "0"])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(/^bezel: Listening on 0\.0\.0\.0 lets other machines in: .*BEZEL_TOKEN\.\n$/)
    const short = await home.run(["serve", "--host", "0.0.0.0", "--port", "0"], { env: { BEZEL_TOKEN: "short" } })
    expect(short).toMatchObject({ code: 2, stderr: refused.stderr })
    const server = await startServer(home, ["--host", "0.0.0.0"], { BEZEL_TOKEN: "a-token-of-my-own-choice" })
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await server.call("GET", "/session")).status).toBe(200)
  })

  it("is the only one of its data folder, and the second is told where the first is", async () => {
    const home = makeHome()
    const server = await startServer(home)
    const second = await home.run(["serve", "--port", "0"])
    expect(second).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `bezel: A server runs on this data folder already: ${server.url} (process ${server.process.pid}); ` +
        "bezel attach shows its sessions.\n"
    })
    // With a state folder of its own it does not see the note, but the folder is taken all the same.
    const elsewhere = await home.run(["serve", "--port", "0"], {
      env: { BEZEL_STATE_DIR: join(home.folder, "state2") }
    })
    expect(elsewhere.code).toBe(2)
    expect(elsewhere.stderr).toContain(`process ${server.process.pid}`)
    const other = await startServer(home, [], { BEZEL_DATA_DIR: join(home.folder, "data2") })
    expect(other.url).not.toBe(server.url)
  })

  it("starts where a killed one has left its note and its lease, and ends what that had left running", async () => {
    const home = makeHome()
    const killed = await startServer(home)
    await killed.prompt(await killed.create(), "read note.txt")
    const [host = 0] = hostsOf(home)
    // So that it cannot notice that its server is gone.
    process.kill(host, "SIGSTOP")
    killed.process.kill("SIGKILL")
    await killed.ended
    expect(isAlive(host)).toBe(true)
    const notes = () => readdirSync(join(home.folder, state)).filter((name) => name.endsWith(".json"))
    expect(notes()).toHaveLength(1)
    const next = await startServer(home)
    expect(isAlive(host)).toBe(false)
    expect(JSON.parse(readFileSync(join(home.folder, state, notes()[0] ?? ""), "utf8"))).toMatchObject({
      url: next.url,
      pid: next.process.pid
    })
  })

  it("tells what became of a session's host that was killed, and starts it again for the next who asks", async () => {
    const home = makeHome()
    const server = await startServer(home)
    const id = await server.create()
    home.write("work/note.txt", "Bezels hold stones.\n")
    await server.prompt(id, "read note.txt")
    const [before = 0] = hostsOf(home)
    process.kill(before, "SIGKILL")
    await eventually(() => hostsOf(home).length === 0)
    expect(await server.prompt(id, "read note.txt")).toMatchObject({ text: expect.stringContaining("stones") })
    expect(hostsOf(home)).not.toContain(before)
  })

  it.each(["none", "location"])(
    "suspends turns when it is told to stop, and its successor goes on with them (isolation %s)",
    async (isolation) => {
      const home = makeHome()
      const model = await modelServer()
      home.useServer(model)
      // The first request hangs; the one of the next server is answered.
      model.reply(hanging)
      model.always({ text: ["an answer after all"] })
      const server = await startServer(home, ["--isolation", isolation])
      const id = await server.create()
      const input = await server.say(id, "go on")
      await eventually(() => model.requests.length === 1)
      server.process.kill("SIGTERM")
      expect((await server.ended).code).toBe(0)
      const next = await startServer(home, ["--isolation", isolation])
      expect(next.first.resumed).toBe(1)
      expect((await next.call("POST", `/session/${id}/wait?timeout=60&input=${input}`)).body).toMatchObject({
        status: "done",
        text: "an answer after all"
      })
    }
  )

  it("goes on with the turns of a host that was killed, although nobody looks", async () => {
    const home = makeHome()
    const model = await modelServer()
    home.useServer(model)
    model.reply(hanging)
    model.always({ text: ["an answer after all"] })
    const server = await startServer(home)
    const id = await server.create()
    await server.say(id, "go on")
    await eventually(() => model.requests.length === 1)
    // Until the server itself holds the session no longer.
    const metrics = () =>
      fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } }).then((answer) =>
        answer.text()
      )
    await eventually(async () => (await metrics()).includes("\nbezel_sessions_held 0\n"))
    const [host = 0] = hostsOf(home)
    process.kill(host, "SIGKILL")
    await eventually(() => model.requests.length === 2)
    expect((await server.call("POST", `/session/${id}/wait?timeout=30`)).body).toMatchObject({
      status: "idle",
      text: "an answer after all"
    })
    expect(hostsOf(home)).not.toContain(host)
  })

  it("goes on with turns that a killed server was working on, and not with those of others", async () => {
    const home = makeHome()
    const model = await modelServer()
    home.useServer(model)
    model.reply(hanging, hanging)
    model.always({ text: ["an answer after all"] })
    const alone = home.start(["run", "not for a server"])
    await eventually(() => model.requests.length === 1)
    alone.process.kill("SIGKILL")
    await alone.ended
    const server = await startServer(home)
    const id = await server.create()
    const input = await server.say(id, "go on")
    await eventually(() => model.requests.length === 2)
    server.process.kill("SIGKILL")
    await server.ended
    const next = await startServer(home)
    expect(next.first.resumed).toBe(1)
    expect((await next.call("POST", `/session/${id}/wait?timeout=60&input=${input}`)).body).toMatchObject({
      status: "done"
    })
    expect(model.requests).toHaveLength(3)
  })
})

describe("bezel doctor", { timeout: 90_000 }, () => {
  it("says whether a server runs and answers, and who can read its tokens", async () => {
    const home = makeHome()
    const found = async () => {
      const { code, stdout } = await home.run(["doctor", "--json"])
      const all = stdout.trim().split("\n").map((line) => JSON.parse(line))
      return { code, messages: all.filter(({ part }) => part === "server").map(({ message }) => message) }
    }
    expect(await found()).toEqual({ code: 0, messages: ["none runs here"] })
    const server = await startServer(home)
    const { pid = 0 } = server.process
    await home.run(["auth", "token", "create", "phone"])
    expect(await found()).toEqual({
      code: 0,
      messages: [`runs on ${server.url} (process ${pid})`, "tokens given away: phone (bezel auth token list)"]
    })
    const file = join(home.folder, state, "token")
    chmodSync(file, 0o644)
    process.kill(pid, "SIGSTOP")
    const { code, messages } = await found()
    expect(code).toBe(1)
    expect(messages.slice(0, 2)).toEqual([
      `process ${pid} does not answer on ${server.url}; kill ${pid} ends it, and bezel serve starts anew`,
      `${file} can be read by others; chmod 600 ${file} mends that`
    ])
  })
})

describe("bezel auth token", { timeout: 60_000 }, () => {
  it("makes tokens that do what their scope says, lists them without showing them, and takes them back at once", async () => {
    const home = makeHome()
    const made = await home.run(["auth", "token", "create", "phone", "--scope", "read"])
    const token = made.stdout.trim()
    expect([made.code, token]).toEqual([0, expect.stringMatching(/^bzl_/)])
    const server = await startServer(home)
    expect((await server.call("GET", "/session", undefined, token)).status).toBe(200)
    expect((await server.call("POST", "/session", { location: home.work }, token)).status).toBe(403)
    const listed = await home.run(["auth", "token", "list"])
    expect(listed.stdout).toMatch(/^phone +read +\d{4}-/)
    for (const name of readdirSync(join(home.folder, state))) {
      if (name !== "token") expect(readFileSync(join(home.folder, state, name), "utf8")).not.toContain(token)
    }
    expect((await home.run(["auth", "token", "revoke", "phone"])).code).toBe(0)
    expect((await server.call("GET", "/session", undefined, token)).status).toBe(401)
    expect((await home.run(["auth", "token", "revoke", "phone"])).code).toBe(2)
  })

  it("says what is wrong with what it is asked", async () => {
    const home = makeHome()
    expect((await home.run(["auth", "token", "make", "x"])).stderr).toContain("create, list or revoke")
    expect((await home.run(["auth", "token", "create"])).stderr).toContain("which token?")
    expect((await home.run(["auth", "token", "create", "a b"])).stderr).toContain("letters, digits")
    expect((await home.run(["auth", "token", "create", "owner"])).stderr).toContain("already")
    mkdirSync(join(home.folder, state), { recursive: true })
    writeFileSync(join(home.folder, state, "tokens.json"), "{")
    const damaged = await home.run(["auth", "token", "list"])
    expect(damaged.code).toBe(2)
    expect(damaged.stderr).toContain("tokens.json is damaged")
    expect(existsSync(join(home.folder, state, "tokens.json"))).toBe(true)
  })
})
