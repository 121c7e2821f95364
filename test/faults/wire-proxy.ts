/** Something between a client and its host that loses, cuts, delays or repeats frames. */
import { Effect, type Scope } from "effect"
import { connect, createServer, type Socket } from "node:net"

export interface Fault {
  readonly kind: "drop" | "cut" | "delay" | "double"
  readonly direction: "to-host" | "to-client"
  /** Of the frames of the first connection in that direction, the first being 0. */
  readonly frame: number
}

/** Listens on `path` and passes frames on to `upstream`, with one fault. Connections after the first are clean. */
export const faultyProxy = (path: string, upstream: string, fault: Fault): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      let connections = 0
      const server = createServer((client) => {
        const host = connect(upstream)
        const first = connections++ === 0
        for (const socket of [client, host]) {
          socket.on("error", () => {})
          socket.on("close", () => {
            client.destroy()
            host.destroy()
          })
        }
        pass(client, host, first && fault.direction === "to-host" ? fault : null)
        pass(host, client, first && fault.direction === "to-client" ? fault : null)
      })
      server.listen(path, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ))

const pass = (from: Socket, to: Socket, fault: Fault | null): void => {
  let rest = ""
  let count = 0
  let held = Promise.resolve()
  const write = (text: string) => {
    held = held.then(() => {
      to.write(text)
    })
  }
  from.setEncoding("utf8").on("data", (text: string) => {
    const frames = (rest + text).split("\n")
    rest = frames.pop() ?? ""
    for (const frame of frames) {
      if (fault === null || count++ !== fault.frame) {
        write(`${frame}\n`)
        continue
      }
      switch (fault.kind) {
        case "drop":
          break
        case "double":
          write(`${frame}\n${frame}\n`)
          break
        case "delay":
          held = held.then(() => new Promise((resolve) => setTimeout(resolve, 60)))
          write(`${frame}\n`)
          break
        case "cut":
          held = held.then(() => {
            to.write(frame.slice(0, Math.ceil(frame.length / 2)))
            to.end()
          })
      }
    }
  })
}
