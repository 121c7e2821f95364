/**
 * The schema of a tool's arguments as a server gives it, made into one that every model provider takes: one that a provider
 * refuses would cost all tools of the request, and with them the conversation.
 *
 * Providers want an object, whole Unicode characters, and names of parameters of letters, digits, `_`, `.` and `-`. Parameters
 * with other names get such a name, which is translated back when the tool is called. Pure.
 */
import type { JsonObject, JsonValue } from "@bezel/core/json"

export interface ToolArguments {
  readonly inputSchema: JsonObject
  /** Arguments of a model as the server names them. */
  readonly toServer: (args: JsonObject) => JsonObject
}

const accepted = /^[a-zA-Z0-9_.-]{1,64}$/

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The same value with whole characters only. It is known to be shallow. */
const wellFormed = (value: JsonValue): JsonValue => {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]))
}

const nameFor = (name: string, taken: ReadonlySet<string>): string => {
  const base = name.replaceAll(/[^a-zA-Z0-9_.-]/gu, "_").slice(0, 60) || "_"
  for (let count = 1;; count++) {
    const candidate = count === 1 ? base : `${base}_${count}`
    if (!taken.has(candidate)) return candidate
  }
}

export const toolArguments = (schema: JsonObject): ToolArguments => {
  const { $schema: _, properties, required, type: _type, ...rest } = schema
  const given = isObject(properties) ? properties : {}
  const names = new Map<string, string>()
  // Those that are fine keep their name, whatever the others are called.
  const taken = new Set(Object.keys(given).filter((name) => accepted.test(name)))
  for (const name of Object.keys(given)) {
    if (taken.has(name)) continue
    const renamed = nameFor(name, taken)
    taken.add(renamed)
    names.set(name, renamed)
  }
  const wanted = Array.isArray(required)
    ? required.filter((name): name is string => typeof name === "string" && Object.hasOwn(given, name))
    : []
  const inputSchema: JsonObject = {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(given).map(([name, member]) => [names.get(name) ?? name, wellFormed(member)])
    ),
    ...(wanted.length === 0 ? {} : { required: [...new Set(wanted)].map((name) => names.get(name) ?? name) }),
    ...Object.fromEntries(Object.entries(rest).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]))
  }
  const originals = new Map([...names].map(([name, renamed]) => [renamed, name]))
  return {
    inputSchema,
    toServer: (args) =>
      originals.size === 0
        ? args
        : Object.fromEntries(Object.entries(args).map(([name, value]) => [originals.get(name) ?? name, value]))
  }
}
