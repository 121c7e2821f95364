/**
 * Scrolling the transcript on the full screen, as commands: page up and down, to the beginning and back to the end.
 *
 * Where the transcript scrolls away into the terminal's own history there is nothing to scroll here, and no key is taken.
 */
import type { EditorHandle, ScrollTarget, TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"

const commands: ReadonlyArray<readonly [id: string, description: string, to: ScrollTarget]> = [
  ["transcript.pageUp", "A screenful back", "pageUp"],
  ["transcript.pageDown", "A screenful on", "pageDown"],
  ["transcript.lineUp", "A line back", { rows: -1 }],
  ["transcript.lineDown", "A line on", { rows: 1 }],
  ["transcript.top", "To the beginning", "top"],
  ["transcript.end", "To the newest, and follow it", "end"]
]

/** Keys that are the editor's as long as something is in it are taken only while nothing is. */
const keys: ReadonlyArray<readonly [key: string, command: string, isEditors: boolean]> = [
  ["pageUp", "transcript.pageUp", false],
  ["pageDown", "transcript.pageDown", false],
  ["ctrl+home", "transcript.top", false],
  ["ctrl+end", "transcript.end", false],
  ["home", "transcript.top", true],
  ["end", "transcript.end", true]
]

/** Registers the commands, and on the full screen their keys. */
export const scrolling = Effect.fnUntraced(function*(ctx: TuiContext, editor: EditorHandle) {
  const { scroll } = ctx.ui
  for (const [id, description, to] of commands) {
    yield* ctx.commands.register(id, {
      description,
      run: () =>
        scroll === null
          ? ctx.ui.notify("The terminal itself scrolls here; bezel --full-screen does without its history.")
          : Effect.sync(() => scroll(to))
    })
  }
  if (scroll === null) return
  for (const [key, command, isEditors] of keys) {
    yield* ctx.keybindings.bind(key, { command, ...(isEditors ? { when: () => editor.text() === "" } : {}) })
  }
})
