/** What a value becomes on the wire, whatever somebody hands over as one. */
import { isJsonValue } from "@bezel/core/json"
import { jsonCodec } from "@bezel/core/service"
import { Exit, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const leaf = fc.constantFrom<Schema.Codec<unknown, unknown>>(
  Schema.String,
  Schema.Number,
  Schema.Finite,
  Schema.Boolean,
  Schema.Null,
  Schema.Literals(["a", "b"]),
  Schema.Struct({}),
  Schema.Json,
  Schema.Record(Schema.String, Schema.String),
  Schema.DateFromString
)

const schema: fc.Arbitrary<Schema.Codec<unknown, unknown>> =
  fc.letrec<{ node: Schema.Codec<unknown, unknown> }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      leaf,
      tie("node").map((node) => Schema.Array(node)),
      tie("node").map((node) => Schema.NullOr(node)),
      fc.tuple(tie("node"), tie("node")).map(([left, right]) => Schema.Union([left, right])),
      fc.tuple(tie("node"), tie("node")).map(([a, b]) => Schema.Struct({ a, b: Schema.optionalKey(b) })),
      fc.tuple(tie("node"), tie("node")).map(([a, b]) => Schema.Struct({ a, b: Schema.optional(b) }))
    )
  })).node

class Own {
  a = "a"
}

const withAccessor = (a: unknown) => Object.defineProperty({}, "a", { enumerable: true, get: () => a })

const value: fc.Arbitrary<unknown> = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>("a", "x", 1, -0, Number.NaN, Infinity, true, null, undefined, 1n, Symbol("s")),
    fc.constantFrom<unknown>(() => 1, new Date(0), new Map([["a", 1]]), new Own(), Object.create(null), /a/),
    fc.array(tie("node"), { maxLength: 3 }),
    fc.constant(Object.assign([1], { length: 3 })),
    tie("node").map((a) => ({ a })),
    fc.tuple(tie("node"), tie("node")).map(([a, b]) => ({ a, b })),
    tie("node").map((a) => ({ a, toJSON: () => "something else", [Symbol("hidden")]: 1 })),
    tie("node").map(withAccessor),
    tie("node").map((a) => JSON.parse(`{"__proto__":{"a":1},"a":${JSON.stringify(a === undefined ? 0 : typeof a)}}`))
  )
})).node

describe("a value that is encoded", () => {
  it("is strict JSON or is refused, whatever its schema and whatever it is", () => {
    fc.assert(
      fc.property(schema, value, (schema, value) => {
        const encoded = jsonCodec(schema).encode(value)
        if (Exit.isSuccess(encoded)) expect(isJsonValue(encoded.value)).toBe(true)
        else expect(encoded._tag).toBe("Failure")
      }),
      { numRuns: 3_000 }
    )
  })

  it("keeps nothing of the object that it was: no accessor, no toJSON, no symbol", () => {
    const { encode } = jsonCodec(Schema.Struct({ a: Schema.String }))
    for (const given of [withAccessor("x"), { a: "x", toJSON: () => "y", [Symbol("hidden")]: 1 }]) {
      const encoded = encode(given)
      expect(encoded).toEqual(Exit.succeed({ a: "x" }))
      if (Exit.isSuccess(encoded)) expect(JSON.stringify(encoded.value)).toBe(`{"a":"x"}`)
    }
  })
})
