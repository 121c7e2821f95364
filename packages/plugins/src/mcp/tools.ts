/**
 * Tools of servers as tools of the location: the server's own schema, its results converted, its progress shown.
 *
 * A call runs on whatever connection its server has by then. It is never repeated by itself, also not after a crash: nobody
 * knows what it did.
 */
import type { JsonObject, JsonValue } from "@bezel/core/json"
import type { TextPart } from "@bezel/core/model"
import { type Tool, tool, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { toolArguments } from "./arguments.ts"
import { callResult, convert, keepIn } from "./content.ts"
import type { McpFailure } from "./failure.ts"
import type { RemoteTool } from "./listing.ts"
import type { Server } from "./server.ts"
import { oneLine, toolName } from "./text.ts"

const Arguments: Schema.Codec<JsonObject> = Schema.Record(Schema.String, Schema.Json)

const usualTimeout = 120

const sentenceOf = (server: string, failure: McpFailure): ToolFailure => {
  const lost = failure.lost === true ? " while this call ran; whether it took effect is unknown" : ""
  return new ToolFailure({ message: `The MCP server ${server}: ${failure.message.replace(/[.\s]+$/, "")}${lost}.` })
}

const timeoutOf = ({ setting }: Server): Duration.Duration => Duration.seconds(setting.timeout ?? usualTimeout)

/** What stands in a result's `details` for renderers. */
const detailsOf = (server: Server, name: string): JsonObject => ({ server: server.name, tool: name })

/** Behind what a server says when its question was declined by the policy. */
const notAsked: TextPart = {
  type: "text",
  text: "[The server asked the user something; nobody is here to answer, so it was declined.]"
}

/** The tool that models are offered for a server's tool. */
export const serverTool = (server: Server, remote: RemoteTool): Tool => {
  const { inputSchema, toServer } = toolArguments(remote.inputSchema)
  return tool({
    description: remote.description,
    input: Arguments,
    inputSchema,
    bounds: { keep: "both" },
    execute: Effect.fn("mcp.call")(function*(input, call) {
      const onProgress = (progress: { readonly [name: string]: JsonValue }) => call.progress(progress)
      const { raw, unattended } = yield* Effect.mapError(
        server.calledBy(call.sessionID, (running) =>
          Effect.map(
            server.use((connection) =>
              connection.request("tools/call", { name: remote.name, arguments: toServer(input) }, {
                timeout: timeoutOf(server),
                call: running,
                onProgress: (progress) => onProgress({ ...progress })
              })
            ),
            (raw) => ({ raw, unattended: running.unattended })
          )),
        (failure) => sentenceOf(server.name, failure)
      )
      const result = yield* callResult(raw, call, detailsOf(server, remote.name))
      if (result === null) {
        return yield* new ToolFailure({
          message: `The MCP server ${server.name}: its answer is not the result of a call.`
        })
      }
      return unattended
        ? { ...result, content: [...result.content, notAsked], code: "unattended" as const }
        : result
    })
  })
}

export interface Offered {
  readonly name: string
  readonly server: string
  readonly tool: Tool
}

/** Makes the tools of all servers, anew only where something changed: the same tool is the same object. */
export const makeOffer = () => {
  const made = new WeakMap<RemoteTool, Tool>()
  return (servers: ReadonlyArray<Server>) => {
    const offered = new Map<string, Offered>()
    const problems = new Map<string, Array<string>>()
    for (const server of servers) {
      for (const remote of server.known().tools) {
        const name = toolName(server.name, remote.name)
        const known = offered.get(name)
        if (known === undefined && !(name in Object.prototype)) {
          const existing = made.get(remote) ?? serverTool(server, remote)
          made.set(remote, existing)
          offered.set(name, { name, server: server.name, tool: existing })
          continue
        }
        problems.set(server.name, [
          ...problems.get(server.name) ?? [],
          `The tool ${JSON.stringify(oneLine(remote.name, 64))} is left out: ${
            known === undefined
              ? "its name is reserved"
              : `there is a tool ${name} of the server ${known.server} already`
          }.`
        ])
      }
    }
    return { offered: [...offered.values()], problems }
  }
}

export const listResourcesName = "list_mcp_resources"
export const readResourceName = "read_mcp_resource"

const ResourceItem = Schema.Struct({
  uri: Schema.optionalKey(Schema.String),
  uriTemplate: Schema.optionalKey(Schema.String),
  name: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  mimeType: Schema.optionalKey(Schema.String)
})

const maxPages = 10

const resourceLine = (item: unknown): string | null => {
  const decoded = Option.getOrNull(Schema.decodeUnknownOption(ResourceItem)(item))
  const address = decoded?.uri ?? decoded?.uriTemplate
  if (decoded === null || address === undefined) return null
  const about = [decoded.name, decoded.mimeType, decoded.description].flatMap((one) =>
    one === undefined || one === "" ? [] : [oneLine(one, 200)]
  )
  return `${oneLine(address, 1_000)}${about.length === 0 ? "" : `  ${about.join(", ")}`}`
}

const listedBy = (server: Server, method: string, member: string): Effect.Effect<ReadonlyArray<string>, McpFailure> =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    let cursor: string | null = null
    for (let page = 0; page < maxPages; page++) {
      const params: JsonObject = cursor === null ? {} : { cursor }
      const result: { readonly [name: string]: unknown } = yield* server.use((connection) =>
        connection.request(method, params, { timeout: timeoutOf(server) })
      )
      const items = result[member]
      for (const item of Array.isArray(items) ? items : []) {
        const line = resourceLine(item)
        if (line !== null) lines.push(line)
      }
      if (typeof result.nextCursor !== "string" || result.nextCursor === cursor) break
      cursor = result.nextCursor
    }
    return lines
  })

