/**
 * The chat screen: transcript, queue, editor and status of the attached session's conversation.
 *
 * It sees the session through the conversation's service only: it renders the replicated view and calls `send` and
 * `abort`. What it shows of tools and of other plugins' entries comes from their renderers.
 */
import type { ConversationConfig, ConversationView } from "@bezel/core/harness"
import type { Conversation } from "@bezel/core/host/contract"
import type { FilePart } from "@bezel/core/model"
import type { Facade, Replica } from "@bezel/core/service"
import { type Block, faint, span, text, type TuiContext } from "@bezel/tui"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { makeAttachments } from "./attachments.ts"
import { chatSlots } from "./contract.ts"
import { editing } from "./external-editor.ts"
import { helpBlocks } from "./help.ts"
import { keeping } from "./keep.ts"
import type { PastedImage } from "./pasted-image.ts"
import { queueing } from "./queue.ts"
import { scrolling } from "./scrolling.ts"
import { activityBlock, activityOf, frameMillis, queueBlocks, statusBlock } from "./status.ts"
import { makeTranscript } from "./transcript.ts"

/** What chat needs of the conversation's service. */
export interface ChatConversation {
  readonly view: Pick<Replica<ConversationView>, "value" | "status">
  readonly send: (input: {
    readonly text: string
    /** A person wrote it: what it mentions is attached. */
    readonly written?: boolean
    readonly whenBusy: "followUp" | "steer"
    readonly requestID: string
    readonly files?: ReadonlyArray<FilePart>
  }) => Effect.Effect<{ readonly notices?: ReadonlyArray<string> }, { readonly message: string }>
  readonly abort: (input: { readonly reason: string }) => Effect.Effect<unknown, { readonly message: string }>
  readonly inputContent: (input: { readonly inputID: string }) => Effect.Effect<
    { readonly text: string; readonly files: ReadonlyArray<FilePart> },
    { readonly message: string }
  >
  readonly inputAbort: (input: { readonly inputID: string }) => Effect.Effect<string, { readonly message: string }>
  readonly configSet: (patch: Partial<ConversationConfig>) => Effect.Effect<unknown, { readonly message: string }>
  /** All of the conversation; the view has what the model sees, from the newest summary on. */
  readonly entries: Facade<Conversation>["entries"]
}

/** What the screen shows, asked for at each frame. */
export interface ChatSource {
  /** The attached session's conversation, `null` while there is none. */
  readonly conversation: () => ChatConversation | null
  readonly location: () => string | null
  /** The model that answers next, once that is known. */
  readonly model?: () => string | null
  /** Tokens that fit into a request of it, once that is known. */
  readonly window?: () => number | null
  readonly home: string | null
  /** The image that a pasted text is, or is the path of. */
  readonly pastedImage?: (pasted: string) => PastedImage | null
  /** What a word that begins with `@` may become. */
  readonly complete?: (word: string) => Effect.Effect<ReadonlyArray<string>, unknown>
}

/** Milliseconds within which a second Ctrl-C quits. */
const quitWindow = 2_000
/** The same for a second Escape, which goes back. */
const rewindWindow = 600
/** Milliseconds that a connection may be gone before what is sent meanwhile is refused. */
const goneMillis = 1_000
/** The same for a session that has not come yet: the screen is there before it. */
const comingMillis = 10_000

const welcome: ReadonlyArray<Block> = [
  text([
    span("Bezel", { bold: true, color: "accent" }),
    span("  /help for help, esc interrupts, ctrl+d quits", { color: "muted" })
  ])
]

