/**
 * A link: one live connection to an endpoint, from when its transport opened until it closes. It is never repaired; the
 * connection above makes a new one.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcClientError from "effect/rpc/RpcClientError"
import * as RpcMessage from "effect/rpc/RpcMessage"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ServiceError } from "../service/index.ts"
import { clientProtocol, disconnected, refusalOf } from "./transport.ts"
import type { Transport } from "./transport.ts"
import { decodeItem, fromWireError, ServiceGroup } from "./wire.ts"
import type { Control, Item, Watch, WireError } from "./wire.ts"

export interface Link {
  /**
   * What the host answers to the JSON text of a `Call`, through one of the two; a declared error is still encoded.
   * Interrupting it interrupts the handler.
   */
  readonly call: <A, E>(
    call: string,
    succeeded: (value: unknown) => Effect.Effect<A, E>,
    failed: (error: WireError) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  /** A number for a reference that is new on this link. */
  readonly nextReference: () => number
  readonly control: (control: Control) => Effect.Effect<unknown, ServiceError>
  /**
   * Gives each item of a subscription to the handler, which returns at once: null, or the error that ends it. Completes
   * when the far side ends it.
   */
  readonly watch: (watch: Watch, onItem: (item: Item) => ServiceError | null) => Effect.Effect<void, ServiceError>
  /** Completes when the connection is gone. */
  readonly closed: Effect.Effect<void>
  readonly isClosed: () => boolean
  /** Compares what was sent with what arrived; the connection closes when frames were lost or repeated. */
  readonly check: Effect.Effect<void>
  /** Why the far side closed the connection, if it said so. */
  readonly farewell: () => ServiceError | null
  readonly close: Effect.Effect<void>
}

/** As many as the far side puts into one batch, so that a batch never holds up what comes behind it. */
const bufferedItems = 4_096

export const makeLink = (transport: Transport): Effect.Effect<Link, never, Scope.Scope> =>
  Effect.gen(function*() {
    const gone = Deferred.makeUnsafe<void>()
    yield* Effect.addFinalizer(() => Effect.andThen(transport.close, Deferred.succeed(gone, undefined)))
    yield* Effect.forkScoped(Effect.andThen(transport.closed, Deferred.succeed(gone, undefined)))
    const [protocol, parts] = yield* clientProtocol(transport)
    const client = yield* RpcClient.make(ServiceGroup, {
      disableTracing: true,
      generateRequestId: () => RpcMessage.RequestId(parts.nextId())
    }).pipe(Effect.provideService(RpcClient.Protocol, protocol))
    const isClosed = () => Deferred.isDoneUnsafe(gone)

    /** What went wrong on the way, told apart from what the host answered. */
    const classify = (cause: Cause.Cause<unknown>): WireError => {
      for (const reason of cause.reasons) {
        if (reason._tag !== "Fail") continue
        if (reason.error instanceof RpcClientError.RpcClientError) {
          return wire(refusalOf(reason.error) ?? disconnected())
        }
        return fromWireError(reason.error)
      }
      if (isClosed()) return wire(disconnected())
      return Cause.hasInterruptsOnly(cause)
        ? { type: "service", code: "cancelled", message: "The host interrupted the call." }
        : { type: "service", code: "internal", message: "The host failed to answer." }
    }

    let references = 0
    return {
      nextReference: () => ++references,
      call: (call, succeeded, failed) => parts.calls.call(call, succeeded, failed),
      control: (control) =>
        Effect.catchCause(client.control(control), (cause) => Effect.fail(toServiceError(classify(cause)))),
      watch: (watch, onItem) =>
        Effect.catchCause(
          Stream.runForEachArray(
            client.watch(watch, { streamBufferSize: bufferedItems }),
            (items) => applyAll(items, onItem)
          ),
          (cause) => {
            for (const reason of cause.reasons) {
              if (reason._tag === "Fail" && reason.error instanceof ServiceError) return Effect.fail(reason.error)
            }
            return Effect.fail(toServiceError(classify(cause)))
          }
        ),
      closed: Deferred.await(gone),
      isClosed,
      farewell: parts.farewell,
      check: parts.check,
      close: transport.close
    }
  })

const applyAll = (
  items: ReadonlyArray<unknown>,
  onItem: (item: Item) => ServiceError | null
): Effect.Effect<void, ServiceError> =>
  Effect.suspend(() => {
    for (const value of items) {
      const item = decodeItem(value)
      if (Exit.isFailure(item)) return Effect.failCause(item.cause)
      const refused = onItem(item.value)
      if (refused !== null) return Effect.fail(refused)
    }
    return Effect.void
  })

const wire = (error: ServiceError): WireError => ({ type: "service", code: error.code, message: error.message })

/** For exchanges that declare no errors of their own. */
export const toServiceError = (error: WireError): ServiceError =>
  error.type === "service"
    ? new ServiceError({
      code: error.code,
      message: error.message,
      ...(error.data === undefined ? {} : { data: error.data })
    })
    : new ServiceError({ code: "invalid_result", message: "The host sent an error that its contract does not name." })
