/** A secret that a person gives to a tool through a sensitive interaction: looked for wherever a host keeps or tells things. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { Connection, Endpoint, loopback } from "@bezel/core/rpc"
import { Interaction } from "@bezel/core/service"
import { SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import {
  call,
  recordFrames,
  recordSpans,
  scriptedModel,
  temporaryDirectory,
  testPresentation,
  testSessionHost
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, References, Schema, Stream } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { connected, eventually } from "../../matrix/harness.ts"

const canary = "canary-3b9f"

const Passphrase = Interaction.make("test.passphrase")({
  request: Schema.Struct({ hint: Schema.String }),
  response: Schema.Struct({ passphrase: Schema.String }),
  unattended: "deny",
  sensitive: true
})

/** A tool that asks for a secret, uses it, and says nothing of it. */
const unlocking = (used: Array<string>) =>
  Plugin.define({
    id: "test.unlock",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) =>
        draft.set(
          "unlock",
          tool({
            description: "Unlocks",
            input: Schema.Struct({}),
            execute: (_, { sessionID }) =>
              Effect.gen(function*() {
                const outcome = yield* ctx.interactions.request(Passphrase, { hint: `like ${canary}` }, { sessionID })
                if (outcome.type === "answered") used.push(outcome.response.passphrase)
                return `unlocked: ${outcome.type}`
              })
          })
        )
      ))
  })

const bigAsText = (_: string, value: unknown) => typeof value === "bigint" ? String(value) : value

const everythingIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) =>
    readFileSync(join(entry.parentPath, entry.name), "latin1")
  ).join("\n")

describe("a secret that a person gives", () => {
  it.live("reaches the tool that asked, and no state, event, log, span, storage or wire of anybody else", () => {
    const spans = recordSpans()
    const told: Array<string> = []
    const logger = Logger.make((entry) => {
      told.push(JSON.stringify(Logger.formatStructured.log(entry)))
    })
    return spans.traced(
      Effect.gen(function*() {
        const data = yield* temporaryDirectory
        const sessions = yield* Layer.build(
          SessionStore.layer({ directory: data, version: "test" }).pipe(
            Layer.provideMerge(SessionStorage.layer({ directory: data }))
          )
        )
        const used: Array<string> = []
        const model = scriptedModel([[call("unlock", {})], "Open."])
        const host = yield* testSessionHost([unlocking(used)], { model, sessions })
        const { id } = yield* host.session.create({ title: "secrets" })
        // Somebody who watches the same session and does not handle what is asked.
        const { connect, frames } = recordFrames(loopback(Context.get(host.services, Endpoint)))
        const watcher = yield* Connection.make({ connect, label: "watcher" })
        yield* connected(watcher)
        yield* watcher.select(id)
        const conversation = yield* watcher.use(Conversation, { key: conversationKey(id, "c1") })
        yield* conversation.ready
        yield* Effect.forkScoped(Stream.runDrain(conversation.happened), { startImmediately: true })
        const broken = { first: true }
        yield* testPresentation(host, {
          "test.person": (ctx) =>
            ctx.interactions.handle(Passphrase, ({ hint }) => {
              // One handler breaks with it in its hands; the other answers.
              if (!broken.first) return Effect.succeed({ passphrase: canary })
              broken.first = false
              return Effect.die(new Error(hint))
            })
        }, id)
        yield* testPresentation(host, {
          "test.person": (ctx) => ctx.interactions.handle(Passphrase, () => Effect.succeed({ passphrase: canary }))
        }, id)
        expect(yield* host.ask(id, "unlock it")).toBe("Open.")
        expect(used).toEqual([canary])
        yield* eventually(() => conversation.view.value?.turn === null)
        expect(frames.received.join("\n")).toContain("unlocked: answered")
        const places = {
          model: JSON.stringify(model.requests),
          storage: everythingIn(data),
          "read models": JSON.stringify([yield* host.session.messages(id), yield* host.session.history(id, 0)]),
          "replicated state": JSON.stringify(conversation.view.value),
          "the wire of another client": JSON.stringify(frames),
          log: told.join("\n"),
          spans: JSON.stringify(spans.all.map((span) => [span.name, [...span.attributes], span.status]), bigAsText)
        }
        expect(places.storage).toContain("unlocked: answered")
        for (const [place, text] of Object.entries(places)) {
          expect([place, text.includes(canary)]).toEqual([place, false])
        }
      }).pipe(
        Effect.scoped,
        Effect.provide(Logger.layer([logger])),
        Effect.provideService(References.MinimumLogLevel, "Trace")
      )
    )
  })
})
