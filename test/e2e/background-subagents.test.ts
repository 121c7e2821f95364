/** Sub-agents in the background of `bezel run`, which waits for them, with a model that looks at what it is sent. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { RecordedRequest, ServerReply } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"
import { isAlive, messagesOf, result, serve, until } from "./run-fixture.ts"

const contentOf = (message: unknown): string => JSON.stringify(Object(message)["content"] ?? "")
const lastOf = (body: RecordedRequest["body"]) => messagesOf(body).at(-1)

/** The conversation of a request: by the prompt that it begins with. */
const isOf = (prompt: string, { body }: RecordedRequest) =>
  contentOf(messagesOf(body).find(({ role }) => role === "user")).includes(prompt)

const begin = {
  calls: [{
    name: "subagent",
    args: { description: "look around", prompt: "colour?", agent: "build", background: true }
  }]
}

/** One that begins a sub-agent, which looks by a command, and says something before and after its answer. */
const worker = (command: string) => (request: RecordedRequest): ServerReply => {
  const last = lastOf(request.body)
  if (isOf("colour?", request)) {
    return last?.role === "tool" ? { text: "It is blue." } : { calls: [{ name: "bash", args: { command } }] }
  }
  if (last?.role === "tool") return { text: "It looks." }
  const said = contentOf(last)
  if (said.includes("has answered")) return { text: "It has found blue." }
  return said.includes("go") ? begin : { text: "I see." }
}

const scene = async (
  command: (gate: string) => string,
  settings: object = { permissions: { bash: "allow", write: "allow" } }
) => {
  const home = makeHome()
  const gate = home.write("work/gate", "")
  const server = await serve()
  server.always(worker(command(gate)))
  home.useServer(server, settings)
  return { home, gate, server }
}

const whileGate = (gate: string) => `echo $$ > pid; while [ -e ${gate} ]; do sleep 0.05; done`

describe("bezel run with a sub-agent in the background", { timeout: 60_000 }, () => {
  it("says that it waits, and answers again once the model was told of the sub-agent's answer", async () => {
    const { gate, home, server } = await scene(whileGate)
    const running = home.start(["run", "go"])
    await running.seen(/^bezel: waiting for a sub-agent in the background: look around$/m)
    rmSync(gate)
    expect(await running.ended).toMatchObject({ code: 0, stdout: "It looks.\n\nIt has found blue.\n" })
    const woken = server.requests.at(-1)
    expect(contentOf(lastOf(woken?.body ?? {}))).toContain("has answered:\\n\\nIt is blue.")
    // Of the whole conversation, not of the sub-agent's.
    expect(messagesOf(woken?.body).map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "assistant",
      "user"
    ])
  })

  it("ends it with itself at ctrl+c, gives the answer that there is, and the next run does not find it at work", async () => {
    const { home, server } = await scene(whileGate)
    const running = home.start(["run", "--json", "go"])
    await running.seen(/waiting for a sub-agent/)
    const pid = () => existsSync(join(home.work, "pid")) ? Number(readFileSync(join(home.work, "pid"), "utf8")) : 0
    await until(() => pid() > 0)
    running.process.kill("SIGINT")
    const ended = await running.ended
    expect(isAlive(pid())).toBe(false)
    expect(ended.code).toBe(130)
    expect(ended.lines().at(-1)).toMatchObject({
      ...result,
      status: "unanswered",
      reason: "interrupted",
      text: "It looks."
    })
    const before = server.requests.length
    expect(await home.run(["run", "--continue", "and now?"])).toMatchObject({ code: 0, stdout: "I see.\n" })
    expect(server.requests.slice(before)).toHaveLength(1)
    expect(JSON.stringify(messagesOf(server.requests.at(-1)?.body))).toContain(
      'The sub-agent in the background for \\"look around\\" was ended with the run.'
    )
  })

  it("ends with 3 where that was denied something because nobody could be asked", async () => {
    const { home, server } = await scene(() => "touch made", {})
    // It may be told of that with its first answer already.
    expect(await home.run(["run", "go"])).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/It has found blue\.\n$/)
    })
    const told = server.requests.filter((request) => isOf("colour?", request)).at(-1)
    expect(contentOf(lastOf(told?.body ?? {}))).toContain("needs a user's approval")
    expect(existsSync(join(home.work, "made"))).toBe(false)
  })
})
