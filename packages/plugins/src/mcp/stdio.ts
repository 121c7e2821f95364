/**
 * The transport of the protocol's client over a server's standard streams: one JSON message per line.
 *
 * A line that is no message is counted and otherwise ignored, up to a number; an answer that is too long becomes an error of
 * the request that it answers. What ends the connection is told in `reason`.
 */
import { sizeOf } from "@bezel/core/tool"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js"
import { answeredRequest, lineSplitter, type LongLine } from "./lines.ts"
import type { ServerProcess } from "./process.ts"

/** Largest message of a server, in bytes. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024
const MAX_STRAY_LINES = 1_000
/** For what a process has written before it ended and we have not read yet. */
const LAST_OUTPUT_MS = 200

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: <T extends JSONRPCMessage>(message: T) => void
  /** Why the connection has ended. */
  reason = "it was closed"
  private closed = false
  private stray = 0
  private readonly server: ServerProcess

  constructor(server: ServerProcess) {
    this.server = server
  }

  async start(): Promise<void> {
    const { child } = this.server
    const lines = lineSplitter({
      maxBytes: MAX_MESSAGE_BYTES,
      onLine: (line) => this.line(line),
      onLong: (line) => this.long(line)
    })
    child.stdout.on("data", (chunk: Buffer) => {
      if (!this.closed) lines.push(chunk)
    })
    // Of a process that ends, that it closed its output is not what one wants to know.
    child.stdout.once("end", () => {
      setTimeout(() => {
        if (child.exitCode === null && child.signalCode === null) this.end("it closed its output")
      }, LAST_OUTPUT_MS)
    })
    const exited = (code: number | null, signal: NodeJS.Signals | null) => {
      const words = this.server.lastWords()
      const how = signal === null ? `its process ended with exit code ${code}` : `its process was ended by ${signal}`
      const ended = () => this.end(words === "" ? how : `${how}, after it wrote: ${words}`)
      const timer = setTimeout(ended, LAST_OUTPUT_MS)
      child.once("close", () => {
        clearTimeout(timer)
        ended()
      })
    }
    if (child.exitCode !== null || child.signalCode !== null) exited(child.exitCode, child.signalCode)
    else child.once("exit", exited)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.server.child
    if (this.closed || !stdin.writable) throw new Error("it does not read any more")
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => error ? reject(error) : resolve())
    })
  }

  async close(): Promise<void> {
    this.end("it was closed")
  }

  private end(reason: string): void {
    if (this.closed) return
    this.closed = true
    this.reason = reason
    this.server.child.stdin.end()
    this.onclose?.()
  }

  private line(line: string): void {
    if (this.closed || line.trim() === "") return
    const message = parse(line)
    if (message === null) return this.strange(`a line that is no message: ${line.slice(0, 200)}`)
    // The client must survive whatever its own handlers make of a message.
    try {
      this.onmessage?.(message)
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)))
    }
  }

  private long(line: LongLine): void {
    if (this.closed) return
    const id = answeredRequest(line)
    const what = `a message of ${sizeOf(line.bytes)}, and ${sizeOf(MAX_MESSAGE_BYTES)} is the limit`
    if (id === null) return this.end(`it sent ${what}`)
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32_000, message: `its answer was ${what}` } })
  }

  private strange(what: string): void {
    this.stray++
    if (this.stray > MAX_STRAY_LINES) return this.end("what it writes is not the protocol")
    if (this.stray <= 5) this.onerror?.(new Error(`it wrote ${what}`))
  }
}

const parse = (line: string): JSONRPCMessage | null => {
  try {
    const read = JSONRPCMessageSchema.safeParse(JSON.parse(line))
    return read.success ? read.data : null
  } catch {
    return null
  }
}
