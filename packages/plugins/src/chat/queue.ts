/**
 * The prompts that wait: the list of them, one taken back into the editor, moved between the next step and later, or removed.
 *
 * A prompt that is changed leaves the queue first, so that the model never gets it half corrected, and comes to its end when
 * it is sent again. The model may be quicker: then nothing is taken, and the person is told. Its text is never in neither
 * place: where it is not known whether it left the queue, it is put into the editor all the same, and that is said.
 */
import type { ViewInput } from "@bezel/core/harness"
import type { FilePart } from "@bezel/core/model"
import { type EditorHandle, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import type { Attachments } from "./attachments.ts"
import type { ChatConversation } from "./screen.ts"

interface QueueParts {
  readonly conversation: () => ChatConversation | null
  readonly editor: EditorHandle
  readonly attachments: Attachments
  /** Completes once the view is another one. */
  readonly changed: Effect.Effect<void>
}

interface Content {
  readonly text: string
  readonly files: ReadonlyArray<FilePart>
}

type Way = Exclude<ViewInput["whenBusy"], "reject">

const ways: { readonly [way in ViewInput["whenBusy"]]: string } = { steer: "next", followUp: "later", reject: "now" }

const oneLine = (words: string): string => words.replace(/\s+/g, " ").trim()

const taken = "The model has it already; nothing was changed."
const ended = "It waits no longer: the model has it, or somebody took it back."

/** Registers the commands and their keys. */
export const queueing = Effect.fnUntraced(function*(ctx: TuiContext, parts: QueueParts) {
  const { attachments, editor } = parts

  /** Puts a prompt before what is in the editor. */
  const toEditor = (way: Way, content: Content): void => {
    const typed = editor.text()
    const again = attachments.again(content.text, content.files)
    const whole = typed.trim() === "" ? again : `${again}\n${typed}`
    editor.setText(way === "followUp" ? `/later ${whole}` : whole)
  }

  const wayOf = (input: ViewInput): Way => input.whenBusy === "followUp" ? "followUp" : "steer"

  /** Takes an input out of the queue; `use` gets what it was. */
  const takeOut = (
    conversation: ChatConversation,
    input: ViewInput,
    use: (content: Content) => Effect.Effect<void, { readonly message: string }>
  ) =>
    Effect.gen(function*() {
      const content = yield* conversation.inputContent({ inputID: input.id })
      const became = yield* conversation.inputAbort({ inputID: input.id }).pipe(
        Effect.tapError(({ message }) =>
          Effect.suspend(() => {
            toEditor(wayOf(input), content)
            return ctx.ui.notify(`It may wait still: ${message} Its text is in the editor.`, "warning")
          })
        )
      )
      return yield* became === "aborted"
        ? use(content)
        : ctx.ui.notify(became === "already_placed" ? taken : ended, "warning")
    })

  const edit = (conversation: ChatConversation, input: ViewInput) =>
    takeOut(conversation, input, (content) => Effect.sync(() => toEditor(wayOf(input), content)))

  const move = (conversation: ChatConversation, input: ViewInput, way: Way) =>
    takeOut(conversation, input, (content) =>
      Effect.asVoid(conversation.send({
        text: content.text,
        whenBusy: way,
        requestID: globalThis.crypto.randomUUID(),
        ...(content.files.length === 0 ? {} : { files: content.files })
      })).pipe(Effect.tapError(() => Effect.sync(() => toEditor(way, content)))))

  const remove = (conversation: ChatConversation, input: ViewInput) =>
    takeOut(conversation, input, (content) =>
      Effect.suspend(() => {
        const again = attachments.again(content.text, content.files)
        editor.addToHistory(again)
        return ctx.ui.notify("It waits no longer; the up arrow in an empty editor brings it back.")
      }))

  const waiting = (): ReadonlyArray<ViewInput> => parts.conversation()?.view.value?.inbox ?? []

  /** Completes once this input waits no longer. */
  const gone = (inputID: string): Effect.Effect<void> =>
    Effect.suspend(() =>
      waiting().some(({ id }) => id === inputID) ? Effect.andThen(parts.changed, gone(inputID)) : Effect.void
    )

  const change = (conversation: ChatConversation, input: ViewInput) =>
    Effect.gen(function*() {
      const other: Way = wayOf(input) === "steer" ? "followUp" : "steer"
      const wish = yield* Effect.raceFirst(
        ctx.ui.select<"edit" | "move" | "remove">({
          title: wayOf(input) === "steer" ? "Waits for the model's next step" : "Waits for the end of the turn",
          body: [text(span(oneLine(input.text).slice(0, 1_000), { color: "code" }), { indent: 2 })],
          options: [
            { value: "edit", label: "Edit it", description: "it leaves the queue until it is sent again" },
            {
              value: "move",
              label: other === "steer" ? "Send it at the next step" : "Send it once the turn has ended"
            },
            { value: "remove", label: "Remove it" }
          ]
        }),
        Effect.as(gone(input.id), "gone" as const)
      )
      if (wish === null) return
      if (wish === "gone") return yield* ctx.ui.notify(ended, "warning")
      yield* wish === "edit"
        ? edit(conversation, input)
        : wish === "move"
        ? move(conversation, input, other)
        : remove(conversation, input)
    })

  yield* ctx.commands.register("chat.queue", {
    slash: "queue",
    description: "Show the prompts that wait; edit, move or remove one",
    run: () =>
      Effect.suspend(() => {
        const conversation = parts.conversation()
        const inputs = waiting()
        if (conversation === null || inputs.length === 0) return ctx.ui.notify("No prompt waits.")
        return Effect.flatMap(
          ctx.ui.select({
            title: "Prompts that wait",
            options: inputs.map((input) => ({
              value: input,
              label: `${ways[input.whenBusy].padEnd(5)} ${oneLine(input.text)}`
            }))
          }),
          (input) => input === null ? Effect.void : change(conversation, input)
        )
      })
  })
  yield* ctx.keybindings.bind("alt+q", { command: "chat.queue" })

  yield* ctx.commands.register("chat.takeBack", {
    description: "Take the newest prompt that waits back into the editor",
    run: () =>
      Effect.suspend(() => {
        const conversation = parts.conversation()
        const newest = waiting().at(-1)
        return conversation === null || newest === undefined
          ? ctx.ui.notify("No prompt waits.")
          : edit(conversation, newest)
      })
  })
  yield* ctx.keybindings.bind("alt+up", { command: "chat.takeBack" })
})
