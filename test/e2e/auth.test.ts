/** Keys through the command: storing, using, listing and removing them, and signing in. */
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { readFileSync, statSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { authorizationServer } from "../plugins/accounts/authorization-server.ts"
import { realSite } from "../plugins/mcp/real-site.ts"
import { makeHome, root } from "./command.ts"
import { messagesOf } from "./run-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const example = join(
  root,
  "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js"
)

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, "127.0.0.1")
  await new Promise((resolve) => probe.once("listening", resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return typeof address === "object" && address !== null ? address.port : 0
}

const secret = "sk-stored-0123456789"

/** A home whose provider `test` has no key in its settings. */
const withServer = async (more: object = {}) => {
  const server = await startModelServer(...Array.from({ length: 8 }, () => ({ text: "yes" })))
  const home = makeHome()
  home.settings({
    model: "test/m",
    providers: {
      test: { package: "@ai-sdk/openai-compatible", options: { baseURL: server.url }, models: { m: {} }, ...more }
    }
  })
  return { home, server, close: () => server.close() }
}

describe("a stored key", { timeout: 60_000 }, () => {
  it("goes with requests from when it is stored until it is removed, and is shown nowhere", async () => {
    const { close, home, server } = await withServer()
    expect(await home.run(["run", "hello"])).toMatchObject({ code: 0, stdout: "yes\n" })
    expect(server.requests.at(-1)?.headers.authorization).toBeUndefined()

    const said = await home.run(["auth", "set", "test"], { stdin: `${secret}\n` })
    expect(said).toMatchObject({ code: 0, stdout: "", stderr: "The key for test is stored.\n" })
    const file = join(home.folder, ".local/share/bezel/credentials.json")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, "utf8")).toContain(secret)

    const ended = await home.run(["run", "--json", "hello"])
    expect(ended.code).toBe(0)
    expect(server.requests.at(-1)?.headers.authorization).toBe(`Bearer ${secret}`)
    const listed = await home.run(["auth", "list"])
    expect(listed.stdout).toMatch(/^test +key from bezel auth$/m)
    expect(`${said.stderr}${ended.stdout}${ended.stderr}${listed.stdout}`).not.toContain(secret)

    expect(await home.run(["auth", "remove", "test"])).toMatchObject({
      code: 0,
      stderr: "The key for test is removed.\n"
    })
    await home.run(["run", "hello"])
    expect(server.requests.at(-1)?.headers.authorization).toBeUndefined()
    expect(await home.run(["auth", "remove", "test"])).toMatchObject({
      code: 1,
      stderr: 'bezel: No key is stored for "test".\n'
    })
    await close()
  })

  it("stands back behind one of the settings or the environment, which is said", async () => {
    const { close, home, server } = await withServer({ keyCommand: ["sh", "-c", "echo k-from-command; echo more"] })
    expect((await home.run(["auth", "set", "test"], { stdin: secret })).stderr).toBe(
      "The key for test is stored.\nIt is not used as long as there is one from the command sh.\n"
    )
    await home.run(["run", "hello"])
    expect(server.requests.at(-1)?.headers.authorization).toBe("Bearer k-from-command")
    const env = { ANTHROPIC_API_KEY: "k-env" }
    await home.run(["auth", "set", "anthropic"], { stdin: secret })
    expect((await home.run(["auth", "list"], { env })).stdout).toMatch(/^anthropic +key from ANTHROPIC_API_KEY$/m)
    expect((await home.run(["auth", "list"])).stdout).toMatch(/^anthropic +key from bezel auth$/m)
    await close()
  })

  it("is refused if it cannot be one, or if there is no such provider", async () => {
    const home = makeHome()
    const set = async (stdin: string, provider = "anthropic") => {
      const { code, stderr } = await home.run(["auth", "set", provider], { stdin })
      return `${code} ${stderr}`
    }
    expect(await set("")).toMatch(/^2 bezel: No key came on stdin/)
    expect(await set("two words")).toMatch(/^2 bezel: What came on stdin is no key/)
    expect(await set("x".repeat(100_000))).toMatch(/^2 bezel: What came on stdin is too long/)
    expect(await set("k", "antropic")).toMatch(
      /^2 bezel: There is no provider "antropic" that takes a key; there are anthropic, openai/
    )
    expect(await set("k", "bezel")).toMatch(/^2 /)
    expect((await home.run(["auth", "set"])).code).toBe(2)
  })

  it("is typed into a terminal without being shown", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "bezel auth set anthropic; stty -a | grep -o ' echo '")
    await terminal.shows(/Key for Anthropic \(not shown\):/)
    terminal.type(`${secret}x\u007f\r`)
    await terminal.shows(/The key for anthropic is stored[\s\S]*echo/)
    expect((await terminal.ended).raw).not.toContain("sk-stored")
    expect(readFileSync(join(home.folder, ".local/share/bezel/credentials.json"), "utf8")).toContain(`"${secret}"`)
  })

  it("from a command that fails is told with the command's end, and no request is made", async () => {
    const { close, home, server } = await withServer({ keyCommand: ["sh", "-c", "echo secret >&2; exit 3"] })
    expect(await home.run(["run", "hello"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no key for test: its keyCommand, sh, ended with exit code 3.")
    })
    expect(server.requests).toHaveLength(0)
    await close()
  })
})

