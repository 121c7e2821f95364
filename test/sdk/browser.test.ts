/** The client where there is no Node: bundled for a browser, and run with what browsers have alone. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"
import { join } from "node:path"
import { createContext, runInContext } from "node:vm"
import { startTestServer, tokens } from "../server/http/fixture.ts"

/** What the client may find in a browser. */
const browser = {
  AbortController,
  AbortSignal,
  // What `fetch` gives is of this realm.
  ArrayBuffer,
  Uint8Array,
  clearInterval,
  clearTimeout,
  console,
  crypto,
  Blob,
  Event,
  fetch,
  FormData,
  Headers,
  performance,
  queueMicrotask,
  ReadableStream,
  Response,
  setInterval,
  setTimeout,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams
}

describe("the client in a browser", () => {
  it.live("bundles without anything of Node, and runs a turn with its events", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer(["Hello."])
      yield* Effect.promise(async () => {
        const { outputFiles } = await build({
          entryPoints: [join(import.meta.dirname, "../../packages/sdk/src/index.ts")],
          bundle: true,
          platform: "browser",
          format: "iife",
          globalName: "sdk",
          minify: true,
          write: false,
          logLevel: "silent"
        })
        const [bundle] = outputFiles
        const context = createContext({ ...browser })
        runInContext(bundle?.text ?? "", context)
        const turn = runInContext(
          `(async (url, token) => {
            const client = sdk.createClient({ url, token })
            const { id } = await client.session.create()
            const seen = []
            for await (const event of client.session.events(id)) {
              if (event.type === "ready") await client.session.prompt(id, "Hi")
              seen.push(event.type)
              if (event.type === "turn.ended") break
            }
            return [(await client.session.wait(id)).text, seen.includes("delta")]
          })`,
          context
        )
        expect([...await turn(url, tokens.admin)]).toEqual(["Hello.", true])
      })
    })))
})
