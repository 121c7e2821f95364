/** A browser that is signed in by the address that `bezel serve --browser` prints. */
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { startServer } from "./serve-fixture.ts"

describe("bezel serve --browser", { timeout: 60_000 }, () => {
  it("gives a token of its scope once, which can be seen and revoked like others and ends with the server", async () => {
    const home = makeHome()
    const server = await startServer(home, ["--browser", "read"])
    const address = new URL(String(server.first.browser))
    expect(address.pathname).toBe("/docs")
    const code = address.hash.replace("#code=", "")
    const login = () => server.call("POST", "/login", { code }, null)
    const { body: signedIn } = await login()
    expect(signedIn).toMatchObject({ scope: "read" })
    const token = String(signedIn.token)
    expect((await login()).status).toBe(401)
    expect((await server.call("GET", "/session", undefined, token)).status).toBe(200)
    expect((await server.call("POST", "/session", {}, token)).status).toBe(403)

    const listed = await home.run(["auth", "token", "list"])
    expect(listed.stdout).toMatch(/^browser\s+read\s+\S+\s+ends with the server\n$/)
    expect(await home.run(["auth", "token", "revoke", "browser"])).toMatchObject({ code: 0 })
    expect((await server.call("GET", "/session", undefined, token)).status).toBe(401)
    server.process.kill("SIGTERM")
    await server.ended

    const next = await startServer(home, ["--browser", "prompt"])
    const again = new URL(String(next.first.browser)).hash.replace("#code=", "")
    expect((await next.call("POST", "/login", { code: again }, null)).body).toMatchObject({ scope: "prompt" })
    expect((await home.run(["auth", "token", "list"])).stdout).toContain("browser")
    next.process.kill("SIGTERM")
    await next.ended
    expect((await home.run(["auth", "token", "list"])).stdout).toBe("")
  })
})
