/** From the first screen to a real model: how many keys it takes, what is kept, and that a key is seen by nobody. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { type ModelServer, type ScriptedReply, startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { type Home, makeHome } from "./command.ts"
import { runInTerminal, type TerminalRun } from "./terminal.ts"

const secret = "sk-canary-5b1d9c70e2"

/** A server with these models, which answers everything else; with `key`, only to who has it. */
const serverOf = async (models: ReadonlyArray<string>, key: string | null = null): Promise<ModelServer> => {
  const server = await startModelServer()
  onTestFinished(() => server.close())
  const answer: ScriptedReply = ({ headers, path }) =>
    key !== null && headers.authorization !== `Bearer ${key}`
      ? { status: 401, json: { error: { message: "no" } } }
      : path.endsWith("/models")
      ? { status: 200, json: { object: "list", data: models.map((id) => ({ id, object: "model" })) } }
      : { text: "I am a real one." }
  server.always(answer)
  return server
}

/** Ends what its test has started, and counts what it types. */
const typist = (terminal: TerminalRun) => {
  let keys = 0
  return {
    press: (key: string) => {
      keys += 1
      terminal.type(key)
    },
    keys: () => keys
  }
}

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Nobody has the key but the file of keys, which is for its owner alone. */
const expectSecretKept = (home: Home, written: string) => {
  const credentials = join(home.folder, ".local/share/bezel/credentials.json")
  expect(readFileSync(credentials, "utf8")).toContain(secret)
  expect(statSync(credentials).mode & 0o777).toBe(0o600)
  expect(filesBelow(home.folder).filter((file) => readFileSync(file).includes(secret))).toEqual([credentials])
  expect(written).not.toContain(secret)
}

const ctrlP = "\u0010"
const hint = /ctrl\+p connects a real model/

describe("from the first screen to a real model", { timeout: 60_000 }, () => {
  it("are three keys where a server runs on this machine, and its model is the one from then on", async () => {
    const server = await serverOf(["nomic-embed-text", "qwen3:8b", "llama3.2"])
    const home = makeHome()
    const terminal = runInTerminal(home, `OLLAMA_HOST=127.0.0.1:${server.port} bezel`)
    await terminal.shows(hint)
    expect(server.requests).toEqual([])
    const { keys, press } = typist(terminal)
    press(ctrlP)
    await terminal.shows(/› 1\. Ollama {2}answers on 127\.0\.0\.1:\d+\n/)
    press("\r")
    await terminal.shows(/› 1\. qwen3:8b\n {2}2\. llama3\.2\n {2}3\. nomic-embed-text\n/)
    press("\r")
    await terminal.shows(/ollama\/qwen3:8b\s*$/)
    expect(keys()).toBe(3)
    await terminal.shows(/answers from now on; kept in\s+\S*bezel\.jsonc/)
    terminal.type("hello\r")
    await terminal.shows(/I am a real one\./)
    expect(terminal.text().split("Connect a model").at(-1)).not.toMatch(hint)
    terminal.type("/new\r")
    await terminal.shows(/Bezel {2}\/help[^›]*ollama\/qwen3:8b\s*$/)
    terminal.type("\u0004")
    await terminal.ended
    // Without a word about it, and without the variable.
    expect(await home.run(["run", "hello"])).toMatchObject({ code: 0, stdout: "I am a real one.\n" })
    expect(JSON.parse(readFileSync(join(home.folder, ".config/bezel/bezel.jsonc"), "utf8"))).toEqual({
      model: "ollama/qwen3:8b",
      providers: { ollama: { name: "Ollama", options: { baseURL: server.url } } }
    })
  })

  it("are three keys with a key of the environment, which is seen nowhere", async () => {
    const server = await serverOf(["whisper-1", "gpt-4.1", "gpt-5.2"], secret)
    const home = makeHome()
    const terminal = runInTerminal(home, `OPENAI_API_KEY=${secret} OPENAI_BASE_URL=${server.url} bezel`)
    await terminal.shows(/ctrl\+p connects a real model: OPENAI_API_KEY is set/)
    const { keys, press } = typist(terminal)
    press(ctrlP)
    await terminal.shows(/› 1\. OpenAI {2}OPENAI_API_KEY is set\n/)
    press("\r")
    await terminal.shows(/› 1\. gpt-4\.1\n {2}2\. gpt-5\.2\n {2}3\. whisper-1\n/)
    press("\r")
    await terminal.shows(/openai\/gpt-[\d.]+\s*$/)
    expect(keys()).toBe(3)
    terminal.type("hello\r")
    await terminal.shows(/I am a real one\./)
    terminal.type("\u0004")
    const { raw } = await terminal.ended
    expect(raw).not.toContain(secret)
    expect(filesBelow(home.folder).filter((file) => readFileSync(file).includes(secret))).toEqual([])
  })

  it("asks for a key that is not shown, says why one is not accepted, and keeps the one that is", async () => {
    const server = await serverOf(["only"], secret)
    const home = makeHome()
    home.settings({ providers: { gate: { name: "Gate", options: { baseURL: server.url } } } })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(hint)
    terminal.type(ctrlP)
    await terminal.shows(/› 1\. Gate {2}set up already\n/)
    terminal.type("\r")
    await terminal.shows(/Key of Gate/)
    terminal.type("\u001b[200~sk-wrong\u001b[201~")
    await terminal.shows(/› •{8}$/)
    terminal.type("\r")
    await terminal.shows(/Key of Gate\nGate does not accept the key \(status 401\)\.\n/)
    terminal.type("not a key\r")
    await terminal.shows(/That is no key/)
    terminal.type(`${secret}\r`)
    await terminal.shows(/gate\/only\s*$/)
    terminal.type("hello\r")
    await terminal.shows(/I am a real one\./)
    terminal.type("\u0004")
    const { raw } = await terminal.ended
    expectSecretKept(home, raw)
    expect(raw).not.toContain("sk-wrong")
  })

  it("leaves everything as it is when it is dismissed, at each step", async () => {
    const server = await serverOf(["one", "two"], secret)
    const home = makeHome()
    const settings = { providers: { gate: { name: "Gate", options: { baseURL: server.url } } } }
    home.settings(settings)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(hint)
    terminal.type(ctrlP)
    await terminal.shows(/Connect a model/)
    terminal.type("\u001b")
    await terminal.shows(/real model[^\n]*\n─+\n *\n─+\n.*bezel\/offline\s*$/)
    terminal.type(`${ctrlP}`)
    await terminal.shows(/› 1\. Gate/)
    terminal.type("\r")
    await terminal.shows(/Key of Gate/)
    terminal.type("\u001b")
    await terminal.shows(/real model[^\n]*\n─+\n *\n─+\n.*bezel\/offline\s*$/)
    terminal.type("\u0004")
    await terminal.ended
    expect(JSON.parse(readFileSync(join(home.folder, ".config/bezel/bezel.jsonc"), "utf8"))).toEqual(settings)
    expect(filesBelow(home.folder).filter((file) => file.endsWith("credentials.json"))).toEqual([])
  })

  it("says nothing to who has chosen a model, be it the one that needs nothing", async () => {
    const home = makeHome()
    home.settings({ model: "bezel/offline" })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("hi\r")
    await terminal.shows(/press ctrl\+p/)
    terminal.type("\u0004")
    await terminal.ended
    expect(terminal.text()).not.toMatch(hint)
  })
})

