/**
 * The listening socket of a server: it opens when everything behind it is ready, and what it has accepted gets an answer.
 *
 * At the end of the scope nothing new is accepted, requests that are being answered have a moment to finish, and then what is
 * still open is closed.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { isIPv6 } from "node:net"
import type { Duplex } from "node:stream"

/** What answers. */
export interface HttpHandlers {
  readonly request: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

export interface ListenOptions {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
}

/** An address that cannot be had; the message says why and what to do. */
export class AddressUnavailable
  extends Schema.TaggedError<AddressUnavailable>()("AddressUnavailable", { message: Schema.String })
{}

const finishMillis = 1_500

export const explain = ({ host, port }: ListenOptions, error: NodeJS.ErrnoException): string => {
  switch (error.code) {
    case "EADDRINUSE":
      return `Port ${port} of ${host} is in use by another program; choose another one with --port, or --port 0 for any.`
    case "EACCES":
      return `Port ${port} of ${host} may not be used by this user; choose one over 1023 with --port.`
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${host} is no address of this machine; choose another one with --host.`
    default:
      return `${host}:${port} cannot be listened on: ${error.message}`
  }
}

/** An address as it stands in a URL. */
export const urlHost = (host: string): string => isIPv6(host) ? `[${host}]` : host

/** Gives the port. */
export const listen = (
  options: ListenOptions,
  handlers: HttpHandlers
): Effect.Effect<number, AddressUnavailable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>, AddressUnavailable>((resume) => {
      const server = createServer(handlers.request).on("upgrade", handlers.upgrade)
      const fail = (error: NodeJS.ErrnoException) =>
        resume(Effect.fail(new AddressUnavailable({ message: explain(options, error) })))
      server.once("error", fail)
      server.listen(options.port, options.host, () => {
        server.off("error", fail)
        // Of single connections; the server itself goes on.
        server.on("error", () => {})
        resume(Effect.succeed(server))
      })
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        const closing = setTimeout(() => server.closeAllConnections(), finishMillis)
        server.close(() => {
          clearTimeout(closing)
          resume(Effect.void)
        })
        server.closeIdleConnections()
      })
  ).pipe(Effect.map((server) => {
    const address = server.address()
    return typeof address === "object" && address !== null ? address.port : options.port
  }))
