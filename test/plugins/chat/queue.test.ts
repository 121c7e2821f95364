/** Prompts that wait, as a person sees and changes them in a terminal. */
import type { ViewInput } from "@bezel/core/harness"
import { Plugin } from "@bezel/core/host"
import type { FilePart } from "@bezel/core/model"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { describe, expect } from "vitest"
import { type ChatConversation, chatScreen } from "../../../packages/plugins/src/chat/screen.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"
import { makeStubSession } from "../../tui/stub-session.ts"

const steer: ViewInput = { id: "i1", text: "look at b too", whenBusy: "steer" }
const later: ViewInput = { id: "i2", text: "then commit", whenBusy: "followUp" }
const shot: FilePart = { type: "file", mediaType: "image/png", fileName: "shot.png", data: "iVBORw0KGgo=" }

type Sent = Parameters<ChatConversation["send"]>[0]

/** A chat with two prompts that wait, and whatever a test wants to be otherwise. */
const open = (
  change: (session: { readonly place: (id: string) => Effect.Effect<void> }) => Partial<ChatConversation> = () => ({})
) =>
  Effect.gen(function*() {
    const stub = yield* makeStubSession(() => Effect.void)
    yield* stub.update((view) => ({
      ...view,
      inbox: [steer, later],
      turn: { inputs: ["i0"], generation: null, message: null, tools: [] }
    }))
    const sent: Array<Sent> = []
    const place = (id: string) =>
      stub.update((view) => ({ ...view, inbox: view.inbox.filter((input) => input.id !== id) }))
    const conversation: ChatConversation = {
      ...stub.conversation,
      // A getter is not copied by a spread.
      view: stub.conversation.view,
      send: (input) =>
        Effect.andThen(
          Effect.sync(() => void sent.push(input)),
          Effect.as(
            stub.update((view) => ({
              ...view,
              inbox: [...view.inbox, { id: `n${sent.length}`, text: input.text, whenBusy: input.whenBusy }]
            })),
            {}
          )
        ),
      ...change({ place })
    }
    const chat = Plugin.define({
      id: "bezel.chat",
      tui: (ctx) =>
        Effect.gen(function*() {
          const changed = yield* chatScreen(ctx, { conversation: () => conversation, location: () => null, home: null })
          yield* ctx.onActivate(
            Effect.asVoid(Effect.forkScoped(Stream.runForEach(
              conversation.view.value === undefined
                ? Stream.empty
                : stub.conversation.view.changes,
              () => Effect.sync(changed)
            )))
          )
        })
    })
    const screen = yield* testTerminal({ presentation: stub.presentation, plugins: Plugin.sources("tui", [chat]) })
    yield* screen.until("↳ later: then commit")
    const { type, until } = screen
    /** Opens the list, chooses a prompt of it, and then what becomes of that one. */
    const pick = (prompt: number, wish?: number) =>
      Effect.gen(function*() {
        yield* type("\x1bq")
        yield* until(/Prompts that wait[\s\S]*esc cancel/)
        yield* type(String(prompt))
        yield* until(/1\. Edit it[\s\S]*esc cancel/)
        if (wish !== undefined) yield* type(String(wish))
      })
    return { ...screen, sent, place, pick }
  })

const listed = /Prompts that wait\n› 1\. next {2}look at b too\n {2}2\. later then commit\n/

