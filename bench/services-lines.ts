/** Lines over a socket, as little as it takes: the limit that everything else is compared with. */
import type { Socket } from "node:net"

export const createLineReader = (socket: Socket, onLine: (line: string) => void): void => {
  let rest = ""
  socket.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) onLine(line)
  })
}

/** A transport of capnweb over lines. */
export const lineTransport = (socket: Socket) => {
  const lines: Array<string> = []
  let waiting: ((line: string) => void) | undefined
  createLineReader(socket, (line) => {
    if (waiting === undefined) return void lines.push(line)
    waiting(line)
    waiting = undefined
  })
  return {
    send: (message: string) => {
      socket.write(`${message}\n`)
      return Promise.resolve()
    },
    receive: () =>
      new Promise<string>((resolve) => {
        const line = lines.shift()
        if (line === undefined) waiting = resolve
        else resolve(line)
      })
  }
}
