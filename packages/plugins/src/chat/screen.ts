/**
 * The chat screen: transcript, queue, editor and status of the attached session's conversation.
 *
 * It sees the session through the conversation's service only: it renders the replicated view and calls `send` and
 * `abort`. What it shows of tools and of other plugins' entries comes from their renderers.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ConversationConfig, ConversationView } from "@bezel/core/harness"
import type { Replica } from "@bezel/core/service"
import { type Block, group, span, text, type TuiContext } from "@bezel/tui"
import { activityBlock, activityOf, frameMillis, queueBlocks, statusBlock } from "./status.ts"
import { makeTranscript } from "./transcript.ts"

/** What chat needs of the conversation's service. */
export interface ChatConversation {
  readonly view: Replica<ConversationView>
  readonly send: (input: {
    readonly text: string
    readonly whenBusy: "followUp" | "steer"
    readonly requestID: string
  }) => Effect.Effect<unknown, { readonly message: string }>
  readonly abort: (input: { readonly reason: string }) => Effect.Effect<unknown, { readonly message: string }>
  readonly configSet: (patch: Partial<ConversationConfig>) => Effect.Effect<unknown, { readonly message: string }>
}

/** Milliseconds within which a second Ctrl-C quits. */
const quitWindow = 2_000

const welcome: ReadonlyArray<Block> = [
  text([span("Bezel", { bold: true, color: "accent" }), span("  /help for help, esc interrupts, ctrl+d quits", { color: "muted" })])
]

/** Names of the places that other facets may fill. */
export const chatSlots = { header: "chat.header", aboveEditor: "chat.aboveEditor", footer: "chat.footer" } as const

