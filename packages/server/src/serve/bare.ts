/** Answers `/health` and `/rpc`. */
import type { IncomingMessage } from "node:http"
import type { Tokens } from "./caller.ts"
import type { HttpHandlers } from "./listen.ts"
import { type OnUpgrade, refuseUpgrade } from "./rpc.ts"

export const bareHandlers = (
  { onUpgrade, tokens, version }: { readonly tokens: Tokens; readonly version: string; readonly onUpgrade: OnUpgrade }
): HttpHandlers => {
  const callerOf = (request: IncomingMessage) => {
    const [, token] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? "") ?? []
    return token === undefined ? null : tokens.find(token)
  }
  return {
    request: (request, response) => {
      const isHealth = request.method === "GET" && request.url === "/health"
      const body = isHealth
        ? { status: "ok", version }
        : { error: { code: "not_found", message: "There is no such route." } }
      response.writeHead(isHealth ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body))
    },
    upgrade: (request, socket, head) => {
      const caller = callerOf(request)
      if (caller === null) {
        return refuseUpgrade(socket, 401, { code: "unauthorized", message: "This takes the token of the server." })
      }
      onUpgrade(request, socket, head, caller)
    }
  }
}
