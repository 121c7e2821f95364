import { contextOf, deriveContext } from "@bezel/core/harness"
import type { Message } from "@bezel/core/model"
import type { EntryEdit, EntryRecord } from "@bezel/core/storage"
import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"

const record = (
  ordinal: number,
  model: ReadonlyArray<Message> | null,
  edits: ReadonlyArray<EntryEdit> | null = null
): EntryRecord => ({
  id: `e${ordinal}`,
  ordinal,
  conversation: "c1",
  kind: "test",
  data: null,
  model,
  head: null,
  edits,
  createdAt: 0
})

/** Few ids, so that results come early, late, twice, for nobody, and for calls that were made before under the same id. */
const id = fc.constantFrom("a", "b", "c")

const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    role: fc.constant("user" as const),
    content: fc.array(fc.record({ type: fc.constant("text" as const), text: fc.string() }), { maxLength: 1 })
  }),
  fc.uniqueArray(id, { maxLength: 3 }).map((ids): Message => ({
    role: "assistant",
    content: ids.map((call) => ({ type: "tool-call", id: call, name: "t", params: {} }))
  })),
  fc.record({ id, result: fc.string() }).map((result): Message => ({
    role: "tool",
    content: [{ type: "tool-result", name: "t", isFailure: false, ...result }]
  }))
)

const entry = fc.record({
  model: fc.oneof(fc.constant(null), message.map((one) => [one])),
  edit: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, {
    weight: 1,
    arbitrary: fc.record({ back: fc.integer({ min: 1, max: 5 }), model: fc.option(message.map((one) => [one])) })
  }),
  read: fc.boolean()
})

it("the context of a transcript that grows is at every point what it would be if it were derived anew", () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 30 }), (steps) => {
      const transcript: Array<EntryRecord> = []
      const given: Array<{ readonly context: ReadonlyArray<Message>; readonly text: string }> = []
      steps.forEach(({ edit, model, read }, index) => {
        transcript.push(
          record(
            index + 1,
            model,
            edit === null ? null : [{ entry: `e${Math.max(1, index + 1 - edit.back)}`, model: edit.model }]
          )
        )
        if (!read) return
        const context = contextOf(transcript)
        expect(context).toEqual(deriveContext([...transcript]))
        given.push({ context, text: JSON.stringify(context) })
      })
      expect(contextOf(transcript)).toEqual(deriveContext([...transcript]))
      // What was given out before never changes.
      for (const { context, text } of given) expect(JSON.stringify(context)).toBe(text)
    }),
    { numRuns: 300 }
  )
})
