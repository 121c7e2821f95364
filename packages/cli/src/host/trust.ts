/** Asks the person at the terminal whether a project's settings may take effect, before anything of them does. */
import { Settings, Trust } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import { basename } from "node:path"
import { createInterface } from "node:readline"
import { printable } from "../run/text.ts"

/** How long nothing may have been typed before the question counts as seen. */
const pauseMillis = 150

/** Throws away what was typed before there was a question: it is no answer. */
const typedBefore: Effect.Effect<void> = Effect.callback((resume) => {
  const { stdin } = process
  const ignore = (typed: Buffer | string) => {
    if (typed.includes("\u0003")) process.kill(process.pid, "SIGINT")
    clearTimeout(timer)
    timer = setTimeout(done, pauseMillis)
  }
  const stop = () => {
    clearTimeout(timer)
    stdin.off("data", ignore)
    stdin.pause()
    stdin.setRawMode(false)
  }
  const done = () => {
    stop()
    resume(Effect.void)
  }
  let timer = setTimeout(done, pauseMillis)
  stdin.once("error", () => process.kill(process.pid, "SIGHUP"))
  stdin.setRawMode(true)
  stdin.on("data", ignore)
  stdin.resume()
  return Effect.sync(stop)
})

/** The answer to a question. Ctrl-C, Ctrl-D and a terminal that is closed leave: they end the process as their signal does. */
const question = (text: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const { stdin } = process
    const leave = (signal: NodeJS.Signals) => () => {
      stop()
      process.kill(process.pid, signal)
    }
    const gone = leave("SIGHUP")
    const interrupted = leave("SIGINT")
    // Ahead of what reads lines, which does not tell an end of input from Ctrl-D.
    stdin.once("end", gone).once("error", gone)
    const terminal = createInterface({ input: stdin, output: process.stdout })
    // It passes on what its input fails with, which is seen to above.
    terminal.on("error", () => {})
    const stop = () => {
      stdin.off("end", gone).off("error", gone)
      // Giving back a terminal that was closed fails too, and that is no news.
      stdin.on("error", () => {})
      // Only ours: what reads lines cleans up after itself at the same event, and would otherwise go on echoing keys.
      terminal.off("close", interrupted)
      terminal.close()
    }
    terminal.once("SIGINT", interrupted).once("close", interrupted)
    terminal.question(text, (answer) => {
      stop()
      resume(Effect.succeed(answer))
    })
    return Effect.sync(stop)
  })

/** Asks until the answer is one. */
const isConfirmed = (text: string): Effect.Effect<boolean> =>
  Effect.flatMap(question(text), (answer) =>
    /^\s*y(es)?\s*$/i.test(answer)
      ? Effect.succeed(true)
      : /^\s*(no?)?\s*$/i.test(answer)
      ? Effect.succeed(false)
      : isConfirmed("Please answer y or n, or press Ctrl-C to leave. [y/N] "))

/**
 * Whether trust was given just now. Does nothing where there is nothing to trust, or where it is trusted as it is. A no lasts
 * for this run.
 */
export const askForTrust = Effect.fn("askForTrust")(function*(directory: string) {
  const trust = yield* Trust
  const status = yield* trust.status(directory)
  if (status.status !== "untrusted" && status.status !== "changed") return false
  const { skipped } = yield* Effect.flatMap(Settings, ({ forLocation }) => forLocation(directory))
  const onlyHarmless = skipped.length === 0 && status.sets.every((item) => item.keys.length > 0)
  if (onlyHarmless) return false
  const lines = status.sets.map((item) =>
    `  ${item.file}: ${item.keys.length === 0 ? basename(item.file) : item.keys.join(", ")}`
  )
  yield* typedBefore
  const confirmed = yield* isConfirmed(printable(
    `${
      status.status === "changed"
        ? "The settings of this project have changed since you trusted it"
        : "This project brings settings of its own"
    }:\n` +
      `${lines.join("\n")}\n` +
      "They can run programs and choose where your prompts are sent. Trust them? [y/N] "
  ))
  if (confirmed) yield* trust.grant(directory, status.hash)
  return confirmed
})
