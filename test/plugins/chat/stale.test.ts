/** The chat of a terminal whose connection is lost. */
import { Plugin } from "@bezel/core/host"
import type { ReplicaStatus } from "@bezel/core/service"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { describe, expect } from "vitest"
import { type ChatConversation, chatScreen } from "../../../packages/plugins/src/chat/screen.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { assistant, makeStubSession } from "../../tui/stub-session.ts"

type Sent = Parameters<ChatConversation["send"]>[0]

const open = (send?: (input: Sent, times: number) => Effect.Effect<void, { readonly message: string }>) =>
  Effect.gen(function*() {
    const stub = yield* makeStubSession((_, script) =>
      Effect.andThen(
        script.entry("bezel.assistant", assistant("It is `here`.", [])),
        script.turn([{ type: "text", text: "and there" }])
      )
    )
    let status: ReplicaStatus = "live"
    let changed = () => {}
    const sent: Array<Sent> = []
    const conversation: ChatConversation = {
      ...stub.conversation,
      view: {
        get value() {
          return stub.conversation.view.value
        },
        get status() {
          return status
        }
      },
      send: (input) => {
        sent.push(input)
        return send === undefined ? stub.conversation.send(input) : Effect.as(send(input, sent.length), {})
      }
    }
    const chat = Plugin.define({
      id: "bezel.chat",
      tui: (ctx) =>
        Effect.gen(function*() {
          changed = yield* chatScreen(ctx, { conversation: () => conversation, location: () => null, home: null })
          yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(
            Stream.runForEach(stub.conversation.view.changes, () => Effect.sync(changed))
          )))
        })
    })
    const screen = yield* testTerminal({ presentation: stub.presentation, plugins: Plugin.sources("tui", [chat]) })
    yield* screen.until("bezel/offline")
    return {
      ...screen,
      sent,
      become: (now: ReplicaStatus) =>
        Effect.sync(() => {
          status = now
          changed()
        })
    }
  })

describe("a chat without its connection", () => {
  it.live("shows its last state pale and without colours, says so, and has them back with the connection", () =>
    Effect.gen(function*() {
      const { become, terminal, text, type, until } = yield* open()
      yield* type("where?\r")
      yield* until("and there")
      yield* until(/[⠀-⣿] Working/)
      const before = terminal.written.length
      yield* become("stale")
      yield* until("⏸ Disconnected; trying to connect again")
      const pale = terminal.written.slice(before)
      expect(pale).toContain("\x1b[2m› where?\x1b[22m")
      expect(pale).toContain("\x1b[2mIt is here.\x1b[22m")
      expect(pale).toContain("\x1b[2mand there\x1b[22m")
      expect(yield* text).not.toContain("Working")
      expect(pale).not.toContain("\x1b[2J")
      yield* become("live")
      yield* until(/[⠀-⣿] Working/)
      expect(yield* text).not.toContain("Disconnected")
      expect(terminal.written.slice(before + pale.length)).toMatch(/It is \x1b\[36mhere\x1b\[39m\./)
    }))

  it.live("sends nothing, and keeps what was to be sent", () =>
    Effect.gen(function*() {
      const { become, sent, type, until } = yield* open()
      yield* become("stale")
      yield* until("Disconnected")
      yield* type("hello\r")
      yield* until("Not sent: there is no connection; it is tried again by itself.")
      yield* until(/─\nhello\n─/)
      expect(sent).toEqual([])
      yield* become("live")
      yield* type("\r")
      yield* until("› hello")
      expect(sent.map(({ text: words }) => words)).toEqual(["hello"])
    }))

  it.live("names a prompt whose answer was lost as before when it is sent again, so that it comes once", () =>
    Effect.gen(function*() {
      const { sent, type, until } = yield* open((_, times) =>
        times === 1 ? Effect.fail({ message: "The connection was lost." }) : Effect.void
      )
      yield* type("hello\r")
      yield* until(/Not sent: The connection was lost\.[\s\S]*─\nhello\n─/)
      yield* type("\r")
      yield* until(/─\n\n─/)
      yield* type("hello\r")
      yield* until(/─\n\n─/)
      const [first, again, another] = sent.map(({ requestID }) => requestID)
      expect(again).toBe(first)
      expect(another).not.toBe(first)
    }))
})
