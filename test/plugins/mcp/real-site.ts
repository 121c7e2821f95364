/**
 * A server at an address by the official library: sessions, streams of events, and, where it is asked for, tokens that an
 * authorization server has given. Its tools ask people, tell of progress, and say what the client has told them.
 */
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import {
  CallToolRequestSchema,
  type ElicitRequestFormParams,
  ElicitResultSchema,
  isInitializeRequest,
  ListToolsRequestSchema
} from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import * as http from "node:http"
import type { AddressInfo } from "node:net"

export interface RealSite {
  readonly url: string
  readonly origin: string
  /** Values of `authorization` that came, one for each request. */
  readonly authorizations: Array<string | undefined>
  /** Names of its tools, in the order in which it lists them. */
  readonly tools: Array<string>
  /** Tells its clients that its tools have changed. */
  readonly announce: () => Promise<void>
  /** Completes when its tools have been listed so often. */
  readonly listed: (times: number) => Promise<void>
  /** Names of the tools that were called. */
  readonly called: Array<string>
  /** Answers that people gave to what it asked. */
  readonly answers: Array<unknown>
  /** Whether a request may be let in; default: all are. */
  admits: (authorization: string | undefined) => boolean
  /** What a token would have to be for, by the name of the tool that is called. */
  readonly scopes: Map<string, string>
  /** What it says of who gives tokens for it; `null`: nothing. */
  resource: { readonly [name: string]: unknown } | null
  /** What stands behind `Bearer` where nobody is let in. */
  challenge: string
}

const makeServer = (self: RealSite, authorization: () => string | undefined, onList: () => void) => {
  const server = new Server({ name: "real", version: "1" }, {
    capabilities: { tools: { listChanged: true }, logging: {} }
  })
  server.setRequestHandler(ListToolsRequestSchema, () => {
    onList()
    return { tools: self.tools.map((name) => ({ name, inputSchema: { type: "object" as const } })) }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const text = (value: unknown) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] })
    self.called.push(params.name)
    if (params.arguments?.never === true) await new Promise(() => {})
    if (params.name === "ask") {
      const { own, times = 1, ...rest } = params.arguments ?? {}
      const asked = { ...rest, mode: "form" } as ElicitRequestFormParams
      for (let time = 1; time <= Number(times); time++) {
        // On the stream of the call's own answer, or on the one for whatever else there is.
        const answer = own === true
          ? await extra.sendRequest({ method: "elicitation/create", params: asked }, ElicitResultSchema)
          : await server.elicitInput(asked)
        self.answers.push(answer)
      }
      return text(self.answers.at(-1))
    }
    if (params.name === "roots") return text((await server.listRoots()).roots)
    if (params.name === "repeat") {
      await server.sendLoggingMessage({ level: "error", data: `logged ${authorization()}` }, extra.sessionId)
      throw new Error(`you said ${authorization()}`)
    }
    if (params.name === "slow") {
      await server.sendLoggingMessage(
        { level: "warning", data: `half way of ${params.arguments?.id}` },
        extra.sessionId
      )
      const progressToken = extra._meta?.progressToken
      if (progressToken !== undefined) {
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken, progress: 1, total: 2, message: "half way" }
        })
      }
    }
    return text(params.arguments)
  })
  return server
}

const isCall = (message: unknown): message is { readonly params: { readonly name: string } } =>
  typeof message === "object" && message !== null && "method" in message && message.method === "tools/call"

const start = (): Promise<{ readonly self: RealSite; readonly close: () => Promise<void> }> => {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const servers: Array<Server> = []
  let lists = 0
  let waiting: ReadonlyArray<() => void> = []
  const onList = () => {
    lists++
    for (const look of waiting) look()
  }
  let lastAuthorization: string | undefined
  const handle = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (request.url?.startsWith("/.well-known/oauth-protected-resource") === true && self.resource !== null) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(self.resource))
      return
    }
    if (request.url !== "/mcp") {
      response.writeHead(404).end()
      return
    }
    lastAuthorization = request.headers.authorization
    self.authorizations.push(lastAuthorization)
    if (!self.admits(lastAuthorization)) {
      response.writeHead(401, { "www-authenticate": `Bearer ${self.challenge}` }).end("no")
      return
    }
    let body = ""
    for await (const chunk of request.setEncoding("utf8")) body += chunk
    const message: unknown = body === "" ? undefined : JSON.parse(body)
    const scope = isCall(message) ? self.scopes.get(message.params.name) : undefined
    if (scope !== undefined) {
      response.writeHead(403, { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` }).end("no")
      return
    }
    const known = sessions.get(String(request.headers["mcp-session-id"]))
    if (known !== undefined) return known.handleRequest(request, response, message)
    if (!isInitializeRequest(message)) {
      response.writeHead(404).end()
      return
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
      }
    })
    const made = makeServer(self, () => lastAuthorization, onList)
    servers.push(made)
    await made.connect(transport as Transport)
    await transport.handleRequest(request, response, message)
  }
  const server = http.createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  const self: RealSite = {
    url: "",
    origin: "",
    authorizations: [],
    tools: ["echo", "ask", "roots", "slow", "repeat"],
    announce: async () => {
      for (const server of servers) await server.sendToolListChanged()
    },
    listed: (times) =>
      new Promise((resolve) => {
        const look = () => {
          if (lists >= times) resolve()
        }
        waiting = [...waiting, look]
        look()
      }),
    called: [],
    answers: [],
    admits: () => true,
    scopes: new Map(),
    resource: null,
    challenge: ""
  }
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      Object.assign(self, { origin, url: `${origin}/mcp` })
      resolve({
        self,
        close: () =>
          new Promise((done) => {
            server.close(() => done())
            server.closeAllConnections()
          })
      })
    })
  })
}

export const realSite = Effect.map(
  Effect.acquireRelease(Effect.promise(start), ({ close }) => Effect.promise(close)),
  ({ self }) => self
)
