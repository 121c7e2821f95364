import { copyJson, decodeJson, formatPath, isJsonValue, JsonValue, type NotJson, toJson } from "@bezel/core/json"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

const failure = (value: unknown): NotJson => {
  const result = toJson(value)
  if (Result.isSuccess(result)) throw new Error("accepted")
  return result.failure
}

const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let index = 0; index < depth; index++) value = [value]
  return value
}

describe("strict JSON", () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const holed = [1]
  holed[2] = 2

  const refused: ReadonlyArray<readonly [what: string, value: unknown, path: ReadonlyArray<string | number>]> = [
    ["undefined", { a: { b: undefined } }, ["a", "b"]],
    ["a function", { a: [1, () => 1] }, ["a", 1]],
    ["NaN", { a: Number.NaN }, ["a"]],
    ["infinity", [[Number.POSITIVE_INFINITY]], [0, 0]],
    ["a bigint", { n: 1n }, ["n"]],
    ["a symbol", { n: Symbol("x") }, ["n"]],
    ["a key that is a symbol", { n: { [Symbol("x")]: 1 } }, ["n"]],
    ["a date", { when: new Date(0) }, ["when"]],
    ["a map", { m: new Map() }, ["m"]],
    ["an instance", { e: new Error("x") }, ["e"]],
    ["a cycle", { c: cycle }, ["c", "self"]],
    ["a hole in an array", { a: holed }, ["a", 1]],
    ["an accessor", {
      o: {
        get x() {
          return 1
        }
      }
    }, ["o", "x"]]
  ]

  it.each(refused)("refuses %s and names its path", (_, value, path) => {
    expect(failure(value).path).toEqual(path)
    expect(failure(value).message).toContain(formatPath(path))
    expect(isJsonValue(value)).toBe(false)
  })

  it("refuses what is nested too deep instead of exhausting the stack", () => {
    expect(failure(nested(100_000)).message).toMatch(/deeper than 1000/)
    expect(isJsonValue(nested(100_000))).toBe(false)
    expect(isJsonValue(nested(1_000))).toBe(true)
    expect(Result.isFailure(decodeJson("[".repeat(5_000) + "]".repeat(5_000)))).toBe(true)
  })

  it("accepts the same container twice, for that is no cycle", () => {
    const shared = { a: 1 }
    expect(Result.getOrNull(toJson([shared, shared]))).toEqual([{ a: 1 }, { a: 1 }])
  })

  it("copies are detached, and survive a round trip unchanged", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => {
      const copy = copyJson(value)
      expect(isJsonValue(value)).toBe(true)
      expect(JSON.parse(JSON.stringify(copy))).toEqual(copy)
      if (typeof value === "object" && value !== null) expect(copy).not.toBe(value)
    }))
  })

  it("keeps `__proto__` as a plain member and touches no prototype", () => {
    const copy = copyJson(JSON.parse(`{"__proto__":{"polluted":true},"a":1}`))
    expect(JSON.stringify(copy)).toBe(`{"__proto__":{"polluted":true},"a":1}`)
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
  })

  it("has no negative zero", () => {
    expect(Object.is((copyJson([-0]) as ReadonlyArray<number>)[0], 0)).toBe(true)
  })

  it("names the text that is no JSON", () => {
    const result = decodeJson("{oops", "settings.json")
    expect(Result.isFailure(result) && result.failure.message).toMatch(/^settings\.json is not JSON/)
  })

  it("is a schema too", () => {
    expect(Schema.decodeUnknownSync(JsonValue)({ a: [1] })).toEqual({ a: [1] })
    expect(() => Schema.decodeUnknownSync(JsonValue)({ a: undefined })).toThrow(/a JSON value/)
    expect(Schema.toJsonSchemaDocument(Schema.Struct({ any: JsonValue })).schema).toMatchObject({
      properties: { any: {} }
    })
  })
})

describe("a path for people", () => {
  it("reads like code, and quotes what is no name", () => {
    expect(formatPath([])).toBe("(root)")
    expect(formatPath(["turn", "tools", 0, "a b", "x"])).toBe(`turn.tools[0]["a b"].x`)
  })
})