describe("bezel auth login", { timeout: 60_000 }, () => {
  it("prints the address, waits for the browser, and the token goes with requests", () =>
    Effect.gen(function*() {
      const authorization = yield* authorizationServer
      const { close, home, server } = yield* Effect.promise(() =>
        withServer({
          oauth: { authorizeURL: authorization.authorizeURL, tokenURL: authorization.tokenURL, clientID: "bezel" }
        })
      )
      const login = home.start(["auth", "login", "test"])
      yield* Effect.promise(() => login.seen(/http:\S+authorize\S+/))
      const url = /http:\S+authorize\S+/.exec(login.output.stderr)?.[0] ?? ""
      yield* Effect.promise(async () => (await fetch(await authorization.browse(url))).text())
      expect(yield* Effect.promise(() => login.ended)).toMatchObject({
        code: 0,
        stdout: "",
        stderr: expect.stringMatching(/Signed in to test\.\n$/)
      })
      yield* Effect.promise(() => home.run(["run", "hello"]))
      expect(server.requests.at(-1)?.headers.authorization).toMatch(/^Bearer access-\d+$/)
      expect((yield* Effect.promise(() => home.run(["auth", "login", "openai"]))).code).toBe(2)
      yield* Effect.promise(close)
    }).pipe(Effect.scoped, Effect.runPromise))
})

describe("bezel auth login and an MCP server", { timeout: 60_000 }, () => {
  it("signs in to it without settings, calls go with the token, and it is forgotten again", () =>
    Effect.gen(function*() {
      const authority = yield* authorizationServer
      const site = yield* realSite
      site.admits = (authorization) => authority.isGood(authorization?.replace(/^Bearer /, "") ?? "")
      site.resource = { resource: site.url, authorization_servers: [authority.issuer] }
      const home = makeHome()
      const server = yield* Effect.promise(() =>
        startModelServer({ calls: [{ name: "docs_echo", args: { n: 1 } }] }, { text: "done" })
      )
      yield* Effect.addFinalizer(() => Effect.promise(() => server.close()))
      home.useServer(server, { mcp: { docs: { url: site.url } }, permissions: { "docs_*": "allow" } })
      const wanted = "it wants you to sign in, with /mcp or bezel auth login docs"
      expect((yield* Effect.promise(() => home.run(["doctor"]))).stdout).toContain(wanted)

      const login = home.start(["auth", "login", "docs"])
      yield* Effect.promise(() => login.seen(/http:\S+authorize\S+/))
      const url = /http:\S+authorize\S+/.exec(login.output.stderr)?.[0] ?? ""
      yield* Effect.promise(async () => (await fetch(await authority.browse(url))).text())
      expect(yield* Effect.promise(() => login.ended)).toMatchObject({
        code: 0,
        stdout: "",
        stderr: expect.stringMatching(/Signed in to the MCP server docs\.\n$/)
      })
      expect(yield* Effect.promise(() => home.run(["run", "go"]))).toMatchObject({ code: 0, stdout: "done\n" })
      expect(messagesOf(server.requests.at(-1)?.body).at(-1)).toMatchObject({ role: "tool", content: '{"n":1}' })

      const listed = Effect.map(Effect.promise(() => home.run(["auth", "list"])), ({ stdout }) => stdout)
      expect(yield* listed).toMatch(/^docs +signed in +MCP server http:.*\/mcp$/m)
      const removed = yield* Effect.promise(() => home.run(["auth", "remove", "docs"]))
      expect(yield* listed).not.toContain("docs")
      expect(removed.stderr).toBe("The sign-in to the MCP server docs is removed.\n")
      expect((yield* Effect.promise(() => home.run(["doctor"]))).stdout).toContain(wanted)
      expect(yield* Effect.promise(() => home.run(["auth", "login", "nowhere"]))).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("no MCP server of this name has a url")
      })
    }).pipe(Effect.scoped, Effect.runPromise))

  it("signs in by the protocol's own example of an authorization server, and forms are declined where nobody is", async () => {
    const [port, authorizationPort] = [await freePort(), await freePort()]
    const child = spawn(process.execPath, [example, "--oauth"], {
      env: { PATH: process.env.PATH ?? "", MCP_PORT: String(port), MCP_AUTH_PORT: String(authorizationPort) },
      stdio: ["ignore", "pipe", "ignore"]
    })
    onTestFinished(() => {
      child.kill("SIGKILL")
    })
    await new Promise<void>((resolve) => {
      let said = ""
      child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        said += chunk
        if (said.includes(`listening on port ${port}`)) resolve()
      })
    })
    const home = makeHome()
    const server = await startModelServer(
      { calls: [{ name: "ex_collect-user-info", args: { infoType: "contact" } }] },
      { text: "done" }
    )
    onTestFinished(() => server.close())
    home.useServer(server, {
      mcp: { ex: { url: `http://localhost:${port}/mcp` } },
      permissions: { "ex_*": "allow" }
    })
    const login = home.start(["auth", "login", "ex"])
    await login.seen(/http:\S+authorize\S+/)
    // This authorization server asks nobody; its answer leads back.
    await (await fetch(/http:\S+authorize\S+/.exec(login.output.stderr)?.[0] ?? "")).text()
    expect(await login.ended).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("Signed in to the MCP server ex.")
    })
    // Nobody was there to fill in the form.
    expect(await home.run(["run", "go"])).toMatchObject({ code: 3, stdout: "done\n" })
    const result = messagesOf(server.requests.at(-1)?.body).at(-1)
    expect(result).toMatchObject({ role: "tool", content: expect.stringMatching(/declined/) })
  })
})