const serverNamed = (servers: ReadonlyArray<Server>, name: string): Effect.Effect<Server, ToolFailure> => {
  const found = servers.find((server) => server.name === name)
  return found === undefined
    ? Effect.fail(
      new ToolFailure({
        message: `There is no MCP server ${JSON.stringify(name.slice(0, 80))}; there are ${
          servers.map((server) => server.name).join(", ")
        }.`
      })
    )
    : Effect.succeed(found)
}

/** The two tools for resources of all servers that have any. */
export const resourceTools = (all: () => ReadonlyArray<Server>): ReadonlyArray<Offered> => {
  const list = tool({
    description:
      "Lists the resources that MCP servers offer, each with its address. An address with {braces} is a pattern: put something in place of them to read it.",
    input: Schema.Struct({
      server: Schema.optionalKey(Schema.String.annotate({ description: "Only those of this server." }))
    }),
    execute: ({ server }) =>
      Effect.gen(function*() {
        const wanted = server === undefined
          ? all().filter((one) => one.known().hasResources)
          : [yield* serverNamed(all(), server)]
        const texts = yield* Effect.forEach(wanted, (one) =>
          Effect.gen(function*() {
            const resources = yield* Effect.result(listedBy(one, "resources/list", "resources"))
            if (resources._tag === "Failure") return sentenceOf(one.name, resources.failure).message
            const templates = yield* Effect.orElseSucceed(
              listedBy(one, "resources/templates/list", "resourceTemplates"),
              (): ReadonlyArray<string> => []
            )
            const lines = [...resources.success, ...templates]
            return [`Server ${one.name}:`, ...lines.length === 0 ? ["(none)"] : lines].join("\n")
          }), { concurrency: 4 })
        return texts.length === 0 ? "No MCP server offers resources." : texts.join("\n\n")
      })
  })
  const read = tool({
    description: "Reads a resource of an MCP server by its address.",
    input: Schema.Struct({
      server: Schema.String.annotate({ description: "Name of the server." }),
      uri: Schema.String.annotate({ description: "The resource's address, as list_mcp_resources shows it." })
    }),
    permission: ({ server, uri }) => ({ access: readResourceName, subjects: [`${server} ${uri}`] }),
    execute: ({ server, uri }, call) =>
      Effect.gen(function*() {
        const one = yield* serverNamed(all(), server)
        const raw = yield* Effect.mapError(
          one.use((connection) => connection.request("resources/read", { uri }, { timeout: timeoutOf(one) })),
          (failure) => sentenceOf(one.name, failure)
        )
        const contents = Array.isArray(raw.contents) ? raw.contents : []
        const { parts } = yield* convert(contents.map((resource) => ({ type: "resource", resource })), keepIn(call))
        return toolResult({
          content: parts.length === 0 ? "The resource is empty." : parts,
          details: { server, uri }
        })
      })
  })
  return [{ name: listResourcesName, server: "", tool: list }, { name: readResourceName, server: "", tool: read }]
}
