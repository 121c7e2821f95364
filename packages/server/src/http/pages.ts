/** What the server serves beside the API, to everybody who reaches its port: the API's description, for programs and people. */
import { openApi } from "@bezel/sdk/api"
import { docsPage } from "./docs-page.ts"

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
    if (path !== "/openapi.json" && path !== "/docs") return null
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
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
          },
          text: docsPage(document)
        }
      }
    }
    return made[path] ?? null
  }
}
