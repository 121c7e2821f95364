/**
 * The terminal facet of history: `/undo`, `/revert` and `/redo`, each with what it would do to files shown before it does it,
 * and how such a step looks in the transcript.
 */
import type { Conversation } from "@bezel/core/host/contract"
import type { Facade } from "@bezel/core/service"
import type { RevertReport } from "@bezel/core/session"
import { type Block, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { currentConversation } from "../chat/current.ts"
import { textOf, turnStarts } from "./turn-starts.ts"

type Shown = Facade<Conversation>

const verbs = { change: "changed back", create: "made again", remove: "removed" } as const

const oneLine = (text: string, room: number): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > room ? `${line.slice(0, room - 1)}…` : line
}

const count = (number: number, one: string): string => `${number} ${one}${number === 1 ? "" : "s"}`

const diffLine = (line: string): Block => {
  const color = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "muted"
  return text(span(line, { color }), { wrap: "clip", indent: 2 })
}

/** The files with their diffs, in so many rows; what does not fit is counted. */
export const reportBlocks = (report: RevertReport, rows: number): ReadonlyArray<Block> => {
  const blocks: Array<Block> = [text(span(`› ${oneLine(report.prompt, 200)}`, { color: "user" }), { wrap: "clip" })]
  for (const { path, reason } of report.conflicts) {
    blocks.push(text([span(path, { color: "warning" }), span(`  ${reason}`, { color: "muted" })]))
  }
  for (const note of report.notes) blocks.push(text(span(note, { color: "muted" })))
  for (const { action, diff, path } of report.files) {
    blocks.push(text([span(path, { bold: true }), span(`  ${verbs[action]}`, { color: "muted" })], { wrap: "clip" }))
    const lines = (diff ?? "").trimEnd().split("\n").filter((line) => line !== "" && !/^(---|\+\+\+) /.test(line))
    blocks.push(...lines.map(diffLine))
  }
  if (report.files.length === 0) blocks.push(text(span("No file is changed by it.", { color: "muted" })))
  if (blocks.length <= rows) return blocks
  return [
    ...blocks.slice(0, rows),
    text(span(`… ${count(blocks.length - rows, "more line")}; ${count(report.files.length, "file")} in all`, {
      color: "muted"
    }))
  ]
}

/** The terminal facet. */
export const tui = Effect.fn("history/tui")(function*(ctx: TuiContext) {
  const current = yield* currentConversation(ctx)

  const withConversation = (run: (conversation: Shown) => Effect.Effect<void, { readonly message: string }>) =>
    Effect.suspend(() => {
      const conversation = current()
      return conversation === null
        ? ctx.ui.notify("There is no conversation yet.", "warning")
        : Effect.catch(run(conversation), (error) => ctx.ui.notify(error.message, "error"))
    })

  /** Shows what would be done, asks, and does it; `null` where the person does not want it. */
  const confirmed = Effect.fnUntraced(function*(
    title: string,
    step: (how: {
      readonly dryRun?: boolean
      readonly conflicts?: "keep"
    }) => Effect.Effect<RevertReport, { readonly message: string }>
  ) {
    const planned = yield* step({ dryRun: true })
    const { conflicts } = planned
    const agreed = yield* ctx.ui.confirm({
      title: conflicts.length === 0
        ? title
        : `${title} ${count(conflicts.length, "file")} changed by others would stay as ${
          conflicts.length === 1 ? "it is" : "they are"
        }.`,
      body: reportBlocks(planned, Math.max(3, ctx.ui.size().rows - 12))
    })
    if (!agreed) return null
    return yield* step(conflicts.length === 0 ? {} : { conflicts: "keep" })
  })

  const stage = (conversation: Shown, to: string) =>
    Effect.gen(function*() {
      const done = yield* confirmed("Take this back?", (how) => conversation.revert({ to, ...how }))
      if (done === null) return
      if (done.status === "conflict") {
        return yield* ctx.ui.notify("A file has been changed meanwhile; nothing was taken back.", "warning")
      }
      // What was asked comes back to be asked in other words; without a chat there is no editor for it.
      yield* ctx.commands.run("chat.draft", done.prompt)
      yield* ctx.ui.notify(`Taken back, with ${count(done.files.length, "file")}. /redo brings it back.`)
    })

  const choose = (conversation: Shown) =>
    Effect.gen(function*() {
      const starts = turnStarts(conversation.view.value?.entries ?? []).toReversed()
      if (starts.length === 0) return yield* ctx.ui.notify("There is nothing to take back yet.", "warning")
      const to = yield* ctx.ui.select({
        title: "Go back to before which prompt?",
        options: starts.map((entry) => ({ value: entry.id, label: oneLine(textOf(entry), 100) || "(no text)" }))
      })
      if (to !== null) yield* stage(conversation, to)
    })

  yield* ctx.commands.register("history.undo", {
    slash: "undo",
    description: "Take back the last turn, with what it did to files",
    run: () => withConversation((conversation) => stage(conversation, "last"))
  })
  yield* ctx.commands.register("history.revert", {
    slash: "revert",
    description: "Go back to before a prompt, with what was done to files since",
    run: () => withConversation(choose)
  })
  yield* ctx.commands.register("history.redo", {
    slash: "redo",
    description: "Bring back what was taken back",
    run: () =>
      withConversation((conversation) =>
        Effect.gen(function*() {
          const done = yield* confirmed("Bring this back?", (how) => conversation.revertClear(how))
          if (done === null) return
          yield* done.status === "conflict"
            ? ctx.ui.notify("A file has been changed meanwhile; nothing was brought back.", "warning")
            : ctx.ui.notify(`Brought back, with ${count(done.files.length, "file")}.`)
        })
      )
  })
  yield* ctx.entryRenderers.register("bezel.rewind", ({ data }) => {
    const files = field(data, "files")
    const prompt = field(data, "prompt")
    return typeof prompt !== "string"
      ? []
      : [text(
        span(
          `↶ taken back: ${oneLine(prompt, 60)}${
            typeof files === "number" && files > 0 ? `, ${count(files, "file")}` : ""
          }`,
          { color: "muted" }
        ),
        { wrap: "clip" }
      )]
  })
})

const field = (data: unknown, name: string): unknown =>
  data !== null && typeof data === "object" ? Reflect.get(data, name) : undefined
