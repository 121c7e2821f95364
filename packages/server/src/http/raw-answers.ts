/** Answers where there is no response object: to upgrades that are refused, and to what is no HTTP. */
import { STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import type { ApiFailure } from "./failure.ts"
import { failure } from "./failure.ts"

const write = (socket: Duplex, status: number, error: ApiFailure): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = JSON.stringify(error.body)
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "content-length": `${Buffer.byteLength(body)}`,
    connection: "close",
    ...error.headers
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}\r\n${lines.join("\r\n")}\r\n\r\n${body}`)
}

/** Answers an upgrade that is not taken. */
export const refuseUpgrade = (socket: Duplex, error: ApiFailure): void => write(socket, error.status, error)

/** Answers what Node could not read as a request. */
export const socketRefusals = (headerBytes: number) => (error: NodeJS.ErrnoException, socket: Duplex): void => {
  if (error.code === "ECONNRESET") {
    socket.destroy()
    return
  }
  socket.on("error", () => {})
  if (error.code === "HPE_HEADER_OVERFLOW") {
    return write(socket, 431, failure("too_large", `The headers are larger than ${headerBytes} bytes.`))
  }
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return write(socket, 408, failure("timeout", "The request did not arrive in time."))
  }
  write(socket, 400, failure("invalid_request", "This is no HTTP request."))
}
