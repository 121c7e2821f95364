/**
 * The calls of one client, served: from what the frame says to the answer's text.
 *
 * Each call is a fiber of its own with its own span under the caller's trace, in the context that the connection gives.
 * Everything around the method is synchronous. A call whose provider goes away is answered `unavailable` and interrupted.
 * A hot path, so plain TypeScript.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"
import type { JsonValue } from "../json/index.ts"
import { explain, isReference, issuedOf, issueOf, jsonCodec, refusal, ServiceError } from "../service/index.ts"
import type { Instance, JsonCodec, MethodContract, RemoteService } from "../service/index.ts"
import type { ClientView } from "./client-view.ts"
import { overloaded, unknownMember } from "./refusals.ts"
import { decodeCall, toWireError } from "./wire.ts"
import type { Call, WireError } from "./wire.ts"

type Id = string | number

export interface CallLimits {
  /** In flight at once. */
  readonly calls: number
  /** Held at once. */
  readonly references: number
}

/** What a connection gives to its calls. */
export interface CallHost {
  readonly view: ClientView
  readonly limits: CallLimits
  /** Runs a method: in the context of the client. */
  readonly fork: (effect: Effect.Effect<unknown, unknown>) => Fiber.Fiber<unknown, unknown>
  /** Runs something beside, for the length of the connection. */
  readonly run: (effect: Effect.Effect<void>) => void
}

interface Open {
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly instance: Instance
}

/** A method with its codecs. */
interface Compiled {
  readonly name: string
  readonly span: string
  readonly contract: MethodContract
  readonly payload: JsonCodec | null
  /** Null for nothing. */
  readonly success: JsonCodec | RemoteService.Any | null
  readonly error: JsonCodec | null
}

const compiled = new WeakMap<RemoteService.Any, Map<string, Compiled>>()

const compile = (token: RemoteService.Any, member: string): Compiled | undefined => {
  let methods = compiled.get(token)
  if (methods === undefined) compiled.set(token, methods = new Map())
  const known = methods.get(member)
  if (known !== undefined) return known
  const contracts = token.contract.methods ?? {}
  const contract = Object.hasOwn(contracts, member) ? contracts[member] : undefined
  if (contract === undefined) return undefined
  const { error, payload, success } = contract
  const name = `${token.id}.${member}`
  const made: Compiled = {
    name,
    span: `rpc.server ${name}`,
    contract,
    payload: payload === undefined ? null : jsonCodec(payload),
    success: success === undefined ? null : isReference(success) ? success["~reference"] : jsonCodec(success),
    error: error === undefined ? null : jsonCodec(error)
  }
  methods.set(member, made)
  return made
}

const isToken = (success: JsonCodec | RemoteService.Any): success is RemoteService.Any => typeof success === "function"

export class ServedCalls {
  private readonly open = new Map<Id, Open>()
  private readonly host: CallHost
  private post: (frame: string, requestId: Id) => void = () => {}

  constructor(host: CallHost) {
    this.host = host
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
    const open = typeof id === "string" || typeof id === "number" ? this.open.get(id) : undefined
    open?.fiber.interruptUnsafe()
    return open !== undefined
  }

  /** Ends those whose provider is gone: a successor cannot finish them. */
  sweep(): void {
    for (const [id, { fiber, instance }] of this.open) {
      if (!instance.closed.isOpen()) continue
      this.open.delete(id)
      this.refuse(
        id,
        new ServiceError({ code: "unavailable", message: "The provider of this service went away during the call." })
      )
      fiber.interruptUnsafe()
    }
  }

  /** Ends all of them; nobody is there for an answer. */
  end(): void {
    const open = [...this.open.values()]
    this.open.clear()
    this.post = () => {}
    for (const { fiber } of open) fiber.interruptUnsafe()
  }

  private start(id: Id, message: unknown): void {
    const decoded = decodeCall(message)
    if (Exit.isFailure(decoded)) {
      for (const reason of decoded.cause.reasons) if (reason._tag === "Fail") this.refuse(id, reason.error)
      return
    }
    const call = decoded.value
    const instance = this.host.view.resolve(call)
    if (instance instanceof ServiceError) return this.refuse(id, instance)
    const method = compile(instance.token, call.member)
    if (method === undefined) return this.refuse(id, unknownMember(call, "method"))
    const payload = method.payload === null ? nothing : method.payload.decode(call.payload)
    if (Exit.isFailure(payload)) {
      return this.refuse(
        id,
        refusal("invalid_arguments", `The arguments of ${method.name} do not fit`, issueOf(payload))
      )
    }
    const { calls } = this.host.limits
    if (this.open.size >= calls) return this.refuse(id, overloaded(`${calls} calls in flight`))
    const hold = method.success !== null && isToken(method.success) ? this.reserve(method.name, call) : null
    if (hold instanceof ServiceError) return this.refuse(id, hold)
    const work = invoke(instance, call.member, payload.value)
    const fiber = this.host.fork(
      Effect.useSpan(method.span, {
        kind: "server",
        parent: call.trace === undefined ? undefined : Tracer.externalSpan(call.trace)
      }, (span) => Effect.provideService(work, Tracer.ParentSpan, span))
    )
    const finish = (exit: Exit.Exit<unknown, unknown>) => {
      this.post(answerFrame(id, this.outcome(method, exit, hold, instance)), id)
      if (hold !== null) this.host.view.references.settle(hold)
    }
    const done = fiber.pollUnsafe()
    if (done !== undefined) return finish(done)
    const open = { fiber, instance }
    this.open.set(id, open)
    fiber.addObserver((exit) => {
      if (this.open.get(id) === open) {
        this.open.delete(id)
        finish(exit)
      } else if (hold !== null) this.host.view.references.settle(hold)
    })
    // What the method woke may have run before this call stood here, and have ended its provider.
    if (instance.closed.isOpen()) this.sweep()
  }

