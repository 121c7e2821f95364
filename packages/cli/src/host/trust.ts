/** Asks the person at the terminal whether a project's settings may take effect, before anything of them does. */
import { Settings, Trust } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import { basename } from "node:path"
import { createInterface } from "node:readline/promises"
import { printable } from "../run/text.ts"

const question = (text: string): Effect.Effect<string> =>
  Effect.promise((signal) => {
    const terminal = createInterface({ input: process.stdin, output: process.stdout })
    return terminal.question(text, { signal }).catch(() => "").finally(() => terminal.close())
  })

/** Does nothing where there is nothing to trust, or where it is trusted as it is. A no lasts for this run. */
export const askForTrust = Effect.fn("askForTrust")(function*(directory: string) {
  const trust = yield* Trust
  const status = yield* trust.status(directory)
  if (status.status !== "untrusted" && status.status !== "changed") return
  const { skipped } = yield* Effect.flatMap(Settings, ({ forLocation }) => forLocation(directory))
  const onlyHarmless = skipped.length === 0 && status.sets.every((item) => item.keys.length > 0)
  if (onlyHarmless) return
  const lines = status.sets.map((item) =>
    `  ${item.file}: ${item.keys.length === 0 ? basename(item.file) : item.keys.join(", ")}`
  )
  const answer = yield* question(printable(
    `${
      status.status === "changed"
        ? "The settings of this project have changed since you trusted it"
        : "This project brings settings of its own"
    }:\n` +
      `${lines.join("\n")}\n` +
      "They can run programs and choose where your prompts are sent. Trust them? [y/N] "
  ))
  if (/^y(es)?$/i.test(answer.trim())) yield* trust.grant(directory, status.hash)
})
