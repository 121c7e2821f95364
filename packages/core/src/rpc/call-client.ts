/**
 * The calls that a link has open. The same messages as those of `effect/rpc`, without its codecs and fibers: a call's
 * payload and result are opaque to it, so all that it would do is a number and a callback. A hot path, so plain TypeScript
 * behind an Effect face.
 */
import * as Effect from "effect/Effect"
import type { ServiceError } from "../service/index.ts"
import { fromWireError, toWireError } from "./wire.ts"
import type { Call, WireError } from "./wire.ts"

type Resume = (exit: Effect.Effect<unknown, WireError>) => void

export interface ClientFrames {
  /** Null when it is on its way, or why it is not. */
  readonly post: (frame: string) => ServiceError | null
  readonly nextId: () => number
}

export class ClientCalls {
  private readonly open = new Map<number, Resume>()
  private readonly frames: ClientFrames

  constructor(frames: ClientFrames) {
    this.frames = frames
  }

  call(call: Call): Effect.Effect<unknown, WireError> {
    return Effect.callback<unknown, WireError>((resume) => {
      const id = this.frames.nextId()
      const refused = this.frames.post(
        `{"_tag":"Request","id":${id},"tag":"call","payload":${JSON.stringify(call)},"headers":[]}`
      )
      if (refused !== null) return resume(Effect.fail(toWireError(refused)))
      this.open.set(id, resume)
      return Effect.sync(() => {
        if (this.open.delete(id)) this.frames.post(`{"_tag":"Interrupt","requestId":${id}}`)
      })
    })
  }

  /** Takes an answer; false when it is to none of these calls. */
  answer(message: { readonly _tag: string }): boolean {
    if (message._tag !== "Exit" || !("requestId" in message) || !("exit" in message)) return false
    const id = message.requestId
    const resume = typeof id === "number" ? this.open.get(id) : undefined
    if (typeof id !== "number" || resume === undefined) return false
    this.open.delete(id)
    resume(outcome(message.exit))
    return true
  }

  /** Ends all of them. */
  fail(error: ServiceError): void {
    const pending = [...this.open.values()]
    this.open.clear()
    for (const resume of pending) resume(Effect.fail(toWireError(error)))
  }
}

/** What the host says, which is anything. */
const outcome = (exit: unknown): Effect.Effect<unknown, WireError> => {
  if (typeof exit !== "object" || exit === null || !("_tag" in exit)) return failed
  if (exit._tag === "Success") return Effect.succeed("value" in exit ? exit.value : null)
  const cause: unknown = "cause" in exit ? exit.cause : null
  if (!Array.isArray(cause)) return failed
  let interrupted = false
  for (const reason of cause as ReadonlyArray<unknown>) {
    if (typeof reason !== "object" || reason === null || !("_tag" in reason)) continue
    if (reason._tag === "Fail" && "error" in reason) return Effect.fail(fromWireError(reason.error))
    if (reason._tag === "Interrupt") interrupted = true
  }
  return interrupted ? cancelled : failed
}

const failed = Effect.fail<WireError>({ type: "service", code: "internal", message: "The host failed to answer." })
const cancelled = Effect.fail<WireError>({ type: "service", code: "cancelled", message: "The host interrupted the call." })
