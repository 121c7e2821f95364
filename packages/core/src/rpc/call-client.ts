/**
 * The calls that a link has open. The same messages as those of `effect/rpc`, without its codecs and fibers: a call's
 * payload and result are opaque to it, so all that it would do is a number and a callback. A hot path, so plain TypeScript
 * behind an Effect face.
 */
import * as Effect from "effect/Effect"
import type { ServiceError } from "../service/index.ts"
import { fromWireError, toWireError } from "./wire.ts"
import type { WireError } from "./wire.ts"

/** Takes the exit of an answer, as anybody may have written it. */
type Settle = (exit: unknown, error: WireError | null) => void

export interface ClientFrames {
  /** Null when it is on its way, or why it is not. */
  readonly post: (frame: string) => ServiceError | null
  readonly nextId: () => number
}

export class ClientCalls {
  private readonly open = new Map<number, Settle>()
  private readonly frames: ClientFrames

  constructor(frames: ClientFrames) {
    this.frames = frames
  }

  /** `call` is the JSON text of a `Call`. */
  call<A, E>(
    call: string,
    succeeded: (value: unknown) => Effect.Effect<A, E>,
    failed: (error: WireError) => Effect.Effect<A, E>
  ): Effect.Effect<A, E> {
    return Effect.callback<A, E>((resume) => {
      const id = this.frames.nextId()
      const refused = this.frames.post(
        `{"_tag":"Request","id":${id},"tag":"call","payload":${call},"headers":[]}`
      )
      if (refused !== null) return resume(failed(toWireError(refused)))
      this.open.set(id, (exit, error) => {
        if (error !== null) return resume(failed(error))
        const succeeds = typeof exit === "object" && exit !== null && "_tag" in exit && exit._tag === "Success"
        resume(succeeds ? succeeded("value" in exit ? exit.value : null) : failed(errorOf(exit)))
      })
      return Effect.sync(() => {
        if (this.open.delete(id)) this.frames.post(`{"_tag":"Interrupt","requestId":${id}}`)
      })
    })
  }

  /** Takes an answer; false when it is to none of these calls. */
  answer(message: { readonly _tag: string }): boolean {
    if (message._tag !== "Exit" || !("requestId" in message) || !("exit" in message)) return false
    const id = message.requestId
    const settle = typeof id === "number" ? this.open.get(id) : undefined
    if (typeof id !== "number" || settle === undefined) return false
    this.open.delete(id)
    settle(message.exit, null)
    return true
  }

  /** Ends all of them. */
  fail(error: ServiceError): void {
    const pending = [...this.open.values()]
    this.open.clear()
    for (const settle of pending) settle(null, toWireError(error))
  }
}

/** Why a call failed, by what the host says, which is anything. */
const errorOf = (exit: unknown): WireError => {
  const cause: unknown = typeof exit === "object" && exit !== null && "cause" in exit ? exit.cause : null
  if (!Array.isArray(cause)) return failed
  let interrupted = false
  for (const reason of cause as ReadonlyArray<unknown>) {
    if (typeof reason !== "object" || reason === null || !("_tag" in reason)) continue
    if (reason._tag === "Fail" && "error" in reason) return fromWireError(reason.error)
    if (reason._tag === "Interrupt") interrupted = true
  }
  return interrupted ? cancelled : failed
}

const failed: WireError = { type: "service", code: "internal", message: "The host failed to answer." }
const cancelled: WireError = { type: "service", code: "cancelled", message: "The host interrupted the call." }
