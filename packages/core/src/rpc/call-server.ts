/**
 * The calls that one client has open here, each in a fiber of its own. The same messages as those of `effect/rpc`, without
 * its codecs: see `call-client.ts`. A hot path: a call that needs not wait is answered before the next frame is read.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { JsonValue } from "../json/index.ts"
import type { WireError } from "./wire.ts"

type Id = string | number

export class ServerCalls {
  private readonly open = new Map<Id, Fiber.Fiber<JsonValue, WireError>>()
  private readonly run: (payload: unknown) => Fiber.Fiber<JsonValue, WireError>
  private post: (frame: string, requestId: Id) => void = () => {}

  /** `run` starts a call. */
  constructor(run: (payload: unknown) => Fiber.Fiber<JsonValue, WireError>) {
    this.run = run
  }

  /** Where answers go. */
  over(post: (frame: string, requestId: Id) => void): void {
    this.post = post
  }

  /** Whether the message is of a call and was taken. */
  take(message: { readonly _tag: string }): boolean {
    if (message._tag === "Request") {
      if (!("tag" in message) || message.tag !== "call" || !("id" in message)) return false
      const id = message.id
      if (typeof id !== "string" && typeof id !== "number") return false
      if (!this.open.has(id)) this.start(id, "payload" in message ? message.payload : null)
      return true
    }
    if (message._tag !== "Interrupt" || !("requestId" in message)) return false
    const id = message.requestId
    const fiber = typeof id === "string" || typeof id === "number" ? this.open.get(id) : undefined
    fiber?.interruptUnsafe()
    return fiber !== undefined
  }

  /** Ends all of them; nobody is there for an answer. */
  get end(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.post = () => {}
      for (const fiber of this.open.values()) fiber.interruptUnsafe()
      this.open.clear()
    })
  }

  private start(id: Id, payload: unknown): void {
    const fiber = this.run(payload)
    const done = fiber.pollUnsafe()
    if (done !== undefined) return this.answer(id, done)
    this.open.set(id, fiber)
    fiber.addObserver((exit) => {
      if (this.open.get(id) === fiber) this.open.delete(id)
      this.answer(id, exit)
    })
  }

  private answer(id: Id, exit: Exit.Exit<JsonValue, WireError>): void {
    const requestId = JSON.stringify(id)
    this.post(
      Exit.isSuccess(exit)
        ? `{"_tag":"Exit","requestId":${requestId},"exit":{"_tag":"Success","value":${JSON.stringify(exit.value)}}}`
        : `{"_tag":"Exit","requestId":${requestId},"exit":{"_tag":"Failure","cause":[${failure(exit)}]}}`,
      id
    )
  }
}

/** Errors are values of the wire by now; a defect here is a bug of the endpoint, and says nothing outside. */
const failure = (exit: Exit.Failure<JsonValue, WireError>): string => {
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Fail") return JSON.stringify({ _tag: "Fail", error: reason.error })
  }
  return `{"_tag":"Interrupt"}`
}
