/**
 * The JSON Schema of the whole settings file, made of all keys; editors complete and check with it.
 *
 * The same schema answers which names are allowed at a place, for the suggestion in an error about an unknown one.
 */
import * as Schema from "effect/Schema"
import type { JsonObject, JsonValue, Path } from "../json/index.ts"
import type { SettingsKey } from "./key.ts"

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What is said of a member stands where editors look for it; the compiler puts it beside the conditions. */
const hoisted = (node: JsonValue): JsonValue => {
  if (Array.isArray(node)) return node.map(hoisted)
  if (!isObject(node)) return node
  const members = Object.fromEntries(Object.entries(node).map(([name, member]) => [name, hoisted(member)]))
  if (!Array.isArray(members.allOf)) return members
  const { allOf, ...rest } = members
  const said = allOf.findLast((part) => isObject(part) && Object.keys(part).join() === "description")
  const others = allOf.filter((part) => part !== said)
  return {
    ...rest,
    ...(isObject(said) ? said : {}),
    ...(others.length === 0 ? {} : { allOf: others })
  }
}

/** References of one key's document get the key's name in front, so that the documents can be put together. */
const renamed = (value: JsonValue, prefix: string): JsonValue => {
  if (Array.isArray(value)) return value.map((item) => renamed(item, prefix))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === "$ref" && typeof member === "string"
        ? member.replace(/^#\/\$defs\//, `#/$defs/${prefix}.`)
        : renamed(member, prefix)
    ])
  )
}

/** Strict JSON of a compiled schema, by way of its text: the compiler's type promises less than its output is. */
const toJson = (value: unknown): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue

/** Draft 2020-12. Unknown names are refused wherever a section's Schema names its members. */
export const settingsJsonSchema = (keys: ReadonlyArray<SettingsKey.Any>): JsonObject => {
  const properties: Record<string, JsonValue> = {
    $schema: { type: "string", description: "Where this schema is; read by editors only." }
  }
  const definitions: Record<string, JsonValue> = {}
  for (const key of keys) {
    const document = Schema.toJsonSchemaDocument(key.schema, { onExcessProperty: "error" })
    const section = renamed(hoisted(toJson(document.schema)), key.name)
    properties[key.name] = isObject(section) && key.description !== ""
      ? { ...section, description: key.description }
      : section
    for (const [name, definition] of Object.entries(document.definitions)) {
      definitions[`${key.name}.${name}`] = renamed(hoisted(toJson(definition)), key.name)
    }
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of Bezel (bezel.jsonc)",
    type: "object",
    properties,
    additionalProperties: false,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
}

/** The member names that a schema knows at a path. */
export const namesAt = (schema: JsonObject, path: Path): ReadonlyArray<string> => {
  const definitions = isObject(schema.$defs) ? schema.$defs : {}
  const expand = (node: JsonValue | undefined, depth: number): ReadonlyArray<JsonObject> => {
    if (!isObject(node) || depth > 16) return []
    const reference = node.$ref
    const target = typeof reference === "string"
      ? definitions[reference.slice("#/$defs/".length).replaceAll("~1", "/").replaceAll("~0", "~")]
      : undefined
    const branches = [node.anyOf, node.oneOf, node.allOf].flatMap((list) => Array.isArray(list) ? list : [])
    return [node, ...expand(target, depth + 1), ...branches.flatMap((branch) => expand(branch, depth + 1))]
  }
  let places = expand(schema, 0)
  for (const segment of path) {
    places = places.flatMap((place) => {
      if (typeof segment === "number") return expand(place.items, 0)
      const properties = isObject(place.properties) ? place.properties : {}
      return expand(Object.hasOwn(properties, segment) ? properties[segment] : place.additionalProperties, 0)
    })
  }
  return [...new Set(places.flatMap((place) => isObject(place.properties) ? Object.keys(place.properties) : []))]
}
