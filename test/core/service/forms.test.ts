/** What a fault of a value says would have been right, where several forms are. */
import { faults } from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const expected = (schema: Schema.Codec<unknown, unknown>, value: unknown) => {
  const decoded = Schema.decodeUnknownResult(schema)(value)
  return Result.isFailure(decoded) ? faults(decoded.failure.issue).map((fault) => fault.expected) : []
}

describe("a value that may have one of several forms", () => {
  it.each<[string, Schema.Codec<unknown, unknown>, unknown, string]>([
    ["fixed values", Schema.Literals(["low", "high"]), "hihg", `"low" or "high"`],
    ["kinds of values", Schema.Union([Schema.String, Schema.Number, Schema.Null]), true, "a string, a number or null"],
    ["a single one", Schema.Union([Schema.Array(Schema.String)]), true, "an array"],
    [
      "objects that a fixed value tells apart",
      Schema.Union([
        Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
        Schema.Struct({ type: Schema.Literal("file"), data: Schema.String })
      ]),
      { type: "fiel" },
      `an object with type "text" or an object with type "file"`
    ],
    [
      "objects by their members",
      Schema.Union([Schema.Boolean, Schema.Struct({ a: Schema.Number, b: Schema.Number })]),
      "x",
      "a boolean or an object with a, b"
    ],
    [
      "forms that have names",
      Schema.Union([Schema.String.annotate({ expected: "a duration" }), Schema.Literals([1, 2])]),
      null,
      "a duration, 1 or 2"
    ],
    [
      "forms within forms, each once",
      Schema.Union([Schema.NullOr(Schema.String), Schema.NullOr(Schema.Number)]),
      true,
      "a string, null or a number"
    ],
    [
      "very many",
      Schema.Literals(Array.from({ length: 30 }, (_, n) => `v${n}`)),
      "x",
      `${Array.from({ length: 12 }, (_, n) => `"v${n}"`).join(", ")} or one of 18 more`
    ]
  ])("is told which: %s", (_, schema, value, words) => {
    expect(expected(schema, value)).toEqual([words])
  })

  it("is told one that the schema has words for in these words", () => {
    const schema = Schema.Union([Schema.String, Schema.Number]).annotate({ expected: "a port" })
    expect(expected(schema, true)).toEqual(["a port"])
  })
})
