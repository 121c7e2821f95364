/**
 * `ctrl+g`: the text of the prompt in the person's own editor, `$VISUAL` or `$EDITOR`.
 *
 * The text goes through a file that only its owner can read, in a folder of its own; both are gone afterwards, however that
 * ended. The editor has the terminal meanwhile. An editor that fails leaves the prompt as it was.
 */
import type { EditorHandle, TuiContext } from "@bezel/tui"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

class EditorFailed extends Data.TaggedError("EditorFailed")<{ readonly message: string }> {}

const failed = (error: unknown) => new EditorFailed({ message: error instanceof Error ? error.message : String(error) })

/** Runs a command line of the person's, as their shell would, and waits for its end. */
const runEditor = (command: string, file: string): Effect.Effect<void, EditorFailed> =>
  Effect.callback((resume) => {
    const child = spawn("/bin/sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit" })
    child.once("error", (error) => resume(Effect.fail(failed(error))))
    child.once("close", (code, signal) =>
      resume(
        code === 0
          ? Effect.void
          : Effect.fail(new EditorFailed({ message: `${command} ended with ${signal ?? `code ${code}`}` }))
      ))
    return Effect.sync(() => {
      child.kill()
    })
  })

/**
 * Has the prompt edited, and takes what comes back without the line break at its end that editors add. The terminal is away for all of it, the files too:
 * what is typed before it goes is in the text that the editor gets, and what is typed after it came back goes into the text that the editor left.
 */
const editOutside = (
  ui: Pick<TuiContext["ui"], "outside">,
  command: string,
  prompt: EditorHandle
): Effect.Effect<void, EditorFailed> =>
  ui.outside(Effect.acquireUseRelease(
    Effect.tryPromise({ try: () => mkdtemp(join(tmpdir(), "bezel-prompt-")), catch: failed }),
    (folder) =>
      Effect.gen(function*() {
        const file = join(folder, "prompt.md")
        yield* Effect.tryPromise({ try: () => writeFile(file, prompt.text(), { mode: 0o600 }), catch: failed })
        yield* runEditor(command, file)
        const edited = yield* Effect.tryPromise({ try: () => readFile(file, "utf8"), catch: failed })
        prompt.setText(edited.replace(/\r?\n$/, ""))
      }),
    (folder) => Effect.ignore(Effect.tryPromise(() => rm(folder, { recursive: true, force: true })))
  ))

/** Registers the command and its key. */
export const editing = Effect.fnUntraced(function*(ctx: TuiContext, editor: EditorHandle) {
  yield* ctx.commands.register("chat.editOutside", {
    description: "Write the prompt in $VISUAL or $EDITOR",
    run: () =>
      Effect.suspend(() => {
        const command = [process.env["VISUAL"], process.env["EDITOR"]].find((name) => (name ?? "").trim() !== "")
        if (command === undefined) {
          return ctx.ui.notify("No editor is set: set VISUAL or EDITOR to the command that starts yours.", "warning")
        }
        return editOutside(ctx.ui, command, editor)
      })
  })
  yield* ctx.keybindings.bind("ctrl+g", { command: "chat.editOutside" })
})