describe("at a server's screen", { timeout: 60_000 }, () => {
  it("works the same, and the key is in no log, state, session or answer", async () => {
    const server = await serverOf(["only"], secret)
    const home = makeHome()
    home.settings({ providers: { gate: { name: "Gate", options: { baseURL: server.url } } } })
    const serving = home.start(["serve", "--port", "0", "--verbose"])
    onTestFinished(() => {
      serving.process.kill("SIGTERM")
    })
    await serving.seen(/http:\/\/127\.0\.0\.1:\d+/)
    const terminal = runInTerminal(home, "bezel attach")
    await terminal.shows(hint)
    terminal.type(ctrlP)
    await terminal.shows(/› 1\. Gate/)
    terminal.type("\r")
    await terminal.shows(/Key of Gate/)
    terminal.type(`${secret}\r`)
    await terminal.shows(/gate\/only\s*$/)
    terminal.type("hello\r")
    await terminal.shows(/I am a real one\./)
    terminal.type("\u0004")
    const { raw } = await terminal.ended
    serving.process.kill("SIGTERM")
    const { stderr, stdout } = await serving.ended
    expectSecretKept(home, `${raw}${stdout}${stderr}`)
  })
})

describe("without a screen", { timeout: 60_000 }, () => {
  it("the model that needs nothing says which key to press, and so does bezel doctor", async () => {
    const home = makeHome()
    expect((await home.run(["run", "hi"])).stdout).toMatch(/start `bezel` and press ctrl\+p/)
    expect((await home.run(["doctor"])).stdout).toMatch(/^! model: .*start bezel and press ctrl\+p/m)
    const env = { ANTHROPIC_API_KEY: "k" }
    expect((await home.run(["run", "hi"], { env })).stdout).toMatch(/at hand: .*press ctrl\+p.*anthropic/)
    expect((await home.run(["doctor"], { env })).stdout).toMatch(/^! model: .*anthropic/m)
  })
})
