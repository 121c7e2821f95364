/** Signing in: the address for the browser, its way back over loopback, and what does not belong to it. */
import { it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import { createHash } from "node:crypto"
import { createServer } from "node:http"
import { describe, expect } from "vitest"
import { begin } from "../../../packages/plugins/src/accounts/oauth.ts"
import { authorizationServer } from "./authorization-server.ts"

const started = (more: object = {}) =>
  Effect.gen(function*() {
    const server = yield* authorizationServer
    const begun = yield* begin("acme", { ...server, clientID: "bezel", scopes: ["chat", "models"], ...more })
    return { server, begun, query: new URL(begun.url).searchParams }
  })

const get = (url: URL) =>
  Effect.promise(() => fetch(url).then(async (answer) => ({ status: answer.status, text: await answer.text() })))

describe("a sign-in", () => {
  it.live("sends the browser with a challenge and a state that nobody can guess", () =>
    Effect.gen(function*() {
      const one = yield* started()
      const two = yield* started()
      expect(Object.fromEntries(one.query)).toMatchObject({
        response_type: "code",
        client_id: "bezel",
        scope: "chat models",
        code_challenge_method: "S256",
        redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
      })
      for (const name of ["state", "code_challenge"]) {
        expect(one.query.get(name)).toMatch(/^[\w-]{32,}$/)
        expect(one.query.get(name)).not.toBe(two.query.get(name))
      }
    }).pipe(Effect.scoped))

  it.live("ends when the browser comes back, and proves with the exchange that it began it", () =>
    Effect.gen(function*() {
      const { begun, query, server } = yield* started()
      const returned = yield* Effect.forkScoped(begun.returned)
      expect(yield* get(yield* Effect.promise(() => server.browse(begun.url)))).toMatchObject({
        status: 200,
        text: expect.stringContaining("Signed in")
      })
      const grant = yield* begun.finish(yield* Fiber.join(returned))
      expect(Redacted.value(grant.access)).toMatch(/^access-/)
      const verifier = server.forms[0]?.get("code_verifier") ?? ""
      expect(createHash("sha256").update(verifier).digest("base64url")).toBe(query.get("code_challenge"))
      expect(String(grant.access)).not.toContain("access-")
    }).pipe(Effect.scoped))

  it.live("takes the code or the whole address by hand", () =>
    Effect.gen(function*() {
      const { begun, server } = yield* started()
      const first = yield* Effect.promise(() => server.browse(begun.url))
      expect(Redacted.value((yield* begun.finish(` ${first.href}\n`)).access)).toMatch(/^access-/)
      const second = yield* Effect.promise(() => server.browse(begun.url))
      expect(Redacted.value((yield* begun.finish(second.searchParams.get("code") ?? "")).access)).toMatch(/^access-/)
      expect((yield* Effect.flip(begun.finish("http://127.0.0.1/callback?code=x&state=other"))).message).toContain(
        "does not belong"
      )
      expect((yield* Effect.flip(begun.finish("  "))).message).toContain("no code")
      expect((yield* Effect.flip(begun.finish("code-stolen"))).message).toContain("invalid_grant")
    }).pipe(Effect.scoped))

  it.live("may find its server on the way, and takes no answer of another one", () =>
    Effect.gen(function*() {
      const server = yield* authorizationServer
      const asked: Array<string> = []
      const begun = yield* begin("acme", {
        find: (redirectURL) => {
          asked.push(redirectURL)
          const { authorizeURL, issuer, tokenURL } = server
          const clientSecret = Redacted.make("s3 cret")
          return Effect.succeed({
            authorizeURL,
            tokenURL,
            issuer,
            clientID: "found",
            clientSecret,
            clientAuth: "basic",
            resource: "https://x/"
          })
        }
      })
      const query = new URL(begun.url).searchParams
      expect(asked).toEqual([query.get("redirect_uri")])
      expect([query.get("client_id"), query.get("resource")]).toEqual(["found", "https://x/"])
      const back = yield* Effect.promise(() => server.browse(begun.url))
      const foreign = new URL(back)
      foreign.searchParams.set("iss", "https://evil.example.com")
      expect((yield* Effect.flip(begun.finish(foreign.href))).message).toBe(
        `The sign-in to acme failed: the answer came from https://evil.example.com, not from ${server.issuer}.`
      )
      back.searchParams.set("iss", server.issuer)
      yield* begun.finish(back.href)
      expect(server.forms.map((form) => [form.get("basic"), form.get("client_secret"), form.get("resource")])).toEqual([
        ["found:s3+cret", null, "https://x/"]
      ])
    }).pipe(Effect.scoped))

  it.live("is not disturbed by whoever comes without its state", () =>
    Effect.gen(function*() {
      const { begun, query, server } = yield* started()
      const returned = yield* Effect.forkScoped(begun.returned)
      const at = query.get("redirect_uri") ?? ""
      for (
        const wrong of ["?code=evil", "?code=evil&state=", `?code=evil&state=${"x".repeat(32)}`, "?error=access_denied"]
      ) {
        expect((yield* get(new URL(`${at}${wrong}`))).status).toBe(400)
      }
      expect((yield* get(new URL("/elsewhere", at))).status).toBe(404)
      yield* get(yield* Effect.promise(() => server.browse(begun.url)))
      expect(yield* Fiber.join(returned)).toMatch(/^code-/)
    }).pipe(Effect.scoped))

  it.live("that the server refuses is told in its words, without control characters", () =>
    Effect.gen(function*() {
      const { begun, query } = yield* started()
      const returned = yield* Effect.forkScoped(Effect.flip(begun.returned))
      const back = new URL(query.get("redirect_uri") ?? "")
      back.searchParams.set("state", query.get("state") ?? "")
      back.searchParams.set("error", "access_denied\u001b]0;x\u0007")
      expect((yield* get(back)).status).toBe(400)
      expect((yield* Fiber.join(returned)).message).toBe("The sign-in to acme failed: access_denied ]0;x .")
    }).pipe(Effect.scoped))

  it.live("stops listening at the end of its scope", () =>
    Effect.gen(function*() {
      const { query } = yield* Effect.scoped(started())
      const failed = yield* Effect.promise(() => fetch(query.get("redirect_uri") ?? "").then(() => false, () => true))
      expect(failed).toBe(true)
    }))

  it.live("says which port is in use", () =>
    Effect.gen(function*() {
      const port = yield* Effect.acquireRelease(
        Effect.promise(() =>
          new Promise<ReturnType<typeof createServer>>((resolve) => {
            const server = createServer().listen(0, "127.0.0.1", () => resolve(server))
          })
        ),
        (server) => Effect.sync(() => server.close())
      ).pipe(Effect.map((server) => {
        const address = server.address()
        return typeof address === "object" && address !== null ? address.port : 0
      }))
      const { message } = yield* Effect.flip(started({ port }))
      expect(message).toBe(
        `Cannot sign in to acme: port ${port} of this machine is in use, and the browser comes back to it.`
      )
    }).pipe(Effect.scoped))
})
