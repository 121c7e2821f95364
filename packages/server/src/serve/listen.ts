/** Why a server cannot listen where it was told to, in words that say what to do. */
import * as Schema from "effect/Schema"
import { isIPv6 } from "node:net"

/** An address that cannot be had; the message says why and what to do. */
export class AddressUnavailable
  extends Schema.TaggedError<AddressUnavailable>()("AddressUnavailable", { message: Schema.String })
{}

export const explain = (
  { host, port }: { readonly host: string; readonly port: number },
  error: NodeJS.ErrnoException
): string => {
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
