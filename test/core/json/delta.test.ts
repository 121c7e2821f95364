import { apply, applyChecked, decodeOperations, type JsonValue, type Operation, OperationError } from "@bezel/core/json"
import { Result } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const base = { a: { text: "hello", n: 1 }, list: [{ id: 1 }, { id: 2 }, { id: 3 }], other: { deep: {} } }

describe("applying operations", () => {
  it("sets, deletes, appends, truncates, splices and replaces", () => {
    expect(apply<JsonValue>(base, [
      ["set", ["a", "n"], 2],
      ["append", ["a", "text"], " world"],
      ["truncate", ["a", "text"], 6],
      ["splice", ["list"], 1, 1, [{ id: 20 }, { id: 21 }]],
      ["set", ["list", 4], { id: 4 }],
      ["delete", ["other"]]
    ])).toEqual({ a: { text: "world", n: 2 }, list: [{ id: 1 }, { id: 20 }, { id: 21 }, { id: 3 }, { id: 4 }] })
    expect(apply<JsonValue>(base, [["replace", [1]], ["set", [0], 2]])).toEqual([2])
  })

  it("leaves the old document as it was and shares what did not change", () => {
    const before = JSON.stringify(base)
    const after = apply(base, [["set", ["a", "n"], 2], ["set", ["list", 1, "id"], 9]])
    expect(JSON.stringify(base)).toBe(before)
    expect(after).not.toBe(base)
    expect(after.other).toBe(base.other)
    expect(after.list[0]).toBe(base.list[0])
    expect(after.list[1]).not.toBe(base.list[1])
  })

  it("keeps the identity of a document that nothing changes", () => {
    expect(apply(base, [])).toBe(base)
    expect(apply(base, [["set", ["a", "n"], 1], ["append", ["a", "text"], ""], ["splice", ["list"], 0, 0, []]])).toBe(
      base
    )
  })

  it("never writes into the values that an operation carries", () => {
    const item = { n: 1, inner: { x: 1 } }
    const operations: ReadonlyArray<Operation> = [["set", ["added"], item], ["set", ["added", "inner", "x"], 2]]
    expect(apply<JsonValue>({}, operations)).toEqual({ added: { n: 1, inner: { x: 2 } } })
    expect(item).toEqual({ n: 1, inner: { x: 1 } })
  })

  it("splices ten thousand elements and more", () => {
    const many = Array.from({ length: 200_000 }, (_, index) => index)
    expect(apply({ list: [-1, -2] }, [["splice", ["list"], 1, 0, many]]).list).toEqual([-1, ...many, -2])
  })
})

