/** What waits for a slow subscriber: joined, bounded, and given up for a fresh start. */
import type { Operation } from "@bezel/core/json"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Outbox, type OutboxLimits, unlimited } from "../../../packages/core/src/rpc/outbox.ts"
import { type Waiting, waiting, waitingDelta } from "../../../packages/core/src/rpc/waiting.ts"

const cause = (spanId: string) => ({ traceId: "t", spanId, sampled: true })

const delta = (
  sequence: number,
  operations: ReadonlyArray<Operation>,
  options: { readonly instance?: number; readonly member?: string; readonly span?: string } = {}
): Waiting => {
  const delivery = { sequence, cause: options.span === undefined ? null : cause(options.span) }
  return waitingDelta(options.instance ?? 1, options.member ?? "doc", delivery, () => operations) ?? waiting({
    type: "absent",
    reason: "unavailable"
  })
}

const append = (sequence: number, text: string, options: Parameters<typeof delta>[2] = {}) =>
  delta(sequence, [["append", ["text"], text]], options)

const filled = (items: ReadonlyArray<Waiting>, limits: OutboxLimits = unlimited) => {
  const outbox = new Outbox(limits, () => [waiting({ type: "absent", reason: "unavailable" })])
  for (const item of items) outbox.push(item)
  return outbox
}

const leaving = (items: ReadonlyArray<Waiting>, limits?: OutboxLimits) =>
  Effect.map(filled(items, limits).batch, (batch) => batch.map(({ text }) => JSON.parse(text)))

describe("appends that wait", () => {
  it.effect("to one place become one delivery that says of how many it is", () =>
    Effect.gen(function*() {
      expect(yield* leaving([append(5, "a"), append(6, "b"), append(7, "c")])).toEqual([
        { type: "delta", instance: 1, member: "doc", sequence: 7, count: 3, operations: [["append", ["text"], "abc"]] }
      ])
    }))

  it.effect("are the same for every other client, whatever one of them is given joined", () =>
    Effect.gen(function*() {
      const [one, two, three] = [append(1, "a"), append(2, "b"), append(3, "c")]
      expect((yield* leaving([one, two]))[0].operations).toEqual([["append", ["text"], "ab"]])
      expect((yield* leaving([two, three]))[0].operations).toEqual([["append", ["text"], "bc"]])
      expect((yield* leaving([one]))[0]).toMatchObject({ sequence: 1, operations: [["append", ["text"], "a"]] })
    }))

  it.effect("stay apart over a gap, in another place, member, instance or cause, and around anything else", () =>
    Effect.gen(function*() {
      const apart: ReadonlyArray<readonly [Waiting, Waiting]> = [
        [append(1, "a"), append(3, "b")],
        [append(1, "a"), append(1, "b")],
        [append(1, "a"), delta(2, [["append", ["other"], "b"]])],
        [append(1, "a"), delta(2, [["append", ["text", 0], "b"]])],
        [append(1, "a"), append(2, "b", { member: "other" })],
        [append(1, "a"), append(2, "b", { instance: 2 })],
        [append(1, "a", { span: "x" }), append(2, "b", { span: "y" })],
        [append(1, "a", { span: "x" }), append(2, "b")],
        [append(1, "a"), delta(2, [["set", ["text"], "b"]])],
        [append(1, "a"), delta(2, [["append", ["text"], "b"], ["append", ["text"], "c"]])]
      ]
      for (const pair of apart) expect(yield* leaving(pair)).toHaveLength(2)
      expect(yield* leaving([append(1, "a", { span: "x" }), append(2, "b", { span: "x" })])).toHaveLength(1)
    }))
})

describe("100,000 updates of 2 kB to one who never reads", () => {
  const limits: OutboxLimits = { items: 1_024, characters: 1_048_576 }
  const updates = 100_000
  const text = (index: number) => `${index}`.padEnd(2_048, "x")
  const other = (index: number) => delta(index, [["set", ["text"], text(index)]])

  it.effect.each([["that are joined", append], ["that are not", other]] as const)(
    "%s are bounded by bytes, and end in one fresh start",
    ([, update]) =>
      Effect.gen(function*() {
        const idle = new Outbox(limits, () => [waiting({ type: "absent", reason: "unavailable" })])
        const reader = new Outbox(limits, () => [waiting({ type: "absent", reason: "unavailable" })])
        let most = 0
        let read = 0
        for (let index = 1; index <= updates; index++) {
          const item = update(index, text(index))
          idle.push(item)
          reader.push(item)
          most = Math.max(most, idle.size)
          if (index % 100 !== 0) continue
          for (const { text } of yield* reader.batch) read += JSON.parse(text).count ?? 1
        }
        expect(most).toBeLessThanOrEqual(limits.characters / 2_048)
        expect((yield* idle.batch).map(({ text }) => JSON.parse(text).type)).toEqual(["absent"])
        // Whoever reads has had all of them, one by one.
        expect(read).toBe(updates)
      })
  )

  it.effect("of which nothing can be begun anew keep the newest that fit", () =>
    Effect.gen(function*() {
      const events = new Outbox(limits, null)
      for (let index = 1; index <= updates; index++) events.push(other(index))
      const batch = yield* events.batch
      expect(batch.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(limits.characters)
      expect(JSON.parse(batch.at(-1)?.text ?? "").sequence).toBe(updates)
    }))
})

describe("what waits for one subscriber", () => {
  const restarted = [{ type: "absent", reason: "unavailable" }]

  it.effect("is dropped for a fresh start when it is too many or too long", () =>
    Effect.gen(function*() {
      const sets = [1, 2, 3].map((sequence) => delta(sequence, [["set", ["text"], "x".repeat(100)]]))
      expect(yield* leaving(sets, { items: 3, characters: 10_000 })).toHaveLength(3)
      expect(yield* leaving(sets, { items: 2, characters: 10_000 })).toEqual(restarted)
      expect(yield* leaving(sets, { items: 3, characters: 400 })).toEqual(restarted)
    }))

  it.effect("counts the text that was joined", () =>
    Effect.gen(function*() {
      const long = [1, 2, 3, 4].map((sequence) => append(sequence, "x".repeat(1_000)))
      const set = delta(5, [["set", ["text"], ""]])
      expect(yield* leaving([...long, set], { items: 10, characters: 10_000 })).toHaveLength(2)
      expect(yield* leaving([...long, set], { items: 10, characters: 3_000 })).toEqual(restarted)
      expect(yield* leaving(long, { items: 10, characters: 3_000 })).toEqual(restarted)
    }))

  it.effect("leaves in batches that the far side can take", () =>
    Effect.gen(function*() {
      const outbox = filled(Array.from({ length: 2_500 }, (_, index) => delta(index, [["set", ["n"], index]])))
      const lengths = [yield* outbox.batch, yield* outbox.batch, yield* outbox.batch].map((batch) => batch.length)
      expect(lengths).toEqual([1_024, 1_024, 452])
    }))
})
