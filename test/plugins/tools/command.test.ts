import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"

const toolNames = (body: { readonly [key: string]: unknown } | undefined) =>
  ((body?.tools ?? []) as ReadonlyArray<{ readonly function: { readonly name: string } }>).map((tool) =>
    tool.function.name
  )

describe("bezel run with apply_patch", () => {
  const patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+eins\n*** Add File: b.txt\n+new\n*** End Patch"

  it("changes files as the rules allow, and is not offered to an agent that may not write", async () => {
    const home = makeHome()
    home.write("work/a.txt", "one\ntwo\n")
    const server = await serve(
      { calls: [{ name: "apply_patch", args: { patch } }] },
      { text: "denied" },
      { calls: [{ name: "apply_patch", args: { patch } }] },
      { text: "done" },
      { text: "planned" }
    )
    home.useServer(server)
    const denied = await home.run(["run", "go"])
    expect(denied.code).toBe(3)
    expect(existsSync(join(home.work, "b.txt"))).toBe(false)
    expect(JSON.stringify(messagesOf(server.requests[1]?.body))).toContain("No rule allows write of")
    expect(await home.run(["run", "--allow", "write", "go"])).toMatchObject({
      code: 0,
      stdout: "done\n",
      stderr: "✓ apply_patch a.txt, b.txt\n"
    })
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("eins\ntwo\n")
    await home.run(["run", "--agent", "plan", "--allow", "write", "go"])
    expect(toolNames(server.requests[0]?.body)).toContain("apply_patch")
    expect(toolNames(server.requests[4]?.body)).not.toContain("apply_patch")
  })
})

describe("bezel run with commands", () => {
  it("goes on where the last one ended, also in a later run, and finds and stops its jobs there", async () => {
    const home = makeHome()
    const server = await serve(
      { calls: [{ name: "bash", args: { command: "mkdir -p sub && cd sub" } }] },
      { calls: [{ name: "bash", args: { command: "echo up; exec sleep 600", background: true } }] },
      { text: "started" },
      { calls: [{ name: "bash", args: { command: "pwd" } }] },
      { text: "there" }
    )
    home.useServer(server)
    expect(await home.run(["run", "--yes", "go"])).toMatchObject({ code: 0, stdout: "started\n" })
    expect(await home.run(["run", "--yes", "--continue", "where?"])).toMatchObject({ code: 0, stdout: "there\n" })
    const told = JSON.stringify(messagesOf(server.requests[4]?.body))
    expect(told).toContain(`${home.work}/sub\\n[exit code 0]`)
    const job = /Started as job (\S+)\./.exec(told)?.[1] ?? "?"
    server.always({ text: "stopped" })
    server.reply({ calls: [{ name: "job_output", args: { job } }] }, { calls: [{ name: "job_stop", args: { job } }] })
    expect(await home.run(["run", "--continue", "stop it"])).toMatchObject({ code: 0, stdout: "stopped\n" })
    const last = JSON.stringify(messagesOf(server.requests.at(-1)?.body))
    expect(last).toContain(`The job ${job} is running.\\nup`)
    expect(last).toContain(`Stopped the job ${job}.`)
  })
})

describe("bezel run with documents", () => {
  it("reads the text of a PDF document and the cells of a notebook", async () => {
    const home = makeHome()
    const stream = "BT /F 12 Tf 10 50 Td (Hello PDF) Tj ET"
    home.write(
      "work/a.pdf",
      `%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj\n` +
        `3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>endobj\n` +
        `4 0 obj<</Length ${stream.length}>>stream\n${stream}\nendstream endobj\n` +
        `5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Size 6/Root 1 0 R>>\n`
    )
    home.write("work/b.ipynb", JSON.stringify({ cells: [{ cell_type: "code", source: "1 + 1" }] }))
    const server = await serve(
      { calls: [{ name: "read", args: { path: "a.pdf" } }, { name: "read", args: { path: "b.ipynb" } }] },
      { text: "ok" }
    )
    home.useServer(server)
    const ended = await home.run(["run", "go"])
    expect(ended).toMatchObject({ code: 0, stdout: "ok\n" })
    // They are read side by side.
    expect(ended.stderr.trim().split("\n").sort()).toEqual(["✓ read a.pdf", "✓ read b.ipynb"])
    const told = JSON.stringify(messagesOf(server.requests[1]?.body))
    expect(told).toContain("[Page 1]\\nHello PDF")
    expect(told).toContain("[Cell 1, code]\\n1 + 1")
  })
})
