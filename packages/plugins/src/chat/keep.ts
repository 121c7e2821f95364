/**
 * `/copy` and `/export`: the last answer into the clipboard, the conversation into a file of Markdown.
 *
 * Both are the person's commands and happen where the terminal is, also when the session runs elsewhere. A file that is
 * there already is never written over.
 */
import type { ConversationView } from "@bezel/core/harness"
import { standingEntries } from "@bezel/core/host/contract"
import type { AssistantMessage, Message } from "@bezel/core/model"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import type { ChatConversation } from "./screen.ts"

const wordsOf = (content: AssistantMessage["content"]): string =>
  content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n\n").trim()

/** The words of the newest answer that has any; `null` when there is none. */
export const lastAnswer = (view: ConversationView): string | null => {
  for (const entry of view.entries.toReversed()) {
    for (const message of (entry.model ?? []).toReversed()) {
      if (message.role === "assistant" && wordsOf(message.content) !== "") return wordsOf(message.content)
    }
  }
  return null
}

/** A fence that what stands inside it cannot close. */
const fenced = (language: string, content: string): string => {
  const longest = Math.max(2, ...[...content.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${content.replace(/\n$/, "")}\n${fence}`
}

const headings = new Map([["bezel.user", "Prompt"], ["bezel.summary", "Summary of what came before"]])

const messageText = (kind: string, message: Message): ReadonlyArray<string> => {
  switch (message.role) {
    case "user":
      return [
        `## ${headings.get(kind) ?? "Notice"}\n\n${
          message.content.map((part) => part.type === "text" ? part.text : `[${part.fileName ?? part.mediaType}]`).join(
            "\n\n"
          )
        }`
      ]
    case "assistant":
      return message.content.flatMap((part) =>
        part.type === "text"
          ? part.text.trim() === "" ? [] : [`## Answer\n\n${part.text.trim()}`]
          : part.type === "tool-call"
          ? [`### Call of ${part.name}\n\n${fenced("json", JSON.stringify(part.params, null, 2))}`]
          : []
      )
    case "tool":
      return message.content.map((part) =>
        `### ${part.isFailure ? "Error" : "Result"} of ${part.name}\n\n${
          fenced("", typeof part.result === "string" ? part.result : JSON.stringify(part.result, null, 2))
        }`
      )
    case "system":
      return []
  }
}

type Entry = Effect.Success<ReturnType<ChatConversation["entries"]>>[number]

const markdownOf = (sessionID: string, entries: ReadonlyArray<Entry>): string =>
  `${
    [
      `# Session ${sessionID}`,
      ...standingEntries(entries).flatMap(({ kind, model }) =>
        (model ?? []).flatMap((message) => messageText(kind, message))
      )
    ].join("\n\n")
  }\n`

const pageSize = 100

const entriesOf = Effect.fnUntraced(function*(conversation: Pick<ChatConversation, "entries">) {
  const all: Array<Entry> = []
  for (;;) {
    const last = all.at(-1)
    const page = yield* conversation.entries({
      limit: pageSize,
      ...(last === undefined ? {} : { after: last.ordinal })
    })
    all.push(...page)
    if (page.length < pageSize) return all
  }
})

/** What the commands need of the chat. */
export interface Kept {
  readonly view: () => ConversationView | undefined
  readonly location: () => string | null
  readonly withConversation: <A, E>(
    use: (conversation: ChatConversation) => Effect.Effect<A, E>
  ) => Effect.Effect<void, E | { readonly message: string }>
}

const failure = (file: string, error: unknown): { readonly message: string } => ({
  message: typeof error === "object" && error !== null && "code" in error && error.code === "EEXIST"
    ? `${file} is there already; give another name: /export FILE`
    : typeof error === "object" && error !== null && "code" in error && error.code === "ENOENT"
    ? `${file} could not be written: its folder does not exist`
    : `${file} could not be written: ${error instanceof Error ? error.message : String(error)}`
})

/** Registers both commands. A relative file is of the session's folder where that is here, of the current one otherwise. */
export const keeping = Effect.fnUntraced(function*(ctx: TuiContext, { location, view, withConversation }: Kept) {
  yield* ctx.commands.register("chat.copy", {
    slash: "copy",
    description: "Put the last answer into the clipboard",
    run: () =>
      Effect.gen(function*() {
        const current = view()
        const answer = current === undefined ? null : lastAnswer(current)
        if (answer === null) return yield* ctx.ui.notify("There is no answer yet.", "warning")
        yield* (yield* ctx.ui.copy(answer))
          ? ctx.ui.notify("The last answer went to the clipboard, if this terminal allows it.")
          : ctx.ui.notify("The answer is too long for a terminal's clipboard; /export writes a file.", "warning")
      })
  })
  yield* ctx.commands.register("chat.export", {
    slash: "export",
    argument: "[FILE]",
    description: "Write the conversation to a file of Markdown",
    run: (wish) =>
      Effect.gen(function*() {
        const current = view()
        if (current === undefined) return yield* ctx.ui.notify("There is no conversation yet.", "warning")
        const name = wish === "" ? `${current.conversation.sessionID}.md` : wish
        const file = resolve(location() ?? process.cwd(), name)
        yield* withConversation((conversation) =>
          Effect.gen(function*() {
            const text = markdownOf(current.conversation.sessionID, yield* entriesOf(conversation))
            yield* Effect.tryPromise({
              try: () => writeFile(file, text, { flag: "wx", mode: 0o600 }),
              catch: (error) => failure(file, error)
            })
            yield* ctx.ui.notify(`Written to ${file}`)
          })
        )
      })
  })
})