/** Registers the screen, its commands and its keys; gives what must be called when the source has changed. */
export const chatScreen = Effect.fnUntraced(function*(
  ctx: TuiContext,
  source: ChatSource
): Effect.fn.Return<() => void, unknown, Scope.Scope> {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const transcript = makeTranscript(ctx)
  let expanded = false
  let busySince: number | null = null
  let lastInterrupt = Number.NEGATIVE_INFINITY
  let lastEscape = Number.NEGATIVE_INFINITY

  const fork = yield* FiberSet.makeRuntime<never>()
  const attachments = makeAttachments(
    source.pastedImage ?? (() => null),
    (why) => fork(ctx.ui.notify(why, "warning"))
  )

  const view = () => source.conversation()?.view.value
  const isBusy = () => view()?.turn != null
  /** Something moves: also a summary that is made without a turn. */
  const isActive = () => !isStale() && (isBusy() || view()?.compaction != null)
  let shown: ConversationView | undefined
  /** What is shown is what was last known. */
  const isStale = () => view() !== undefined && source.conversation()?.view.status !== "live"
  const asKnown = (blocks: ReadonlyArray<Block>) => isStale() || view() === undefined ? blocks.map(faint) : blocks

  const viewChanged = yield* Latch.make()
  const whenLive: Effect.Effect<void> = Effect.suspend(() =>
    isStale() ? Effect.andThen(viewChanged.await, whenLive) : Effect.void
  )
  /** A connection that comes back may go once more for a moment, when another host takes the session over. */
  const whenThere: Effect.Effect<void> = Effect.suspend(() =>
    source.conversation() === null ? Effect.andThen(viewChanged.await, whenThere) : Effect.void
  )
  const settled = Effect.andThen(
    Effect.timeoutOption(whenThere, comingMillis),
    Effect.timeoutOption(whenLive, goneMillis)
  )

  const withConversation = <A, E>(use: (conversation: ChatConversation) => Effect.Effect<A, E>) =>
    Effect.andThen(settled, () => {
      const conversation = source.conversation()
      return conversation === null
        ? Effect.fail<E | { readonly message: string }>({ message: "No session is attached." })
        : isStale()
        ? Effect.fail<E | { readonly message: string }>({
          message: "there is no connection; it is tried again by itself."
        })
        : Effect.asVoid(use(conversation))
    })

  const send = (content: string, whenBusy: "followUp" | "steer") =>
    withConversation((conversation) =>
      Effect.gen(function*() {
        const images = attachments.of(content)
        ctx.ui.scroll?.("end")
        // Whether the host has taken one whose answer was lost nobody knows; the same words under the same name come once.
        const requestID = unsure?.content === content ? unsure.requestID : globalThis.crypto.randomUUID()
        unsure = null
        const { notices = [] } = yield* conversation.send({
          text: content,
          written: true,
          whenBusy,
          requestID,
          ...(images.length === 0 ? {} : { files: images })
        }).pipe(Effect.tapError(() =>
          Effect.sync(() => {
            unsure = { content, requestID }
          })
        ))
        for (const notice of notices) yield* ctx.ui.notify(notice, "warning")
      })
    ).pipe(Effect.withSpan("ui.chat.send"))

  let unsure: { readonly content: string; readonly requestID: string } | null = null
  const { complete } = source
  const runLine = (line: string) =>
    Effect.flatMap(ctx.commands.run("shell.run", line), (found) =>
      found
        ? Effect.void
        : Effect.fail({ message: "no plugin here runs shell lines; ask for the command in words." }))
  const editor = yield* ctx.ui.editor({
    onPaste: attachments.paste,
    ...(complete === undefined
      ? {}
      : { mentions: (word) => Effect.map(complete(word), (paths) => paths.map((value) => ({ value }))) }),
    // To a model such a line would be words; who types it expects a shell.
    onSubmit: (content) => content.startsWith("!") ? runLine(content.slice(1)) : send(content, "steer")
  })

  yield* ctx.screens.register("chat", {
    title: "Chat",
    open: Effect.succeed({
      editor,
      body: () => {
        // On the way to another session, whose document begins below this one.
        const current = view() ?? shown
        return [
          ...welcome,
          ...ctx.slots.render(chatSlots.header),
          ...(current === undefined ? [] : asKnown(transcript.blocks(current, { expanded })))
        ]
      },
      omitted: (entries) => [
        text(
          span(
            `… ${entries} earlier entries; --full-screen shows them, /export writes them to a file`,
            { color: "muted" }
          )
        )
      ],
      above: () => {
        const current = view()
        if (current === undefined) return [text("")]
        return [
          text(""),
          activityBlock(
            isStale() ? { type: "disconnected" } : activityOf(current),
            busySince ?? now(),
            now(),
            ctx.ui.size().columns
          ),
          ...asKnown(queueBlocks(current.inbox, isBusy())),
          ...attachments.blocks(editor.text),
          ...asKnown(ctx.slots.render(chatSlots.aboveEditor))
        ]
      },
      below: () => [
        statusBlock({
          view: view(),
          status: source.conversation()?.view.status ?? "detached",
          location: source.location(),
          model: source.model?.() ?? null,
          window: source.window?.() ?? null,
          home: source.home,
          columns: ctx.ui.size().columns,
          more: ctx.slots.render(chatSlots.status)
        }),
        ...ctx.slots.render(chatSlots.footer)
      ]
    })
  })

  // -------------------------------------------------------------------------------------------------------- commands

  yield* ctx.commands.register("chat.interrupt", {
    description: "Interrupt what the model does",
    run: () => withConversation((conversation) => conversation.abort({ reason: "interrupted by the person" }))
  })
  yield* ctx.commands.register("chat.clearOrQuit", {
    description: "Clear the editor; twice: quit",
    run: () =>
      Effect.suspend(() => {
        const at = now()
        // What was typed since the first time is only cleared: whoever starts over twice does not want to leave.
        const again = editor.text() === "" && at - lastInterrupt < quitWindow
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
  yield* ctx.commands.register("app.quit", {
    slash: "quit",
    description: "Leave; the session can be continued",
    run: () => ctx.ui.quit
  })
  yield* ctx.commands.register("chat.later", {
    slash: "later",
    argument: "TEXT",
    description: "Send TEXT once the running turn has ended",
    run: (content) =>
      content === "" ? ctx.ui.notify("Say what to send: /later TEXT", "warning") : send(content, "followUp")
  })
  yield* ctx.commands.register("app.help", {
    slash: "help",
    description: "Show commands and keys",
    run: () =>
      Effect.scoped(Effect.gen(function*() {
        const commands = yield* ctx.commands.list
        const keys = yield* ctx.keybindings.list
        const body = helpBlocks(commands, keys, ctx.ui.size().columns)
        const overlay = yield* ctx.ui.overlay({ title: "Help", body: () => body, closeKeys: ["escape", "enter", "q"] })
        yield* overlay.closed
      }))
  })

  yield* editing(ctx, editor)
  yield* scrolling(ctx, editor)
  yield* keeping(ctx, { view, location: source.location, withConversation })
  yield* queueing(ctx, { conversation: source.conversation, editor, attachments, changed: viewChanged.await })
  yield* ctx.commands.register("chat.draft", {
    description: "Put a text into the editor, unless something is in it",
    run: (draft) =>
      Effect.sync(() => {
        if (editor.text().trim() === "") editor.setText(draft)
      })
  })
  yield* ctx.commands.register("chat.rewind", {
    description: "Twice: go back to before a prompt",
    run: () =>
      Effect.suspend(() => {
        const at = now()
        const again = at - lastEscape < rewindWindow
        lastEscape = again ? Number.NEGATIVE_INFINITY : at
        return again ? Effect.asVoid(ctx.commands.run("history.revert")) : Effect.void
      })
  })

  yield* ctx.keybindings.bind("escape", {
    command: "chat.rewind",
    when: () => !isBusy() && !isActive() && !editor.completing() && editor.text() === ""
  })
  yield* ctx.keybindings.bind("escape", {
    command: "chat.interrupt",
    when: () => isActive() && !editor.completing()
  })
  yield* ctx.keybindings.bind("ctrl+c", { command: "chat.clearOrQuit" })
  yield* ctx.keybindings.bind("ctrl+d", { command: "app.quit", when: () => editor.text() === "" })
  yield* ctx.keybindings.bind("ctrl+o", { command: "chat.expand" })

  // ---------------------------------------------------------------------------------------------------------- frames

  // The spinner, the seconds and the retry countdown move while a turn runs.
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(Effect.forever(Effect.andThen(
    Effect.sleep(frameMillis),
    Effect.sync(() => {
      if (isActive()) ctx.ui.redraw()
    })
  )))))

  let remembered: string | null = null
  const isOther = (before: ConversationView, after: ConversationView) =>
    before.conversation.sessionID !== after.conversation.sessionID
  /** Some entries were taken back. */
  const isRewound = (before: ConversationView, after: ConversationView) =>
    after.entries.length < before.entries.length || after.entries[0]?.id !== before.entries[0]?.id

  /** What was sent to this session before comes back with the up arrow, also after a restart. */
  const remember = (current: ConversationView) => {
    if (remembered === current.conversation.sessionID) return
    remembered = current.conversation.sessionID
    for (const sent of sentTexts(current)) editor.addToHistory(sent)
  }

  return () => {
    const current = view()
    if (current !== undefined) remember(current)
    viewChanged.openUnsafe()
    viewChanged.closeUnsafe()
    if (!isActive()) busySince = null
    else busySince ??= now()
    editor.setBorder({ color: isBusy() && !isStale() ? "accent" : "border" })
    if (shown !== undefined && shown.entries.length > 0 && current !== undefined) {
      if (isOther(shown, current)) ctx.ui.redrawAll()
      if (isOther(shown, current) || isRewound(shown, current)) ctx.ui.scroll?.("end")
    }
    if (current !== undefined) shown = current
    ctx.ui.redraw()
  }
})

const sentTexts = (view: ConversationView): ReadonlyArray<string> =>
  view.entries.filter((entry) => entry.kind === "bezel.user").slice(-100).flatMap((entry) =>
    (entry.model ?? []).flatMap((message) =>
      message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
    )
  )