  private refuse(id: Id, error: ServiceError): void {
    this.post(answerFrame(id, { error: toWireError(error) }), id)
  }

  /** The number for the reference that a call will return, before anything runs. */
  private reserve(name: string, call: Call): number | ServiceError {
    const { references } = this.host.view
    const limit = this.host.limits.references
    if (references.size >= limit) return overloaded(`${limit} references`)
    if (call.hold !== undefined && references.reserve(call.hold)) return call.hold
    return new ServiceError({
      code: "invalid_arguments",
      message: `${name} returns a reference; its call must give it a number that is free.`
    })
  }

  private outcome(
    method: Compiled,
    exit: Exit.Exit<unknown, unknown>,
    hold: number | null,
    instance: Instance
  ): Outcome {
    const { error, name, success } = method
    if (Exit.isSuccess(exit)) {
      if (success === null) return { value: null }
      if (isToken(success)) {
        return hold === null
          ? { value: null }
          : this.issue(name, success, exit.value, hold, instance)
      }
      const encoded = success.encode(exit.value)
      if (Exit.isSuccess(encoded)) return { value: encoded.value }
      this.host.run(Effect.logError(`The result of ${name} is not what its contract says: ${explain(encoded)}.`))
      return wrong(refusal("invalid_result", `The result of ${name} does not fit its contract`, issueOf(encoded)))
    }
    for (const reason of exit.cause.reasons) {
      if (reason._tag !== "Fail") continue
      if (error !== null) {
        const encoded = error.encode(reason.error)
        if (Exit.isSuccess(encoded)) return { error: { type: "declared", error: encoded.value } }
      }
      if (reason.error instanceof ServiceError) return wrong(reason.error)
    }
    if (Cause.hasInterruptsOnly(exit.cause)) {
      return wrong(new ServiceError({ code: "cancelled", message: `${name} was interrupted by its host.` }))
    }
    const { error: unexplained, log } = incident(`${name} failed in a way that its contract does not name`, exit.cause)
    this.host.run(log)
    return wrong(unexplained)
  }

  private issue(name: string, token: RemoteService.Any, value: unknown, reference: number, parent: Instance): Outcome {
    const issued = issuedOf(value)
    if (issued?.token.id !== token.id) {
      const message = `The result of ${name} is no reference to "${token.id}" (from RemoteReference.make).`
      this.host.run(Effect.logError(message))
      return wrong(new ServiceError({ code: "invalid_result", message }))
    }
    const { view } = this.host
    const held = view.references.hold(reference, issued, parent)
    if (held === null) return { value: { reference } }
    // Nobody waits for a completion once the reference is gone for another reason.
    this.host.run(
      Effect.raceFirst(
        issued.completed.await.pipe(
          Effect.andThen(Effect.sleep(issued.graceMillis)),
          Effect.as(view.release(reference))
        ),
        Effect.as(held.closed.await, Effect.void)
      ).pipe(Effect.flatten)
    )
    return { value: { reference } }
  }
}

type Outcome = { readonly value: JsonValue } | { readonly error: WireError }

const nothing = Exit.succeed(undefined)

const wrong = (error: ServiceError): Outcome => ({ error: toWireError(error) })

const answerFrame = (id: Id, outcome: Outcome): string =>
  `{"_tag":"Exit","requestId":${typeof id === "number" ? id : JSON.stringify(id)},"exit":${
    "value" in outcome
      ? `{"_tag":"Success","value":${JSON.stringify(outcome.value)}}`
      : `{"_tag":"Failure","cause":[{"_tag":"Fail","error":${JSON.stringify(outcome.error)}}]}`
  }}`

/** The method of the implementation, on the implementation. */
const invoke = (instance: Instance, member: string, payload: unknown): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    const method: unknown = Reflect.get(instance.implementation, member)
    if (typeof method !== "function") return Effect.die(new Error(`${member} is no function any more`))
    const result: unknown = Reflect.apply(method, instance.implementation, payload === undefined ? [] : [payload])
    // Erasure: the token's types say that a method gives an effect without requirements.
    return Effect.isEffect(result)
      ? result as Effect.Effect<unknown, unknown>
      : Effect.die(new Error(`${member} did not return an Effect`))
  })

/** A defect crosses as an id; the log of this host has the rest under that id. */
export const incident = (
  what: string,
  cause: Cause.Cause<unknown>
): { readonly error: ServiceError; readonly log: Effect.Effect<void> } => {
  const id = crypto.randomUUID()
  return {
    log: Effect.annotateLogs(Effect.logError(`${what}.`, cause), { incident: id }),
    error: new ServiceError({
      code: "internal",
      message: `The service failed; the host's log explains it under incident ${id}.`,
      data: { incident: id }
    })
  }
}