describe("the queue of prompts", () => {
  it.live("says below what waits how it is changed, and lists it in its order", () =>
    Effect.gen(function*() {
      const { text, type, until } = yield* open()
      yield* until(/↳ next: look at b too\n↳ later: then commit\n {2}\/queue changes them\n/)
      yield* type("\x1bq")
      yield* until(listed)
      yield* type("\x1b")
      yield* until(/^(?![\s\S]*Prompts that wait)/)
      yield* type("/queue\r")
      yield* until(listed)
      expect(yield* text).not.toContain("No prompt waits")
    }))

  it.live("any of them can be edited: it leaves the queue, and is sent again as what it was", () =>
    Effect.gen(function*() {
      const { pick, sent, type, until } = yield* open()
      yield* pick(2)
      yield* until(/Waits for the end of the turn\n {2}then commit\n› 1\. Edit it/)
      yield* type("1")
      yield* until("/later then commit")
      yield* until(/^(?![\s\S]*↳ later)/)
      yield* type(" and push\r")
      yield* until("↳ later: then commit and push")
      expect(sent).toMatchObject([{ text: "then commit and push", whenBusy: "followUp" }])
    }))

  it.live("one for the next step can wait for the end of the turn instead, and the other way round", () =>
    Effect.gen(function*() {
      const { pick, sent, type, until } = yield* open()
      yield* pick(1)
      yield* until("2. Send it once the turn has ended")
      yield* type("2")
      yield* until(/↳ later: then commit\n↳ later: look at b too\n/)
      yield* pick(1)
      yield* until("2. Send it at the next step")
      yield* type("2")
      yield* until(/↳ later: look at b too\n↳ next: then commit\n/)
      expect(sent.map(({ text, whenBusy }) => [text, whenBusy])).toEqual([
        ["look at b too", "followUp"],
        ["then commit", "steer"]
      ])
    }))

  it.live("one that is removed comes back with the up arrow", () =>
    Effect.gen(function*() {
      const { pick, sent, type, until } = yield* open()
      yield* pick(1, 3)
      yield* until("It waits no longer; the up arrow")
      yield* until(/^(?![\s\S]*↳ next: look)/)
      yield* type("\x1b[A")
      yield* until(/─\nlook at b too\n─/)
      expect(sent).toEqual([])
    }))

  it.live("brings its files back, whoever has sent them, and sends them again", () =>
    Effect.gen(function*() {
      const { pick, sent, type, until } = yield* open(() => ({
        inputContent: () => Effect.succeed({ text: "look at [shot.png] and b", files: [shot] })
      }))
      yield* pick(1, 1)
      yield* until(/\+ shot\.png {2}png, 8 B\n/)
      yield* type("\r")
      yield* until("↳ next: look at [shot.png] and b")
      expect(sent).toMatchObject([{ text: "look at [shot.png] and b", files: [shot] }])
    }))

  it.live("closes what is asked about one that the model takes meanwhile, says so, and leaves what is typed alone", () =>
    Effect.gen(function*() {
      const { pick, place, sent, type, until } = yield* open()
      yield* type("mine")
      yield* pick(1)
      yield* until("Waits for the model's next step")
      yield* place("i1")
      yield* until("It waits no longer: the model has it, or somebody took it back.")
      yield* until(/─\nmine\n─/)
      expect(sent).toEqual([])
    }))

  it.live("takes nothing that the model takes at the same moment", () =>
    Effect.gen(function*() {
      const { pick, sent, until } = yield* open(({ place }) => ({
        inputAbort: ({ inputID }) => Effect.as(place(inputID), "already_placed")
      }))
      yield* pick(1, 1)
      yield* until("The model has it already; nothing was changed.")
      yield* until(/─\n\n─/)
      yield* pick(1, 1)
      yield* until(/^(?![\s\S]*↳ later)/)
      expect(sent).toEqual([])
    }))

  it.live("keeps a text in the editor where the connection goes before it is known what became of it", () =>
    Effect.gen(function*() {
      const { pick, text, until } = yield* open(() => ({
        inputAbort: () => Effect.fail({ message: "The connection was lost." })
      }))
      yield* pick(1, 1)
      yield* until(/It may wait still: The connection was lost\. Its text is in the editor\./)
      yield* until(/─\nlook at b too\n─/)
      expect(yield* text).toContain("↳ next: look at b too")
    }))

  it.live("keeps a text in the editor that left the queue and is refused by it", () =>
    Effect.gen(function*() {
      const { pick, text, until } = yield* open(() => ({ send: () => Effect.fail({ message: "No more." }) }))
      yield* pick(1, 2)
      yield* until("No more.")
      yield* until(/─\n\/later look at b too\n─/)
      expect(yield* text).not.toContain("↳ next: look at b too")
    }))
})
