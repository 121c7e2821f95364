/**
 * A server of the Model Context Protocol for tests, on its standard streams, without any library: what it does wrong it does
 * on purpose. Arguments: a mode, and a folder where it leaves marks of what happened to it.
 */
import { spawn } from "node:child_process"
import { appendFileSync, existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"

const [mode = "plain", folder = "."] = process.argv.slice(2)
const mark = (name: string, text: string) => appendFileSync(join(folder, name), `${text}\n`)
const send = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const text = (value: string) => ({ content: [{ type: "text", text: value }] })

mark("started", String(process.pid))
if (mode === "stays") process.on("SIGTERM", () => mark("marks", "asked to end"))
if (mode === "silent" || mode === "stays") setInterval(() => {}, 1_000)
if (mode === "down" && existsSync(join(folder, "down"))) {
  process.stderr.write("\u001b[31mcannot start\u001b[0m today\n")
  process.exit(7)
}

type Arguments = { readonly [name: string]: unknown }
type Handler = (args: Arguments, id: number, params: Arguments) => object | null

const object = (properties: object = {}) => ({ type: "object", properties })
let extra: ReadonlyArray<string> = []

/** Calls that have no answer, by their request's id. */
const open = new Map<number, string>()

const handlers: { readonly [name: string]: Handler } = {
  echo: (args) => text(JSON.stringify(args)),
  where: () => text(process.cwd()),
  env: () => text(JSON.stringify(process.env)),
  die: () => process.exit(3),
  dieQuietly: () => process.kill(process.pid, "SIGKILL") && null,
  fails: () => ({ ...text("it went wrong"), isError: true }),
  structured: () => ({ content: [], structuredContent: { temperature: 21, place: { name: "Lyon" } } }),
  nothing: () => ({ content: [] }),
  strange: () => ({ content: "not a list" }),
  deep: () => ({ content: [], structuredContent: { a: JSON.parse("[".repeat(5_000) + "]".repeat(5_000)) } }),
  parts: () => ({
    content: [
      { type: "text", text: "look:" },
      { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
      { type: "image", data: "not base64!", mimeType: "image/png" },
      { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "note:1", text: "a note" } },
      { type: "resource", resource: { uri: "file:x", blob: "SGVsbG8=", mimeType: "application/pdf" } },
      { type: "resource_link", uri: "note:2", name: "two", description: "another\u001b[2J note" },
      { type: "hologram" }
    ]
  }),
  wait: (_, id) => {
    open.set(id, "wait")
    mark("marks", "waiting")
    return null
  },
  progress: (_, id, params) => {
    const token = (params._meta as Arguments | undefined)?.progressToken
    for (const progress of [1, 2]) {
      send({
        method: "notifications/progress",
        params: { progressToken: token, progress, total: 3, message: `step ${progress}\u0007` }
      })
    }
    open.set(id, "progress")
    return null
  },
  finish: () => {
    for (const [id, name] of open) send({ id, result: text(`${name} finished`) })
    open.clear()
    return text("done")
  },
  big: (args, id) => {
    // The id comes last, as in the libraries' own answers; written in pieces, so that no string is too long.
    process.stdout.write('{"result":{"content":[{"type":"text","text":"')
    const piece = "0123456789abcdef".repeat(4_096)
    for (let written = 0; written < Number(args.bytes); written += piece.length) process.stdout.write(piece)
    process.stdout.write(args.id === false ? '"}]}}\n' : `"}]},"jsonrpc":"2.0","id":${id}}\n`)
    return null
  },
  garbage: (args, id) => {
    const lines = Number(args.lines)
    process.stdout.write("{not json}\n\n[1,2]\n\u0000\u001b[2J\n".repeat(Math.max(1, Math.floor(lines / 3))))
    send({ id: 99_999, result: text("for nobody") })
    send({ id, result: text("first") })
    send({ id, result: text("second") })
    return null
  },
  child: () => {
    // It leaves the group of its parent, and does not end when nobody writes to it.
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" })
    child.unref()
    return text(String(child.pid))
  },
  change: (args) => {
    extra = Array.isArray(args.tools) ? args.tools.map(String) : []
    setTimeout(() => send({ method: "notifications/tools/list_changed" }), 0)
    return text("changed")
  },
  roots: (_, id) => {
    open.set(id, "roots")
    send({ id: 7_000, method: "roots/list" })
    return null
  },
  sampling: (_, id) => {
    open.set(id, "sampling")
    send({ id: 7_000, method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } })
    return null
  }
}

