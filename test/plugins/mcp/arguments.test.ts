/** Schemas of servers as providers take them. */
import type { JsonObject } from "@bezel/core/json"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { toolArguments } from "../../../packages/plugins/src/mcp/arguments.ts"

describe("the schema of a tool's arguments", () => {
  it("stays as the server gives it where providers take it", () => {
    const schema: JsonObject = {
      type: "object",
      properties: { path: { type: "string", pattern: "^a" }, "deep.er-x": { $ref: "#/$defs/x" } },
      required: ["path"],
      $defs: { x: { enum: [1] } },
      additionalProperties: false
    }
    const { inputSchema, toServer } = toolArguments(schema)
    expect(inputSchema).toEqual(schema)
    const args = { path: "a", other: 1 }
    expect(toServer(args)).toBe(args)
  })

  it("gives parameters with other names such that providers take, and the server its own back", () => {
    const { inputSchema, toServer } = toolArguments({
      properties: { _filter: { type: "string" }, $filter: { type: "string" }, größe: {}, "": {}, ["x".repeat(80)]: {} },
      required: ["$filter", "größe"]
    })
    const names = Object.keys(Object(inputSchema.properties))
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/)
    expect(names.slice(0, 3)).toEqual(["_filter", "_filter_2", "gr__e"])
    expect(inputSchema.required).toEqual(["_filter_2", "gr__e"])
    expect(toServer({ _filter: "own", _filter_2: "theirs", gr__e: 1, more: 2 })).toEqual({
      _filter: "own",
      $filter: "theirs",
      größe: 1,
      more: 2
    })
  })

  it.each([
    [{}],
    [{ type: ["object", "null"], properties: null, required: "all", $schema: "x" }],
    [{ type: "string", properties: [1], required: [1, "gone"] }]
  ])("is that of an object, whatever it was: %j", (schema) => {
    expect(toolArguments(schema).inputSchema).toEqual({ type: "object", properties: {} })
  })

  it("has whole characters only", () => {
    const { inputSchema } = toolArguments({
      properties: { a: { description: "x\ud800", enum: ["\udc00"] } },
      "t\ud800": "\ud800"
    })
    expect(JSON.stringify(inputSchema)).not.toMatch(/\\ud[89a-f]/)
  })

  it("is one for every JSON object, and no argument is lost on the way back", () => {
    fc.assert(fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (properties) => {
      const { inputSchema, toServer } = toolArguments({ properties: properties as JsonObject })
      const names = Object.keys(Object(inputSchema.properties))
      expect(names).toHaveLength(Object.keys(properties).length)
      const back = toServer(Object.fromEntries(names.map((name, index) => [name, index])))
      expect(Object.keys(back).sort()).toEqual(Object.keys(properties).sort())
    }))
  })
})
