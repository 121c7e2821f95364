/** The terminal facet of shell lines: runs them, shows what they print while they run, and what they left in the transcript. */
import { type Block, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { chatSlots } from "../chat/contract.ts"
import { Shell, shellEntry, ShellLine } from "./contract.ts"

/** Rows of output that are shown, at most. */
const shownRows = 12

const decode = Schema.decodeUnknownOption(ShellLine)

const rows = (output: string): ReadonlyArray<Block> => {
  const all = output.replace(/\n$/, "").split("\n")
  const shown = all.slice(-shownRows)
  return [
    ...(all.length > shown.length
      ? [text(span(`${all.length - shown.length} lines above`, { color: "muted" }), { indent: 2 })]
      : []),
    ...shown.map((line) => text(line, { indent: 2, wrap: "clip" }))
  ]
}

const titled = (command: string): Block =>
  text([span("! ", { color: "accent", bold: true }), command], { wrap: "clip" })

/** How a line in the transcript shows. */
export const lineBlocks = (data: unknown): ReadonlyArray<Block> => {
  const line = Option.getOrNull(decode(data))
  if (line === null) return []
  const { command, exitCode, output } = line
  return [
    titled(command),
    ...(output === "" ? [] : rows(output)),
    ...(exitCode === 0
      ? []
      : [
        text(span(exitCode === null ? "stopped" : `exit code ${exitCode}`, { color: "warning" }), { indent: 2 })
      ])
  ]
}

/** The terminal facet. */
export const tui = Effect.fn("shell/tui")(function*(ctx: TuiContext) {
  const shell = yield* ctx.use(Shell)
  // What is shown is a demand for the state; a frame only reads it.
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(Effect.ignoreCause(
    shell.running.forEach(() => Effect.sync(ctx.ui.redraw))
  ))))
  yield* ctx.entryRenderers.register(shellEntry, ({ data }) => lineBlocks(data))
  yield* ctx.slots.add(chatSlots.aboveEditor, {
    order: 10,
    render: () => {
      const running = shell.running.value ?? null
      return running === null ? [] : [titled(running.command), ...(running.tail === "" ? [] : rows(running.tail))]
    }
  })
  yield* ctx.commands.register("shell.run", {
    description: "Run a line in the shell: !LINE, or !!LINE to keep it from the model",
    run: (written) =>
      Effect.gen(function*() {
        const isShared = !written.startsWith("!")
        const command = (isShared ? written : written.slice(1)).trim()
        if (command === "") return yield* ctx.ui.notify("Say what to run: !LINE", "warning")
        yield* shell.run({ command, shared: isShared })
      })
  })
  yield* ctx.commands.register("shell.stop", {
    description: "Stop the shell line that runs",
    run: () => shell.stop()
  })
  yield* ctx.keybindings.bind("escape", {
    command: "shell.stop",
    when: () => (shell.running.value ?? null) !== null
  })
})
