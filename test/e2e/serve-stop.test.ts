/** A server that starts and stops while others use it: what was accepted is answered, what ran goes on at the next start. */
import { Agent, request } from "node:http"
import { createServer } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { type ScriptedReply, startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"
import { eventually, startServer } from "./serve-fixture.ts"

/** A model that begins an answer and gets no further. */
const stuck: ScriptedReply = { text: ["It is ", "like this"], stop: { afterBytes: 200, how: "hang" } }

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

type Outcome = number | "refused" | "torn"

/** One request. `torn`: the server took the connection, and no whole answer came. */
const get = (port: number, path: string, token: string, agent: Agent) =>
  new Promise<Outcome>((resolve) => {
    let isConnected = false
    const sent = request({ port, host: "127.0.0.1", path, agent, headers: { authorization: `Bearer ${token}` } })
    sent.on("socket", (socket) => {
      if (socket.connecting) socket.once("connect", () => isConnected = true)
      else isConnected = true
    })
    sent.on("response", (response) => {
      response.on("data", () => {}).on("end", () => resolve(response.statusCode ?? 0)).on(
        "error",
        () => resolve("torn")
      )
    })
    sent.on("error", () => resolve(isConnected ? "torn" : "refused"))
    sent.end()
  })

describe("bezel serve, used while it starts and stops", { timeout: 120_000 }, () => {
  it("answers as it should from its first answer on, and refuses connections before", async () => {
    const home = makeHome()
    const port = await freePort()
    const token = "a-token-that-somebody-has-chosen"
    const outcomes: Array<Outcome> = []
    let isReady = false
    const knocking = (async () => {
      const agent = new Agent({ keepAlive: false })
      while (!isReady || outcomes.at(-1) !== 200) outcomes.push(await get(port, "/session", token, agent))
    })()
    await startServer(home, ["--port", String(port)], { BEZEL_TOKEN: token })
    isReady = true
    await knocking
    expect(outcomes[0]).toBe("refused")
    expect(outcomes.slice(outcomes.indexOf(200)).every((outcome) => outcome === 200)).toBe(true)
    expect(new Set(outcomes)).toEqual(new Set(["refused", 200]))
  })

  it.each(["none", "location"])(
    "leaves no request without an answer, and its turns to its successor, with --isolation %s",
    async (isolation) => {
      const home = makeHome()
      const model = await startModelServer()
      onTestFinished(() => model.close())
      home.useServer(model)
      const sessions = 4
      model.reply(...Array.from({ length: sessions }, () => stuck))
      model.always({ text: ["an answer after all"] })
      const server = await startServer(home, ["--isolation", isolation])
      const port = Number(new URL(server.url).port)
      const inputs = new Map<string, string>()
      for (let count = 0; count < sessions; count++) {
        const id = await server.create()
        inputs.set(id, await server.say(id, "go on"))
      }
      await eventually(() => model.requests.length === sessions)

      const outcomes = new Map<Outcome, number>()
      let isOver = false
      const callers = Array.from({ length: 12 }, async (_, caller) => {
        const agent = new Agent({ keepAlive: caller % 2 === 0, maxSockets: 1 })
        const [id = ""] = [...inputs.keys()].slice(caller % sessions)
        const path = ["/session", `/session/${id}`, `/session/${id}/message`][caller % 3] ?? ""
        while (!isOver) {
          const outcome = await get(port, path, server.token, agent)
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
          // As clients do who are told that the server closes.
          if (outcome !== 200) break
        }
        agent.destroy()
      })
      // Those wait for what does not come before the server goes.
      const waiting = [...inputs].map(([id, input]) =>
        server.call("POST", `/session/${id}/wait?timeout=60&input=${input}`)
      )
      await eventually(() => (outcomes.get(200) ?? 0) > 200)
      server.process.kill("SIGTERM")
      for (const { status } of await Promise.all(waiting)) expect(status).toBe(503)
      expect(await server.ended).toMatchObject({ code: 0, signal: null })
      isOver = true
      await Promise.all(callers)
      expect(outcomes.get("torn")).toBe(undefined)
      expect([...outcomes.keys()].every((outcome) => outcome === 200 || outcome === 503 || outcome === "refused")).toBe(
        true
      )

      const next = await startServer(home, ["--isolation", isolation])
      expect(next.first.resumed).toBe(sessions)
      for (const [id, input] of inputs) {
        const { body } = await next.call("POST", `/session/${id}/wait?timeout=60&input=${input}`)
        expect(body).toMatchObject({ status: "done", text: "an answer after all" })
      }
      expect(model.requests).toHaveLength(sessions * 2)
    }
  )
})