const plainTools = () =>
  [...Object.keys(handlers), ...extra].map((name) => ({
    name,
    description: `${name} of the test`,
    inputSchema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      ...object({ text: { type: "string", minLength: 1 } })
    }
  }))

const hostileTools = () => [
  { name: "echo", description: "x".repeat(1_000_000), inputSchema: object() },
  { name: "echo", description: "again", inputSchema: object() },
  { name: "ec ho\u001b[2J", description: "control \u001b[31m bytes", inputSchema: object() },
  { name: "ec_ho__2J", description: "the same name once it is clean", inputSchema: object() },
  { name: "n".repeat(150), description: "long", inputSchema: object() },
  { name: "", description: "no name", inputSchema: object() },
  { name: "wide", description: "too large", inputSchema: object({ x: { enum: ["y".repeat(100_000)] } }) },
  { name: "deep", inputSchema: object({ x: JSON.parse('{"items":'.repeat(60) + "{}" + "}".repeat(60)) }) },
  { name: "odd", description: 7, inputSchema: "none" },
  "not a tool",
  null,
  { name: "bare" }
]

const methods: { readonly [name: string]: (params: Arguments, id: number) => object | null } = {
  initialize: (params) => {
    mark("marks", `client ${JSON.stringify(params.clientInfo)} ${JSON.stringify(params.capabilities)}`)
    return {
      protocolVersion: params.protocolVersion,
      serverInfo: { name: "test", title: "Test\u001b[2J server", version: "1" },
      capabilities: { tools: { listChanged: true }, prompts: {}, resources: {} },
      instructions: mode === "hostile" ? "i".repeat(100_000) : "Be kind."
    }
  },
  ping: () => ({}),
  "tools/list": (params) => {
    if (mode === "hostile") return { tools: params.cursor === undefined ? hostileTools() : [], nextCursor: "more" }
    if (mode === "endless") {
      const page = Number(params.cursor ?? 0)
      return {
        tools: Array.from({ length: 100 }, (_, at) => ({ name: `t${page}_${at}`, inputSchema: object() })),
        nextCursor: String(page + 1)
      }
    }
    const [first, ...rest] = plainTools()
    return params.cursor === undefined ? { tools: [first], nextCursor: "rest" } : { tools: rest }
  },
  "tools/call": (params, id) => {
    const handler = handlers[String(params.name)]
    if (handler === undefined) {
      return extra.includes(String(params.name)) ? text("extra") : null
    }
    return handler((params.arguments ?? {}) as Arguments, id, params)
  },
  "prompts/list": () => ({
    prompts: [
      {
        name: "review",
        description: "Reviews\u001b[2J code",
        arguments: [{ name: "file", required: true }, { name: "how" }]
      },
      { name: "bad\u001b", description: "x" }
    ]
  }),
  "prompts/get": (params) => ({
    messages: [
      { role: "user", content: { type: "text", text: `Review ${JSON.stringify(params.arguments)}` } },
      { role: "user", content: { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" } },
      { role: "assistant", content: { type: "text", text: "Gladly." } }
    ]
  }),
  "resources/list": () => ({ resources: [{ uri: "note:1", name: "one", mimeType: "text/plain" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [{ uriTemplate: "note:{n}", description: "any note" }] }),
  "resources/read": (params) =>
    params.uri === "note:1" ? { contents: [{ uri: "note:1", text: "the note" }] } : { contents: [] }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === "notifications/cancelled") {
    mark("marks", `cancelled ${open.get(message.params.requestId) ?? "nothing"}`)
    open.delete(message.params.requestId)
    return
  }
  if (message.id === 7_000) {
    for (const [id] of open) send({ id, result: text(JSON.stringify(message.result ?? message.error)) })
    open.clear()
    return
  }
  if (mode === "silent" || message.id === undefined) return
  const handler = methods[message.method]
  if (handler === undefined) {
    send({ id: message.id, error: { code: -32_601, message: `no ${message.method}` } })
    return
  }
  const result = handler(message.params ?? {}, message.id)
  if (result !== null) send({ id: message.id, result })
})

writeFileSync(join(folder, "ready"), "")
