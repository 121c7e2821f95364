/** One side of `bench/services.ts` in a process of its own: `node services-host.ts KIND SOCKET MODULE`. Echoes. */
import { createServer, type Socket } from "node:net"
import { createLineReader } from "./services-lines.ts"

const [kind = "", path = "", module = ""] = process.argv.slice(2)

const listen = (serve: (socket: Socket) => void): Promise<void> =>
  new Promise((resolve) => createServer({ noDelay: true }, serve).listen(path, () => resolve()))

switch (kind) {
  case "raw":
    await listen((socket) =>
      createLineReader(socket, (line) => {
        const { id, payload } = JSON.parse(line)
        socket.write(`${JSON.stringify({ id, value: payload })}\n`)
      })
    )
    break
  case "vscode-jsonrpc": {
    const rpc = await import(module)
    await listen((socket) => {
      const connection = rpc.createMessageConnection(
        new rpc.StreamMessageReader(socket),
        new rpc.StreamMessageWriter(socket)
      )
      connection.onRequest("echo", (payload: unknown) => payload)
      connection.listen()
    })
    break
  }
  case "capnweb": {
    const rpc = await import(module)
    const { lineTransport } = await import("./services-lines.ts")
    class Echo extends rpc.RpcTarget {
      echo(payload: unknown) {
        return payload
      }
    }
    await listen((socket) => void new rpc.RpcSession(lineTransport(socket), new Echo()))
    break
  }
  case "bezel": {
    const { serveEcho } = await import("./services-bezel.ts")
    await serveEcho(path)
    break
  }
  default:
    throw new Error(`unknown kind ${kind}`)
}
process.on("message", (message) => {
  if (message === "usage") process.send?.(process.cpuUsage())
})
process.on("disconnect", () => process.exit())
process.send?.("ready")
