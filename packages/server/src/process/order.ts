/**
 * What a coordinator and a session host's process say to each other over the descriptor that the process inherits.
 *
 * One line of JSON each. The first is the order, with the secret that admits the host: nothing of it is ever in arguments or
 * environment. The descriptor is also the lifeline: a host whose coordinator is gone ends itself.
 */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"

const Location = Schema.Struct({ directory: Schema.String, workspaceID: Schema.NullOr(Schema.String) })

/** What a process is started for. */
export const HostOrder = Schema.Struct({
  /** The host's name in the fleet. */
  host: Schema.String,
  location: Location,
  /** The one session that it serves; `null` for all of its location. */
  sessionID: Schema.NullOr(Schema.String),
  /** Where it listens for its clients. */
  socket: Schema.String,
  /** Where its coordinator listens. */
  coordinator: Schema.String,
  /** Admits it to its coordinator, once. */
  secret: Schema.String,
  /** Without clients and work for so long it ends. Milliseconds. */
  idleMillis: Schema.Finite,
  /** For the program that runs it: what its own command line said. */
  options: Schema.Json
})
export type HostOrder = typeof HostOrder.Type

const ToHost = Schema.Union([
  Schema.Struct({ type: Schema.Literal("order"), order: HostOrder }),
  Schema.Struct({ type: Schema.Literal("ping") }),
  /** Another secret, for a host that has asked for one. */
  Schema.Struct({ type: Schema.Literal("secret"), secret: Schema.String }),
  Schema.Struct({ type: Schema.Literal("stop") })
])
export type ToHost = typeof ToHost.Type

const FromHost = Schema.Union([
  Schema.Struct({ type: Schema.Literal("ready") }),
  Schema.Struct({ type: Schema.Literal("pong") }),
  /** Its secret is spent: an answer with the next one was lost on the way. */
  Schema.Struct({ type: Schema.Literal("spent") }),
  /** It is about to end because nobody needs it. */
  Schema.Struct({ type: Schema.Literal("idle") }),
  /** It cannot do what it was started for. */
  Schema.Struct({ type: Schema.Literal("failed"), message: Schema.String })
])
export type FromHost = typeof FromHost.Type

const decodeToHost = Schema.decodeUnknownExit(Schema.fromJsonString(ToHost))
const decodeFromHost = Schema.decodeUnknownExit(Schema.fromJsonString(FromHost))

/** What a line says; `null` for one that says nothing known. */
export const readToHost = (line: string): ToHost | null => {
  const exit = decodeToHost(line)
  return Exit.isSuccess(exit) ? exit.value : null
}
export const readFromHost = (line: string): FromHost | null => {
  const exit = decodeFromHost(line)
  return Exit.isSuccess(exit) ? exit.value : null
}

export const writeLine = (message: ToHost | FromHost): string => `${JSON.stringify(message)}\n`

/** Cuts a stream of text into lines. One that grows without end is dropped. */
export const lineReader = (onLine: (line: string) => void): (piece: Buffer) => void => {
  let rest = ""
  return (piece) => {
    const lines = (rest + piece.toString("utf8")).split("\n")
    rest = (lines.pop() ?? "").slice(0, 1_048_576)
    for (const line of lines) if (line !== "") onLine(line)
  }
}
