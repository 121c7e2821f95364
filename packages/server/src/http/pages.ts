/** What the server serves beside the API, to everybody who reaches its port: the API's description, for programs and people. */
import { openApi } from "@bezel/sdk/api"
import { docsPage } from "./docs-page.ts"
import { docsScript } from "./docs-script.ts"

export interface Page {
  readonly headers: { readonly [name: string]: string }
  readonly text: string
}

/** The page of a target, or `null`. */
export type StaticPages = (target: string) => Page | null

/** Made at the first request for one of them; they hold nothing of this machine. */
export const makePages = (): StaticPages => {
  let made: { readonly [path: string]: Page } | null = null
  return (target) => {
    const path = target.split("?", 1)[0]
    if (path !== "/openapi.json" && path !== "/docs" && path !== "/docs.js") return null
    if (made === null) {
      const document = openApi()
      made = {
        "/openapi.json": {
          headers: { "content-type": "application/json; charset=utf-8" },
          text: JSON.stringify(document)
        },
        "/docs": {
          headers: {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy":
              "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; " +
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "referrer-policy": "no-referrer"
          },
          text: docsPage(document)
        },
        "/docs.js": { headers: { "content-type": "text/javascript; charset=utf-8" }, text: docsScript }
      }
    }
    return made[path] ?? null
  }
}