export const chatScreen = Effect.fnUntraced(function*(ctx: TuiContext, conversation: ChatConversation, places: {
  readonly location: () => string | null
  readonly home: string | null
}): Effect.fn.Return<void, unknown, Scope.Scope> {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const transcript = makeTranscript(ctx)
  let expanded = false
  let busySince: number | null = null
  let lastInterrupt = Number.NEGATIVE_INFINITY

  const view = () => conversation.view.value
  const isBusy = () => view()?.turn != null

  const send = (content: string, whenBusy: "followUp" | "steer") =>
    conversation.send({ text: content, whenBusy, requestID: globalThis.crypto.randomUUID() })

  const editor = yield* ctx.ui.editor({ onSubmit: (content) => Effect.asVoid(send(content, "steer")) })

  yield* ctx.screens.register("chat", {
    title: "Chat",
    open: Effect.succeed({
      editor,
      body: () => {
        const current = view()
        return [
          ...welcome,
          ...ctx.slots.render(chatSlots.header),
          ...(current === undefined ? [] : transcript.blocks(current, { expanded }))
        ]
      },
      above: () => {
        const current = view()
        if (current === undefined) return [text("")]
        return [
          text(""),
          activityBlock(activityOf(current), busySince ?? now(), now()),
          ...queueBlocks(current.inbox),
          ...ctx.slots.render(chatSlots.aboveEditor)
        ]
      },
      below: () => [
        statusBlock({ view: view(), status: conversation.view.status, location: places.location(), home: places.home }),
        ...ctx.slots.render(chatSlots.footer)
      ]
    })
  })

  // -------------------------------------------------------------------------------------------------------- commands

  yield* ctx.commands.register("chat.interrupt", {
    description: "Interrupt what the model does",
    run: () => Effect.asVoid(conversation.abort({ reason: "interrupted by the person" }))
  })
  yield* ctx.commands.register("chat.clearOrQuit", {
    description: "Clear the editor; twice: quit",
    run: () =>
      Effect.suspend(() => {
        const at = now()
        const again = at - lastInterrupt < quitWindow
        lastInterrupt = at
        if (again) return ctx.ui.quit
        editor.setText("")
        return ctx.ui.notify("Press ctrl+c again to quit.")
      })
  })
  yield* ctx.commands.register("chat.expand", {
    description: "Show tool output in full, or its end only",
    run: () =>
      Effect.sync(() => {
        expanded = !expanded
        ctx.ui.redraw()
      })
  })
  yield* ctx.commands.register("app.quit", { slash: "quit", description: "Leave; the session can be continued", run: () => ctx.ui.quit })
  yield* ctx.commands.register("chat.later", {
    slash: "later",
    argument: "TEXT",
    description: "Send TEXT once the running turn has ended",
    run: (content) => content === "" ? ctx.ui.notify("Say what to send: /later TEXT", "warning") : Effect.asVoid(send(content, "followUp"))
  })
  yield* ctx.commands.register("chat.model", {
    slash: "model",
    argument: "PROVIDER/MODEL",
    description: "Use another model from the next request on",
    run: (name) => {
      const separator = name.indexOf("/")
      if (separator <= 0 || separator === name.length - 1) {
        const model = view()?.config.model
        return ctx.ui.notify(model == null ? "No model is set. /model PROVIDER/MODEL sets one." : `The model is ${model.provider}/${model.model}.`)
      }
      return Effect.asVoid(conversation.configSet({ model: { provider: name.slice(0, separator), model: name.slice(separator + 1) } }))
    }
  })
  yield* ctx.commands.register("app.help", {
    slash: "help",
    description: "Show commands and keys",
    run: () =>
      Effect.scoped(Effect.gen(function*() {
        const commands = yield* ctx.commands.list
        const keys = yield* ctx.keybindings.list
        const body = helpBlocks(commands, keys)
        const overlay = yield* ctx.ui.overlay({ title: "Help", body: () => body, closeKeys: ["escape", "enter", "q"] })
        yield* overlay.closed
      }))
  })

  yield* ctx.keybindings.bind("escape", { command: "chat.interrupt", when: () => isBusy() && !editor.completing() })
  yield* ctx.keybindings.bind("ctrl+c", { command: "chat.clearOrQuit" })
  yield* ctx.keybindings.bind("ctrl+d", { command: "app.quit", when: () => editor.text() === "" })
  yield* ctx.keybindings.bind("ctrl+o", { command: "chat.expand" })

  // ---------------------------------------------------------------------------------------------------------- frames

  yield* ctx.onActivate(Effect.gen(function*() {
    yield* Effect.forkScoped(conversation.view.forEach((current) =>
      Effect.sync(() => {
        if (current.turn === null) busySince = null
        else busySince ??= now()
        editor.setBorder({ color: current.turn === null ? "border" : "accent" })
        ctx.ui.redraw()
      })
    ))
    // The spinner, the seconds and the retry countdown move while a turn runs.
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(
      Effect.sleep(frameMillis),
      Effect.sync(() => {
        if (isBusy()) ctx.ui.redraw()
      })
    )))
    yield* Effect.forkScoped(statusRedraws(ctx, conversation.view))
  }))
})

const helpBlocks = (
  commands: ReadonlyArray<{ readonly value: { readonly slash?: string; readonly argument?: string; readonly description: string }; readonly key: string }>,
  keys: ReadonlyArray<{ readonly key: string; readonly binding: { readonly command: string } }>
): ReadonlyArray<Block> => {
  const described = new Map(commands.map((command) => [command.key, command.value.description]))
  const line = (name: string, description: string): Block =>
    text([span(name.padEnd(24), { color: "accent" }), span(description, { color: "muted" })], { wrap: "clip" })
  return [
    group(commands.flatMap(({ value }) =>
      value.slash === undefined ? [] : [line(`/${value.slash}${value.argument === undefined ? "" : ` ${value.argument}`}`, value.description)]
    )),
    text(""),
    group(keys.map(({ binding, key }) => line(key, described.get(binding.command) ?? binding.command))),
    line("enter", "Send; while the model works: at its next step"),
    line("shift+enter, ctrl+j", "New line")
  ]
}

const statusRedraws = (ctx: TuiContext, view: Replica<ConversationView>) =>
  Stream.runForEach(view.statuses, () => Effect.sync(ctx.ui.redraw))
