import * as Effect from "effect/Effect"

/** Goes on as soon as a condition holds, without letting a fixed time pass; dies if it never does. */
export const eventually = (
  holds: () => boolean | Promise<boolean>,
  what: string = String(holds)
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const giveUp = performance.now() + 10_000
    while (!await holds()) {
      if (performance.now() > giveUp) throw new Error(`what the test waits for did not happen within 10 s: ${what}`)
      await new Promise((resolve) => setImmediate(resolve))
    }
  })

/** Lets everything run that can run without time passing: for what must not happen. */
export const drained: Effect.Effect<void> = Effect.promise(async () => {
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
})
