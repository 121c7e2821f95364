/**
 * Unix sockets: how a presentation reaches a session host in another process, and a session host its coordinator.
 *
 * The socket file is the authentication: it is readable and writable by its owner only. Node's modules are loaded when
 * they are needed, so that whoever only speaks WebSocket does not carry them.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Socket } from "node:net"
import { ServiceError } from "../service/index.ts"
import { defaultFrameLimit, makeFramed } from "./framed.ts"
import type { FrameOptions } from "./framed.ts"
import { FrameSplitter } from "./framing.ts"
import type { Transport } from "./transport.ts"

/** The longest path that every system takes for a socket, in bytes. */
const pathLimit = 103

/** A socket could not be opened for listening; the message says why and what to do. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  reason: Schema.Literals(["path", "in-use", "failed"]),
  message: Schema.String
}) {}

/** A connected stream of bytes as a transport. It belongs to the transport from here on. */
export const socketTransport = (socket: Socket, options: FrameOptions = {}): Transport => {
  const splitter = new FrameSplitter(options.frameLimit ?? defaultFrameLimit)
  const framed = makeFramed(
    {
      write: (frames) => socket.write(frames.length === 1 ? `${frames[0]}\n` : `${frames.join("\n")}\n`),
      end: () => socket.end(),
      destroy: () => socket.destroy()
    },
    { pause: () => socket.pause(), resume: () => socket.resume() },
    options
  )
  let broken = false
  socket.on("data", (piece) => {
    if (broken) return
    const frames = splitter.push(typeof piece === "string" ? Buffer.from(piece) : piece)
    if (frames !== null) {
      if (frames.length > 0) framed.received(frames)
      return
    }
    broken = true
    framed.oversized()
  })
  socket.on("drain", () => framed.drained())
  // What went wrong with a socket is followed by its close, which is all that anybody above needs.
  socket.on("error", () => {})
  socket.on("end", () => framed.gone())
  socket.on("close", () => framed.gone())
  return framed.transport
}

export interface ListenUnixOptions extends FrameOptions {
  readonly path: string
  /** Serves one connection until it is closed. */
  readonly serve: (transport: Transport) => Effect.Effect<void>
}

/**
 * Listens on a socket file that only its owner can use, for as long as the scope. A file that a dead process left is
 * replaced; one where somebody answers is `in-use`. Connections are closed with the scope.
 */
export const listenUnix = (options: ListenUnixOptions): Effect.Effect<void, ListenError, Scope.Scope> =>
  Effect.gen(function*() {
    const { path } = options
    if (Buffer.byteLength(path) > pathLimit) {
      return yield* new ListenError({
        reason: "path",
        message:
          `The socket path ${path} is longer than ${pathLimit} bytes, which systems refuse; choose a shorter one.`
      })
    }
    const [net, fs, { dirname }, { isMainThread }] = yield* Effect.promise(() =>
      Promise.all([import("node:net"), import("node:fs"), import("node:path"), import("node:worker_threads")])
    )
    const sockets = new Set<Socket>()
    const run = yield* FiberSet.makeRuntime<never>()
    const server = net.createServer({ noDelay: true }, (socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
      run(options.serve(socketTransport(socket, options)))
    })
    yield* Effect.addFinalizer(() =>
      Effect.callback<void>((resume) => {
        for (const socket of sockets) socket.destroy()
        if (!server.listening) return resume(Effect.void)
        server.close(() => resume(Effect.void))
      })
    )
    const open = Effect.callback<void, NodeJS.ErrnoException>((resume) => {
      server.once("error", (error) => resume(Effect.fail(error)))
      // Between the file's creation and a later chmod anybody could connect. A worker has no mask of its own to set.
      const mask = isMainThread ? process.umask(0o177) : null
      server.listen(path, () => resume(Effect.void))
      if (mask !== null) process.umask(mask)
      if (fs.existsSync(path)) fs.chmodSync(path, 0o600)
    })
    yield* Effect.try({
      try: () => fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 }),
      catch: (error) => failed(path, error)
    })
    yield* Effect.catch(open, (error) =>
      error.code !== "EADDRINUSE"
        ? Effect.fail(failed(path, error))
        : Effect.flatMap(answers(net, path), (alive) => {
          if (alive) {
            return Effect.fail(
              new ListenError({
                reason: "in-use",
                message: `Another process answers on ${path}; stop it, or choose another path.`
              })
            )
          }
          if (fs.statSync(path, { throwIfNoEntry: false })?.isSocket() === false) {
            return Effect.fail(
              new ListenError({
                reason: "in-use",
                message: `${path} is a file and no socket; move it away, or choose another path.`
              })
            )
          }
          fs.rmSync(path, { force: true })
          return Effect.mapError(open, (again) => failed(path, again))
        }))
    server.on("error", () => {})
  })

const failed = (path: string, error: unknown): ListenError =>
  new ListenError({
    reason: "failed",
    message: `The socket ${path} cannot be opened: ${error instanceof Error ? error.message : String(error)}.`
  })

/** Whether somebody accepts connections there. */
const answers = (net: { readonly connect: (path: string) => Socket }, path: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = net.connect(path)
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
  })

/** For `ConnectionOptions.connect`: one connection to the socket at `path`. Its scope closes it. */
export const connectUnix = (
  path: string,
  options: FrameOptions = {}
): Effect.Effect<Transport, ServiceError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.flatMap(Effect.promise(() => import("node:net")), (net) =>
      Effect.callback<Socket, ServiceError>((resume) => {
        const socket = net.connect(path)
        // Also where nobody waits any more: an error that nobody hears would end the process.
        socket.on("error", () => {})
        const refuse = (error: Error) => resume(Effect.fail(unreachable(path, error)))
        socket.once("error", refuse)
        socket.once("connect", () => {
          socket.off("error", refuse)
          resume(Effect.succeed(socket))
        })
        return Effect.sync(() => socket.destroy())
      })),
    (socket) => Effect.sync(() => socket.end())
  ).pipe(Effect.map((socket) => socketTransport(socket, options)))

const unreachable = (path: string, error: Error): ServiceError =>
  new ServiceError({ code: "disconnected", message: `No host answers on ${path}: ${error.message}.` })
