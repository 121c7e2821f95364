/**
 * What a server offers, read page by page: tools and prompts. Each item is decoded by itself, so one that is broken costs
 * nothing but itself; everything is bounded, and what is left out is said.
 */
import type { JsonObject } from "@bezel/core/json"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Connection } from "./connection.ts"
import type { McpPrompt } from "./contract.ts"
import type { McpFailure } from "./failure.ts"
import { bounded, isShallow, oneLine } from "./text.ts"

/** A tool as its server describes it. */
export interface RemoteTool {
  readonly name: string
  readonly description: string
  /** Of its arguments, as the server gives it. */
  readonly inputSchema: JsonObject
}

export interface Listing<A> {
  readonly items: ReadonlyArray<A>
  readonly problems: ReadonlyArray<string>
}

const maxPages = 50
const maxItems = 500
const maxName = 200
const maxDescription = 4_096
/** UTF-16 units of the JSON text of one schema, and of all of a server's. */
const maxSchema = 64 * 1024
const maxSchemas = 1024 * 1024
const maxSchemaDepth = 40

const Page = Schema.Struct({ nextCursor: Schema.optionalKey(Schema.NonEmptyString) })

/** All items of a list. A server that never comes to an end is cut off. */
const readPages = (connection: Connection, method: string, member: string) =>
  Effect.gen(function*() {
    const items: Array<unknown> = []
    const seen = new Set<string>()
    let cursor: string | null = null
    for (let page = 0; page < maxPages; page++) {
      const result: { readonly [name: string]: unknown } = yield* connection.request(
        method,
        cursor === null ? {} : { cursor }
      )
      const found = result[member]
      if (Array.isArray(found)) { for (const item of found.slice(0, maxItems + 1)) items.push(item) }
      const { nextCursor } = Option.getOrElse(
        Schema.decodeUnknownOption(Page)(result),
        () => ({ nextCursor: undefined })
      )
      if (nextCursor === undefined || seen.has(nextCursor) || items.length > maxItems) break
      seen.add(nextCursor)
      cursor = nextCursor
    }
    return items.length <= maxItems
      ? { items, problems: [] }
      : {
        items: items.slice(0, maxItems),
        problems: [`It lists more than ${maxItems} of its ${member}; the rest is left out.`]
      }
  })

const ToolItem = Schema.Struct({
  name: Schema.NonEmptyString.check(Schema.isMaxLength(maxName)),
  title: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  inputSchema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
})

/** The server's tools in the order of their names, which does not depend on how the server lists them. */
export const listTools = (connection: Connection): Effect.Effect<Listing<RemoteTool>, McpFailure> =>
  connection.has.tools
    ? Effect.map(readPages(connection, "tools/list", "tools"), (read) => {
      const problems: Array<string> = [...read.problems]
      const tools = new Map<string, RemoteTool>()
      let room = maxSchemas
      for (const item of read.items) {
        const decoded = isShallow(item, maxSchemaDepth) ? Schema.decodeUnknownOption(ToolItem)(item) : Option.none()
        if (Option.isNone(decoded)) {
          problems.push("One of its tools is left out: its description is not valid.")
          continue
        }
        const { description, inputSchema, name, title } = decoded.value
        const shown = JSON.stringify(oneLine(name, 64))
        const size = JSON.stringify(inputSchema ?? {}).length
        if (tools.has(name)) problems.push(`It lists the tool ${shown} twice; the first one counts.`)
        else if (size > maxSchema || size > room) {
          problems.push(`The tool ${shown} is left out: the schema of its arguments is too large.`)
        } else {
          room -= size
          tools.set(name, {
            name,
            description: bounded(description ?? title ?? name, maxDescription),
            inputSchema: inputSchema ?? {}
          })
        }
      }
      const items = [...tools.values()].sort((left, right) => left.name < right.name ? -1 : 1)
      return { items, problems: [...new Set(problems)].slice(0, 20) }
    })
    : Effect.succeed({ items: [], problems: [] })

const PromptItem = Schema.Struct({
  name: Schema.NonEmptyString.check(Schema.isMaxLength(maxName)),
  description: Schema.optionalKey(Schema.String),
  arguments: Schema.optionalKey(Schema.Array(Schema.Struct({
    name: Schema.NonEmptyString.check(Schema.isMaxLength(maxName)),
    required: Schema.optionalKey(Schema.Boolean)
  })))
})

/** The server's prompts by name. A list that cannot be had is none: nothing depends on it. */
export const listPrompts = (connection: Connection): Effect.Effect<ReadonlyArray<McpPrompt>> =>
  connection.has.prompts
    ? Effect.map(
      Effect.orElseSucceed(readPages(connection, "prompts/list", "prompts"), () => ({ items: [] })),
      ({ items }) => {
        const prompts = new Map<string, McpPrompt>()
        for (const item of items) {
          const decoded = isShallow(item, maxSchemaDepth) ? Schema.decodeUnknownOption(PromptItem)(item) : Option.none()
          if (Option.isNone(decoded) || oneLine(decoded.value.name, maxName) !== decoded.value.name) continue
          const { arguments: places = [], description = "", name } = decoded.value
          prompts.set(name, {
            name,
            description: oneLine(description, 200),
            arguments: places.slice(0, 20).map((place) => ({ name: place.name, required: place.required === true }))
          })
        }
        return [...prompts.values()].sort((left, right) => left.name < right.name ? -1 : 1)
      }
    )
    : Effect.succeed([])
