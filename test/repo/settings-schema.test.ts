import type { JsonObject, JsonValue } from "@bezel/core/json"
import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { settingsSchemaFile, settingsSchemaText } from "../../scripts/schema.ts"

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const objectOf = (value: JsonValue | undefined): JsonObject => isObject(value) ? value : {}

/** The places of all members that a schema names, with what is said of each. */
const members = (node: JsonValue | undefined, place: string): ReadonlyArray<readonly [place: string, said: string]> => {
  if (!isObject(node)) return []
  const { additionalProperties, allOf, anyOf, items, properties } = node
  const named = Object.entries(objectOf(properties)).flatMap(([name, member]) => {
    const { description } = objectOf(member)
    return [[`${place}.${name}`, String(description ?? "")] as const, ...members(member, `${place}.${name}`)]
  })
  const branches = [anyOf, allOf].flatMap((list) => Array.isArray(list) ? list : [])
  return [
    ...named,
    ...branches.flatMap((branch) => members(branch, place)),
    ...[additionalProperties, items].flatMap((each) => members(each, `${place}[]`))
  ]
}

it("the schema of bezel.jsonc says of every setting what it is, where an editor shows it", () => {
  const schema: JsonValue = JSON.parse(settingsSchemaText())
  const all = members(schema, "")
  expect(all.length).toBeGreaterThan(90)
  expect(all.filter(([, said]) => !/^\S.*\.$/.test(said))).toEqual([])
  expect(objectOf(schema).$defs).toBeUndefined()
})

it("the shipped schema of bezel.jsonc is what the features declare (node scripts/schema.ts writes it)", () => {
  expect(readFileSync(settingsSchemaFile, "utf8")).toBe(settingsSchemaText())
})
