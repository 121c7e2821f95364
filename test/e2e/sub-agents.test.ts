/** Sub-agents of a run that is interrupted: gone with all that they run, and told as what they are with the next prompt. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { RecordedRequest } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"
import { isAlive, messagesOf, serve, until } from "./run-fixture.ts"

const isChild = ({ body }: RecordedRequest): boolean => JSON.stringify(body.messages).includes("You are a sub-agent")
const resultsOf = ({ body }: RecordedRequest) =>
  messagesOf(body).filter(({ role }) => role === "tool").map(({ content }) => String(content))

describe("a run that is interrupted while its sub-agents work", { timeout: 60_000 }, () => {
  it("ends them and what they run, starts nothing afterwards, and the next prompt finds each call with a result", async () => {
    const home = makeHome()
    const server = await serve()
    const bash = (name: string) => ({ name: "bash", args: { command: `echo $$ > ${name}.pid; exec sleep 600` } })
    server.always((request) => {
      if (isChild(request)) {
        const name = String(messagesOf(request.body).findLast(({ role }) => role === "user")?.content)
        return { calls: [bash(name)] }
      }
      if (resultsOf(request).length > 0) return { text: "I see." }
      return {
        calls: [
          ...["one", "two"].map((name) => ({ name: "subagent", args: { description: name, prompt: name } })),
          { name: "bash", args: { command: "echo $$ > own.pid; exec sleep 600" } }
        ]
      }
    })
    home.useServer(server)
    const running = home.start(["run", "--yes", "go"])
    const files = ["one", "two", "own"].map((name) => join(home.work, `${name}.pid`))
    const pidOf = (file: string) => Number(readFileSync(file, "utf8"))
    await until(() => files.every((file) => existsSync(file) && pidOf(file) > 0))
    const asked = server.requests.length
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    expect(files.map(pidOf).filter(isAlive)).toEqual([])
    expect(server.requests).toHaveLength(asked)

    expect(await home.run(["run", "--continue", "what now?"])).toMatchObject({ code: 0, stdout: "I see.\n" })
    const last = server.requests.at(-1)
    expect(last === undefined ? [] : resultsOf(last)).toEqual(
      [1, 2, 3].map(() => expect.stringMatching(/interrupted/i))
    )
    // Nobody woke the sub-agents again.
    expect(server.requests.slice(asked).filter(isChild)).toEqual([])
    expect(files.map(pidOf).filter(isAlive)).toEqual([])
  })
})
