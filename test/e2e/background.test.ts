/** What ends in the background: seen and answered on the screen without a word, and told to the next run. */
import { rmSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { messagesOf, serve } from "./run-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const job = (command: string) => ({ calls: [{ name: "bash", args: { command, background: true } }] })
const allowed = { permissions: { bash: "allow" } }

const lastText = (body: { readonly [key: string]: unknown } | undefined): string =>
  JSON.stringify(messagesOf(body).at(-1)?.content ?? "")

describe("a job that ends", { timeout: 60_000 }, () => {
  it("wakes the model that the screen shows, which answers without being asked", async () => {
    const home = makeHome()
    const server = await serve(job("sleep 1; echo built"), { text: "It is building." }, { text: "The build is there." })
    home.useServer(server, allowed)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("build it\r")
    await terminal.shows(/It is building\./)
    await terminal.shows(/The build is there\./)
    await terminal.shows(/The job \S+ \(sleep 1; echo built\) finished\./)
    expect(lastText(server.requests.at(-1)?.body)).toContain("finished. Its last output:\\nbuilt")
    expect(server.requests).toHaveLength(3)
  })

  it("does not hold up bezel run, which says that it goes on, and is told to the next run of the session, once", async () => {
    const home = makeHome()
    const gate = home.write("work/gate", "")
    const server = await serve(job(`while [ -e ${gate} ]; do sleep 0.05; done; echo built`), {
      text: "It is building."
    })
    home.useServer(server, allowed)
    const first = await home.run(["run", "build it"])
    expect(first).toMatchObject({ code: 0, stdout: "It is building.\n" })
    expect(first.stderr).toMatch(
      /^bezel: the job \S+ \(while \[ -e .*\) goes on in the background; its end is told to the next bezel run --session ses_\S+, /m
    )
    server.always({ text: "ok" })
    rmSync(gate)
    for (const prompt of ["and now?", "and then?"]) {
      const next = await home.run(["run", "--continue", prompt])
      // What was seen behind the answer to the prompt is answered too.
      expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok\n(\nok\n)?$/), stderr: "" })
    }
    const told = JSON.stringify(messagesOf(server.requests.at(-1)?.body)).split("finished. Its last output")
    expect(told).toHaveLength(2)
  })
})
