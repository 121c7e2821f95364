/** Where a key comes from, and a sign-in from the screen to the request that the model's server gets. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { authorizationServer } from "../plugins/accounts/authorization-server.ts"
import { type Home, makeHome } from "./command.ts"
import { serve } from "./run-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const useProvider = (home: Home, baseURL: string, options: object, more: object = {}) =>
  home.settings({
    model: "test/m",
    providers: {
      test: { package: "@ai-sdk/openai-compatible", options: { baseURL, ...options }, models: { m: {} }, ...more }
    }
  })

describe("a key of the settings", { timeout: 60_000 }, () => {
  it("is what a variable or a file holds; a variable that is not set is told, and is no key", async () => {
    const home = makeHome()
    const server = await serve()
    server.always({ text: "yes" })
    home.write(".config/bezel/key.txt", "k-of-file\n")
    useProvider(home, server.url, { apiKey: "{env:TEST_KEY}" })
    expect(await home.run(["run", "hi"], { env: { TEST_KEY: "k-of-env" } })).toMatchObject({ code: 0, stdout: "yes\n" })
    expect((await home.run(["run", "hi"])).stderr).toMatch(
      /^bezel: \S+bezel\.jsonc:1: providers\.test\.options\.apiKey: the environment variable TEST_KEY is not set, /
    )
    useProvider(home, server.url, { apiKey: "{file:key.txt}", headers: { "x-team": "{env:TEAM}" } })
    expect((await home.run(["run", "hi"], { env: { TEAM: "a" } })).code).toBe(0)
    expect(server.requests.map(({ headers }) => [headers.authorization, headers["x-team"]])).toEqual([
      ["Bearer k-of-env", undefined],
      [undefined, undefined],
      ["Bearer k-of-file", "a"]
    ])
  })
})

describe("a sign-in", { timeout: 60_000 }, () => {
  it("from the screen ends when the browser comes back, and the token is renewed once for two who need it at once", () =>
    Effect.gen(function*() {
      const authorization = yield* authorizationServer
      authorization.lifetime = 30
      yield* Effect.promise(async () => {
        const home = makeHome()
        const server = await serve()
        server.always({ text: "Signed for." })
        useProvider(home, server.url, {}, {
          oauth: { authorizeURL: authorization.authorizeURL, tokenURL: authorization.tokenURL, clientID: "bezel" }
        })
        const terminal = runInTerminal(home, "bezel")
        await terminal.shows(/test\/m/)
        terminal.type("/login test\r")
        // The address is longer than a row of the screen.
        await terminal.shows(/authorize\?[\s\S]*› code/)
        const url = /http:\S+authorize\S+S256/.exec(terminal.text().replaceAll("\n", ""))?.[0] ?? ""
        await (await fetch(await authorization.browse(url))).text()
        await terminal.shows(/Signed in to test/)
        // What it gave is over in half a minute: it is renewed before it is used.
        authorization.lifetime = 3_600
        const renewing = Promise.withResolvers<() => void>()
        authorization.answer = (_, asItShould) => {
          authorization.answer = null
          renewing.resolve(asItShould)
        }
        const run = home.start(["run", "hello"])
        const answer = await renewing.promise
        // The screen, which has been up all the time, needs it while the run renews it.
        terminal.type("hi\r")
        await terminal.shows(/› hi\n/)
        answer()
        expect(await run.ended).toMatchObject({ code: 0, stdout: "Signed for.\n" })
        await terminal.shows(/Signed for\./)
        const [token, ...others] = server.requests.map(({ headers }) => String(headers.authorization))
        expect(others).toEqual([token])
        expect(authorization.isGood(String(token).replace("Bearer ", ""))).toBe(true)
        expect(authorization.forms.map((form) => form.get("grant_type"))).toEqual([
          "authorization_code",
          "refresh_token"
        ])
        expect(authorization.forms[0]?.get("code_verifier")).toMatch(/^[\w-]{43,128}$/)
        terminal.type("/logout test\r")
        await terminal.shows(/No key is stored for test any more/)
      })
    }).pipe(Effect.scoped, Effect.runPromise))

  it("whose token is refused before its time is renewed, and one that cannot be says how to sign in again", () =>
    Effect.gen(function*() {
      const authorization = yield* authorizationServer
      yield* Effect.promise(async () => {
        const home = makeHome()
        const server = await serve()
        const tokenOf = (authorization?: string) => String(authorization).replace("Bearer ", "")
        server.always(({ headers }) =>
          authorization.isGood(tokenOf(headers.authorization))
            ? { text: "Welcome." }
            : { status: 401, json: { error: { message: "revoked" } } }
        )
        useProvider(home, server.url, {}, {
          oauth: { authorizeURL: authorization.authorizeURL, tokenURL: authorization.tokenURL, clientID: "bezel" }
        })
        const login = home.start(["auth", "login", "test"])
        await login.seen(/http:\S+authorize\S+/)
        const url = /http:\S+authorize\S+/.exec(login.output.stderr)?.[0] ?? ""
        await (await fetch(await authorization.browse(url))).text()
        expect((await login.ended).code).toBe(0)

        authorization.endTokens(false)
        for (let run = 0; run < 2; run++) {
          expect(await home.run(["run", "hi"])).toMatchObject({ code: 0, stdout: "Welcome.\n", stderr: "" })
        }
        const tokens = server.requests.map(({ headers }) => tokenOf(headers.authorization))
        expect(tokens.map(authorization.isGood)).toEqual([false, true, true])
        expect(authorization.forms).toHaveLength(2)

        authorization.endTokens(true)
        const { code, stderr } = await home.run(["run", "hi"])
        expect([code, stderr]).toEqual([
          1,
          expect.stringMatching(/^bezel: [^\n]*invalid_grant[^\n]* Sign in again with bezel auth login test\.\n$/)
        ])
        expect(server.requests).toHaveLength(4)
      })
    }).pipe(Effect.scoped, Effect.runPromise))
})
