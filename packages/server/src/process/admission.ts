/**
 * Admission: how a session host in a process of its own proves to its coordinator which host it is.
 *
 * The first frame of a connection is a secret. It is taken once: the answer carries the one for the next connection. Who has
 * none is sent away as `unauthorized` before anything of the protocol begins. The identity belongs to the secret, so nothing
 * that the host sends can change it.
 */
import type { HostIdentity } from "@bezel/core/host"
import type { Transport } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { createHash, randomBytes } from "node:crypto"

const Admit = Schema.Struct({ _tag: Schema.Literal("Admit"), secret: Schema.String })
const Admitted = Schema.Struct({ _tag: Schema.Literal("Admitted"), secret: Schema.String })
const decodeAdmit = Schema.decodeUnknownExit(Schema.fromJsonString(Admit))
const decodeAdmitted = Schema.decodeUnknownExit(Schema.fromJsonString(Admitted))

/** How long a connection may take to say who it is. */
const patience = "10 seconds"

const unauthorized = new ServiceError({ code: "unauthorized", message: "This connection has shown no valid secret." })

// Kept as digests: what is compared then says nothing about the secret, however long it takes.
const digest = (secret: string): string => createHash("sha256").update(secret).digest("hex")

export interface Admission {
  /** A secret that admits a connection as this host, once. */
  readonly issue: (identity: HostIdentity) => string
  /** Nothing admits anybody any more whose secret was issued for this very object. */
  readonly revoke: (identity: HostIdentity) => void
  /** Serves a connection that shows a secret, and sends away any other. */
  readonly serve: (transport: Transport) => Effect.Effect<void>
}

export const makeAdmission = (
  serve: (transport: Transport, identity: HostIdentity) => Effect.Effect<void>
): Admission => {
  const valid = new Map<string, HostIdentity>()
  const issue = (identity: HostIdentity): string => {
    const secret = randomBytes(32).toString("base64url")
    valid.set(digest(secret), identity)
    return secret
  }
  const redeem = (frame: string): HostIdentity | null => {
    const shown = decodeAdmit(frame)
    if (Exit.isFailure(shown)) return null
    const key = digest(shown.value.secret)
    const identity = valid.get(key) ?? null
    valid.delete(key)
    return identity
  }
  return {
    issue,
    revoke: (identity) => {
      for (const [key, issued] of valid) if (issued === identity) valid.delete(key)
    },
    serve: (transport) =>
      afterFirstFrame(transport, (frame) => {
        const identity = frame === null ? null : redeem(frame)
        if (identity === null) return unauthorized
        transport.post(JSON.stringify({ _tag: "Admitted", secret: issue(identity) }))
        return (rest) => serve(rest, identity)
      })
  }
}

/** Hands a connection on without its first frame, which is `null` where none came; an error sends it away. */
export const afterFirstFrame = (
  transport: Transport,
  open: (frame: string | null) => ((rest: Transport) => Effect.Effect<void>) | ServiceError
): Effect.Effect<void> =>
  Effect.scoped(Effect.gen(function*() {
    const first = yield* Deferred.make<string>()
    const rest = yield* handOn(transport, first)
    const frame = yield* Effect.timeoutOrElse(Deferred.await(first), {
      duration: patience,
      orElse: () => Effect.succeed(null)
    }).pipe(Effect.raceFirst(Effect.as(transport.closed, null)))
    const serve = open(frame)
    if (serve instanceof ServiceError) {
      yield* Effect.logWarning(`A connection is sent away: ${serve.message}`)
      return yield* transport.dismiss(serve)
    }
    yield* serve(rest)
  }))

/** The transport from its second frame on; the first completes `first`. Until somebody runs it, frames wait. */
const handOn = (
  transport: Transport,
  first: Deferred.Deferred<string>
): Effect.Effect<Transport, never, Scope.Scope> =>
  Effect.gen(function*() {
    const runner = yield* Deferred.make<Parameters<Transport["run"]>[0]>()
    let onFrame: Parameters<Transport["run"]>[0] | null = null
    let isFirst = true
    const reading = yield* Effect.forkScoped(transport.run((frame) => {
      if (isFirst) {
        isFirst = false
        return Effect.asVoid(Deferred.succeed(first, frame))
      }
      if (onFrame !== null) return onFrame(frame)
      return Effect.flatMap(Deferred.await(runner), (handle) => handle(frame) ?? Effect.void)
    }))
    return {
      ...transport,
      run: (handle) =>
        Effect.andThen(
          Effect.suspend(() => {
            onFrame = handle
            return Deferred.succeed(runner, handle)
          }),
          Fiber.join(reading)
        )
    }
  })

/** The host's side: shows the secret that it has, and keeps the next one. `renew` gives one where that was lost. */
export const presenting = (
  connect: Effect.Effect<Transport, ServiceError, Scope.Scope>,
  secret: string,
  renew: Effect.Effect<string>
): Effect.Effect<Transport, ServiceError, Scope.Scope> => {
  let current = secret
  return Effect.gen(function*() {
    const transport = yield* connect
    const first = yield* Deferred.make<string>()
    const rest = yield* handOn(transport, first)
    transport.post(JSON.stringify({ _tag: "Admit", secret: current }))
    const answer = yield* Effect.raceFirst(
      Deferred.await(first),
      Effect.andThen(
        transport.closed,
        Effect.fail(new ServiceError({ code: "disconnected", message: "The coordinator closed the connection." }))
      )
    )
    const admitted = decodeAdmitted(answer)
    if (Exit.isFailure(admitted)) {
      current = yield* renew
      return yield* unauthorized
    }
    current = admitted.value.secret
    return rest
  })
}
