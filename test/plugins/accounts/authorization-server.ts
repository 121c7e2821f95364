/** An authorization server on loopback, with codes, PKCE and refresh tokens that work once: what a provider runs. */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface AuthorizationServer {
  readonly authorizeURL: string
  readonly tokenURL: string
  /** Forms that came to the token address. */
  readonly forms: ReadonlyArray<URLSearchParams>
  /** What a person's browser does at this address: follows it, signs in, and is sent back. Gives where it was sent to. */
  readonly browse: (url: string) => Promise<URL>
  /** Answers token requests in its own way, until it is set to null. */
  answer: ((response: ServerResponse) => void) | null
  /** Seconds that a token is good for. */
  lifetime: number
}

export const authorizationServer = Effect.acquireRelease(
  Effect.promise(async () => {
    const challenges = new Map<string, string>()
    const refreshTokens = new Set<string>()
    const forms: Array<URLSearchParams> = []
    let issued = 0
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? "/", "http://127.0.0.1")
      if (url.pathname === "/authorize") {
        const code = `code-${++issued}`
        challenges.set(code, url.searchParams.get("code_challenge") ?? "")
        const back = new URL(url.searchParams.get("redirect_uri") ?? "")
        back.searchParams.set("code", code)
        back.searchParams.set("state", url.searchParams.get("state") ?? "")
        response.writeHead(302, { location: back.href }).end()
        return
      }
      let text = ""
      request.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk
      })
      request.on("end", () => {
        const form = new URLSearchParams(text)
        forms.push(form)
        if (self.answer !== null) return self.answer(response)
        const refuse = (error: string) =>
          response.writeHead(400).end(JSON.stringify({ error, error_description: "no\u001b[2J" }))
        if (form.get("grant_type") === "refresh_token") {
          if (!refreshTokens.delete(form.get("refresh_token") ?? "")) return refuse("invalid_grant")
        } else {
          const verifier = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url")
          const code = form.get("code") ?? ""
          if (challenges.get(code) !== verifier) return refuse("invalid_grant")
          challenges.delete(code)
        }
        const number = ++issued
        refreshTokens.add(`refresh-${number}`)
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({
          access_token: `access-${number}`,
          refresh_token: `refresh-${number}`,
          expires_in: self.lifetime,
          token_type: "Bearer"
        }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const self: AuthorizationServer = {
      authorizeURL: `${at}/authorize`,
      tokenURL: `${at}/token`,
      forms,
      answer: null,
      lifetime: 3600,
      browse: async (url) => {
        const response = await fetch(url, { redirect: "manual" })
        return new URL(response.headers.get("location") ?? "")
      }
    }
    return {
      self,
      close: () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeAllConnections()
        })
    }
  }),
  ({ close }) => Effect.promise(close)
).pipe(Effect.map(({ self }) => self))

/** A folder of its own, gone at the end of the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bezel-accounts-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)
