/**
 * How bytes come to a server and back: its standard streams, or requests to its address with what says who asks. Also what goes
 * wrong on the way, as one clause.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type Bearer, makeBearer, type Wanted } from "./bearer-fetch.ts"
import { boundedFetch } from "./bounded-fetch.ts"
import type { McpServer } from "./contract.ts"
import { McpFailure } from "./failure.ts"
import { startProcess } from "./process.ts"
import type * as sdkModule from "./sdk.ts"
import { oneLine } from "./text.ts"

export type Sdk = typeof sdkModule

export const loadSdk: Effect.Effect<Sdk> = Effect.promise(() => import("./sdk.ts"))

export interface TransportOptions {
  readonly location: string
  readonly log: (line: string) => void
  /** The token of a sign-in to an address, or another one in place of one that was refused. */
  readonly token: (refused: Redacted.Redacted | null) => Effect.Effect<Redacted.Redacted | null, McpFailure>
  /** What is said where somebody has to sign in. */
  readonly wanted: (why: Wanted) => McpFailure
}

const goodbyeLimit: Duration.Input = "500 millis"

const cause = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? cause(error.cause) : error

/** An error of the library, or of what it stands on. */
export const failureOf = (sdk: Sdk, bearer: Bearer | null) => (error: unknown): McpFailure => {
  const hidden = (text: string) => bearer === null ? text : bearer.hide(text)
  if (error instanceof McpFailure) return error
  if (error instanceof sdk.ProtocolError) {
    const message = error.message.replace(/^(?:MCP error -?\d+: )+/, "")
    return message === "Connection closed"
      ? new McpFailure({ message: "the connection was lost", lost: true })
      : new McpFailure({ message: oneLine(hidden(message), 2_000) })
  }
  if (error instanceof sdk.StreamableHTTPError) {
    const code = error.code ?? 0
    const refusal = bearer?.refusal(code) ?? null
    if (refusal !== null) return refusal
    const hint = code === 401 || code === 403 ? "; say who you are in its headers" : ""
    const text = oneLine(hidden(error.message.replace(/^Streamable HTTP error: /, "")), 300)
    return new McpFailure({ message: code >= 100 ? `it answered with HTTP status ${code}${hint}: ${text}` : text })
  }
  const root = cause(error)
  const text = root instanceof Error ? root.message : String(root)
  if (text === "Not connected") return new McpFailure({ message: "the connection was lost", lost: true })
  return new McpFailure({ message: oneLine(text === "" ? "it cannot be reached" : hidden(text), 300) })
}

export interface Opened {
  readonly transport: Transport
  /** Why it has ended, if it has. */
  readonly reason: () => string | null
  readonly goodbye: Effect.Effect<void>
  /** `null`: no sign-in is needed there, or its headers say who one is. */
  readonly bearer: Bearer | null
}

/** Opens it; what it holds ends with the scope. */
export const openTransport = (
  sdk: Sdk,
  server: McpServer,
  options: TransportOptions
): Effect.Effect<Opened, McpFailure, Scope.Scope> =>
  Effect.gen(function*() {
    if ("command" in server) {
      const process = yield* startProcess(server, options.location, options.log)
      const transport = new sdk.StdioTransport(process)
      return { transport, reason: () => transport.reason, goodbye: Effect.void, bearer: null }
    }
    const headers = Object.fromEntries(
      Object.entries(server.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])
    )
    const { MAX_MESSAGE_BYTES } = yield* Effect.promise(() => import("./stdio.ts"))
    const run = yield* FiberSet.makeRuntimePromise<never>()
    const base = boundedFetch(MAX_MESSAGE_BYTES)
    const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === "authorization")
    const bearer = isNamed ? null : makeBearer({
      url: server.url,
      base,
      wanted: options.wanted,
      token: (refused) => run(options.token(refused))
    })
    const transport = yield* Effect.try({
      try: () =>
        new sdk.StreamableHTTPClientTransport(new URL(server.url), {
          requestInit: { headers },
          fetch: bearer?.fetch ?? base
        }),
      catch: failureOf(sdk, bearer)
    })
    const goodbye = Effect.tryPromise(() => transport.terminateSession())
    return {
      // Its `sessionId` is a getter of `string | undefined`, which an optional member may not be here.
      transport: transport as Transport,
      bearer,
      reason: () => null,
      goodbye: Effect.ignore(Effect.timeoutOption(goodbye, goodbyeLimit))
    }
  })