describe("operations from elsewhere", () => {
  const refused: ReadonlyArray<readonly [what: string, operations: unknown, message: RegExp]> = [
    ["no array", { 0: "set" }, /not an array/],
    ["an operation that is no array", [{ op: "set" }], /operation 0: it is not an array/],
    ["an unknown name", [["move", ["a"], ["b"]]], /"move" is not the name/],
    ["an inherited name", [["toString", ["a"]]], /not the name/],
    ["a wrong number of members", [["set", ["a"]]], /has 3 members, not 2/],
    ["a path that is no array", [["set", "a", 1]], /path is not an array/],
    ["`__proto__` in a path", [["set", ["__proto__", "x"], 1]], /__proto__/],
    ["`__proto__` at the end of a path", [["set", ["a", "__proto__"], { x: 1 }]], /__proto__/],
    ["a negative index", [["set", ["list", -1], 1]], /not a path segment/],
    ["a fractional index", [["set", ["list", 0.5], 1]], /not a path segment/],
    ["an index out of range", [["set", ["list", 4], 1]], /index from 0 to 3/],
    ["a string as an index", [["set", ["list", "0"], 1]], /index from 0 to 3/],
    ["a number as a key", [["set", ["a", 0], 1]], /takes a string/],
    ["a path through a leaf", [["set", ["a", "n", "x"], 1]], /a\.n is not an object or array/],
    ["a path through nothing", [["set", ["nope", "x"], 1]], /nope does not exist/],
    ["a path through the prototype", [["set", ["constructor", "prototype"], 1]], /constructor does not exist/],
    ["setting the root", [["set", [], 1]], /replace/],
    ["deleting what is not there", [["delete", ["nope"]]], /nope does not exist/],
    ["deleting an element", [["delete", ["list", 0]]], /splice/],
    ["appending to a number", [["append", ["a", "n"], "x"]], /only a string/],
    ["appending a number", [["append", ["a", "text"], 1]], /not a string/],
    ["truncating too much", [["truncate", ["a", "text"], 6]], /cannot drop 6/],
    ["splicing an object", [["splice", ["a"], 0, 0, []]], /only an array/],
    ["splicing beyond the end", [["splice", ["list"], 4, 0, []]], /not a place/],
    ["removing beyond the end", [["splice", ["list"], 2, 2, []]], /cannot remove 2/],
    ["inserting no array", [["splice", ["list"], 0, 0, "ab"]], /not an array/],
    ["a value that is no JSON", [["set", ["a", "n"], { x: undefined }]], /a\.n\.x is undefined/],
    ["a good one before a bad one", [["set", ["a", "n"], 5], ["delete", ["nope"]]], /operation 1/],
    ["a path of endless length", [["set", Array.from({ length: 5_000 }, () => "a"), 1]], /more than 1000/]
  ]

  it.each(refused)("refuses %s, and changes nothing", (_, operations, message) => {
    const before = JSON.stringify(base)
    const result = applyChecked(base, operations)
    expect(Result.isFailure(result) && result.failure).toBeInstanceOf(OperationError)
    expect(Result.isFailure(result) && result.failure.message).toMatch(message)
    expect(JSON.stringify(base)).toBe(before)
    expect({}.constructor).toBe(Object)
  })

  it("detaches what it decodes", () => {
    const value = { x: 1 }
    const result = decodeOperations([["set", ["a"], value]])
    value.x = 2
    expect(Result.getOrNull(result)).toEqual([["set", ["a"], { x: 1 }]])
  })

  it("keeps a member that is called `__proto__` inside a value a plain member", () => {
    const result = applyChecked({ a: 1 }, JSON.parse(`[["set",["b"],{"__proto__":{"polluted":1}}]]`))
    expect(Result.isSuccess(result) && JSON.stringify(result.success)).toBe(`{"a":1,"b":{"__proto__":{"polluted":1}}}`)
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false)
  })

  it("random ones are refused or give JSON, and never touch the document they are applied to", () => {
    const segment = fc.oneof(
      fc.constantFrom("a", "b", "list", "__proto__", "constructor", "length"),
      fc.nat(4),
      fc.integer(),
      fc.string()
    )
    const path = fc.oneof(fc.array(segment, { maxLength: 4 }), fc.anything())
    const value = fc.oneof(fc.jsonValue(), fc.anything())
    const operation = fc.oneof(
      fc.tuple(fc.constant("set"), path, value),
      fc.tuple(fc.constant("delete"), path),
      fc.tuple(fc.constant("append"), path, value),
      fc.tuple(fc.constant("truncate"), path, fc.oneof(fc.nat(4), value)),
      fc.tuple(
        fc.constant("splice"),
        path,
        fc.oneof(fc.nat(4), value),
        fc.oneof(fc.nat(4), value),
        fc.oneof(fc.array(fc.jsonValue()), value)
      ),
      fc.tuple(fc.constant("replace"), value),
      fc.anything()
    )
    const document = fc.record({ a: fc.jsonValue(), b: fc.string(), list: fc.array(fc.jsonValue(), { maxLength: 3 }) })
    fc.assert(
      fc.property(document, fc.array(operation, { maxLength: 6 }), (before, operations) => {
        const text = JSON.stringify(before)
        const result = applyChecked(before as JsonValue, operations)
        expect(JSON.stringify(before)).toBe(text)
        expect(Object.keys(Object.prototype)).toEqual([])
        if (Result.isSuccess(result)) {
          const round: unknown = JSON.parse(JSON.stringify(result.success))
          expect(JSON.stringify(round)).toBe(JSON.stringify(result.success))
        }
      }),
      { numRuns: 1_000 }
    )
  })
})
