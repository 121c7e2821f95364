/** Mentions in prompts that come over HTTP: attached where the session is, for plain requests and for the client alike. */
import { Plugin } from "@bezel/core/host"
import type { ScriptedModel } from "@bezel/core/testing"
import { session as mentions } from "@bezel/plugins/mentions/session"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { startTestServer, tokens } from "../../server/http/fixture.ts"

const plugins = [
  Plugin.define({
    id: "bezel.permissions",
    session: (ctx) => permissions({ ...ctx, options: { deny: ["read(.env)"] } })
  }),
  Plugin.define({ id: "bezel.mentions", session: mentions })
]

/** Names and texts of what the model got with the newest prompt. */
const attached = (model: ScriptedModel) => {
  const message = model.requests.at(-1)?.messages.findLast(({ role }) => role === "user")
  return (message?.role === "user" ? message.content : []).flatMap((part) =>
    part.type === "file" ? [[part.fileName, Buffer.from(String(part.data), "base64").toString()]] : []
  )
}

const started = Effect.gen(function*() {
  const server = yield* startTestServer(["one", "two", "three"], { plugins })
  const { directory } = server
  fs.mkdirSync(path.join(directory, ".git"))
  fs.mkdirSync(path.join(directory, "src"))
  fs.writeFileSync(path.join(directory, "src/a.ts"), "export const a = 1\n")
  fs.writeFileSync(path.join(directory, ".env"), "KEY=k-secret\n")
  fs.writeFileSync(path.join(directory, ".gitignore"), ".env\n")
  fs.writeFileSync(path.join(directory, "../outside.txt"), "k-secret\n")
  fs.symlinkSync("../outside.txt", path.join(directory, "link"))
  return server
})

describe("a prompt over HTTP", () => {
  it.live("has what it mentions attached, within the rules, and is answered with what is not", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, model } = yield* started
      yield* Effect.promise(async () => {
        const { json: session } = await call("POST", "/session", { body: {} })
        const body = { text: "see @src/a.ts, @link, @../outside.txt, @.env and @nothing" }
        const sent = await call("POST", `/session/${session.id}/prompt`, { body })
        expect(sent).toMatchObject({ status: 202, json: { status: "accepted" } })
        expect(sent.json.notices).toEqual([
          expect.stringMatching(/^@link, is not attached: no rule allows to read .*outside\.txt without asking\.$/),
          expect.stringMatching(/^@\.\.\/outside\.txt, is not attached: no rule allows/),
          expect.stringMatching(/^@\.env is not attached: no rule allows to read \.env/)
        ])
        await call("GET", `/session/${session.id}/wait?input=${sent.json.inputID}`)
        expect(attached(model)).toEqual([["src/a.ts", "export const a = 1\n"]])
        expect(JSON.stringify(model.requests)).not.toContain("k-secret")
      })
    })))

  it.live("in parts has them too, is the same prompt when it is sent again, and waits with them if it is not to run", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, model } = yield* started
      yield* Effect.promise(async () => {
        const { json: session } = await call("POST", "/session", { body: {} })
        const at = `/session/${session.id}/prompt`
        const body = { parts: [{ type: "text", text: "see @src/a.ts" }], requestID: "r1", resume: false }
        const first = await call("POST", at, { body })
        const again = await call("POST", at, { body })
        expect(again.json).toEqual(first.json)
        expect(first.json.notices).toBeUndefined()
        await call("POST", `/session/${session.id}/resume`)
        await call("GET", `/session/${session.id}/wait?input=${first.json.inputID}`)
        expect(model.requests).toHaveLength(1)
        expect(attached(model)).toEqual([["src/a.ts", "export const a = 1\n"]])
      })
    })))

  it.live("of the client has them, unless it says that its words are words", () =>
    Effect.scoped(Effect.gen(function*() {
      const { model, url } = yield* started
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        const accepted = await client.session.prompt(id, "see @src/a.ts and @.env")
        expect(accepted.notices).toEqual([expect.stringContaining("@.env is not attached")])
        await client.session.wait(id, { input: accepted.inputID })
        expect(attached(model)).toEqual([["src/a.ts", "export const a = 1\n"]])
        const words = await client.session.prompt(id, { text: "see @src/a.ts", mentions: false })
        await client.session.wait(id, { input: words.inputID })
        expect(attached(model)).toEqual([])
        expect(words.notices).toBeUndefined()
      })
    })))
})
