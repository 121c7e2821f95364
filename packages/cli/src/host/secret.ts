/** Reads a secret: on a terminal a line that is not shown, else all of stdin. */
import * as Effect from "effect/Effect"
import { createInterface } from "node:readline"
import { Writable } from "node:stream"
import { Exit, exitCode } from "../exit.ts"

/** Characters; no key is that long. */
const maxLength = 16 * 1024

const tooLong = () => new Exit(exitCode.usage, "What came on stdin is too long for a key.")

/** Fails if it is longer than any key; ends with the signal if a person leaves with Ctrl-C. */
export const readSecret = (prompt: string): Effect.Effect<string, Exit> =>
  Effect.suspend(() => process.stdin.isTTY ? fromTerminal(prompt) : fromPipe)

const fromTerminal = (prompt: string): Effect.Effect<string, Exit> =>
  Effect.callback<string, Exit>((resume) => {
    // What is typed is shown nowhere.
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
    const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 })
    // Only now: the terminal would still show what somebody pastes as soon as they read this.
    process.stderr.write(prompt)
    const ended = () => resume(Effect.succeed(""))
    lines.once("line", (line) => {
      lines.off("close", ended)
      lines.close()
      process.stderr.write("\n")
      resume(line.length > maxLength ? Effect.fail(tooLong()) : Effect.succeed(line))
    })
    lines.once("SIGINT", () => process.kill(process.pid, "SIGINT"))
    // The input has ended: what was not entered does not count.
    lines.once("close", ended)
    return Effect.sync(() => {
      lines.off("close", ended)
      lines.close()
      process.stderr.write("\n")
    })
  })

const fromPipe: Effect.Effect<string, Exit> = Effect.tryPromise({
  try: async () => {
    let text = ""
    process.stdin.setEncoding("utf8")
    for await (const chunk of process.stdin) {
      text += String(chunk)
      if (text.length > maxLength) throw tooLong()
    }
    return text
  },
  catch: (error) => error instanceof Exit ? error : new Exit(exitCode.usage, "The key cannot be read from stdin.")
})
