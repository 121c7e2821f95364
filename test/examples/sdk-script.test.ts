import { call, temporaryDirectory } from "@bezel/core/testing"
import { createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { spawn } from "node:child_process"
import { realpathSync } from "node:fs"
import { join } from "node:path"
import { nextAnswer } from "../../examples/sdk-script/effects.ts"
import { openWithStock } from "../../examples/sdk-script/embedded.ts"
import { follow } from "../../examples/sdk-script/follow.ts"
import { rawTurn } from "../../examples/sdk-script/raw.ts"
import { askAbout } from "../../examples/sdk-script/tool.ts"
import { startTestServer, tokens } from "../server/http/fixture.ts"

describe("examples/sdk-script", () => {
  it.live("asks the server of this user and prints the answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer(["Forty-two."])
      const stdout = yield* Effect.promise(() =>
        new Promise<string>((resolve) => {
          const script = join(import.meta.dirname, "../../examples/sdk-script/ask.ts")
          const child = spawn(process.execPath, [script, "What is it?"], {
            env: { ...process.env, BEZEL_URL: url, BEZEL_TOKEN: tokens.admin },
            stdio: ["ignore", "pipe", "inherit"]
          })
          let text = ""
          child.stdout.setEncoding("utf8").on("data", (piece: string) => {
            text += piece
          })
          child.on("close", () => resolve(text))
        })
      )
      expect(stdout).toBe("Forty-two.\n")
    })))

  it.live("follows an answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([[call("ask", { text: "Well?" })], "Hello."])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        let text = ""
        const following = follow(client, id, "Hi", {
          reads: (piece) => {
            text += piece
          },
          allows: () => true
        })
        for await (const event of client.session.events(id)) {
          if (event.type !== "interaction.opened" || !("id" in event)) continue
          await client.session.answer(id, String(event.id), { response: { yes: true } })
          break
        }
        await following
        expect(text).toBe("Hello.")
      })
    })))

  it.live("lets the model call a tool of the program", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([[call("stock", { stone: "ruby" })], "Three."])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        const asked: Array<unknown> = []
        const answer = await askAbout(client, id, "How many rubies?", {
          count: (stone) => {
            asked.push(stone)
            return Promise.resolve(3)
          }
        })
        expect([answer, asked]).toEqual(["Three.", [{ stone: "ruby" }]])
      })
    })))

  it.live("works without the client, and in effects", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer(["Raw.", "In effects."])
      expect(yield* Effect.promise(() => rawTurn(url, tokens.prompt, "Hi"))).toBe("Raw.")
      const client = createClient({ url, token: tokens.admin })
      const { id } = yield* Effect.promise(() => client.session.create())
      const next = yield* Effect.forkChild(nextAnswer(url, tokens.read, id))
      yield* Effect.promise(async () => {
        for await (const event of client.session.events(id)) {
          if (event.type === "ready") await client.session.prompt(id, "Hi")
          if (event.type === "turn.ended") break
        }
      })
      expect(yield* Fiber.join(next)).toBe("In effects.")
    })))

  it.live("embeds Bezel with a tool of the program", () =>
    Effect.scoped(Effect.gen(function*() {
      const folder = realpathSync(yield* temporaryDirectory)
      yield* Effect.promise(async () => {
        const bezel = await openWithStock(folder, folder)
        expect((await bezel.location.tools()).map(({ name }) => name)).toContain("stock")
        const { id } = await bezel.session.create()
        expect((await bezel.session.ask(id, "list")).status).toBe("done")
        await bezel.close()
      })
    })))
})
