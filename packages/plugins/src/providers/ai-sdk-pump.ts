/**
 * Reads a package's stream ahead, in plain promises, and hands over what has come in batches.
 *
 * A hot path: one fiber step per delta would cost more than the delta. Whoever takes gets everything that arrived in the same
 * turn of the event loop, in order; the pump stops reading while `capacity` parts wait, which is the back-pressure on the
 * provider. It never rejects: a fault or a failed read is what it ends with.
 */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import type { ModelPart } from "@bezel/core/model"
import type { StreamFault, Translator } from "./ai-sdk-stream.ts"

/** Parts that wait for whoever takes them before reading stops. */
const capacity = 1_000

export type PumpEnd = { readonly finished: true } | { readonly fault: StreamFault } | { readonly failed: unknown }

export interface Pump {
  /** What has come since the last time, at least one part, or how the stream ended once all parts were taken. */
  readonly take: () => Promise<ReadonlyArray<ModelPart> | PumpEnd>
}

export const makePump = (
  reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
  translator: Translator
): Pump => {
  let parts: Array<ModelPart> = []
  let end: PumpEnd | null = null
  let taker: (() => void) | null = null
  let resume: (() => void) | null = null
  let waking = false

  // At the end of this turn of the event loop, so that what has already arrived comes along.
  const wake = (): void => {
    if (waking || taker === null) return
    waking = true
    setImmediate(() => {
      waking = false
      const waiting = taker
      taker = null
      waiting?.()
    })
  }

  const read = async (): Promise<PumpEnd> => {
    while (!translator.finished()) {
      if (parts.length >= capacity) {
        await new Promise<void>((resolve) => {
          resume = resolve
        })
      }
      const next = await reader.read()
      const fault = next.done ? translator.cut() : translator.push(next.value, parts)
      if (fault !== null) return { fault }
      if (parts.length > 0) wake()
    }
    return { finished: true }
  }

  const settle = (ended: PumpEnd): void => {
    end = ended
    wake()
  }
  read().then(settle, (failed: unknown) => settle({ failed }))

  return {
    take: async () => {
      if (parts.length === 0 && end === null) {
        await new Promise<void>((resolve) => {
          taker = resolve
        })
      }
      if (parts.length === 0 && end !== null) return end
      const taken = parts
      parts = []
      resume?.()
      resume = null
      return taken
    }
  }
}
