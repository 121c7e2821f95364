/**
 * Supervision of the session hosts of one coordinator: each is started when somebody needs it, at most once at a time.
 *
 *     stopped ──demand──▶ starting ──▶ running ──▶ stopped (asked to, or idle)
 *        ▲                   ╰─ dies ───┴─ dies ─▶ waiting ──demand, after a growing delay──▶ starting
 *        ╰────── stop, start ────── failed ◀── the third death within a minute
 *
 * A host is not started again by itself, only by the next demand. One that has failed answers every demand with the end of
 * its log until somebody starts or stops it by name.
 */
import type { HostStatus } from "@bezel/core/host"
import { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { HostEnd, HostProcess } from "./host-process.ts"

/** What a host is of, and how one is started. */
export interface HostSpec extends Pick<HostStatus, "id" | "location" | "sessionID"> {
  readonly start: Effect.Effect<StartedHost, ServiceError>
  /** The last lines of its log. */
  readonly lastLines: () => string
}

export interface StartedHost extends HostProcess {
  /** Where it listens. */
  readonly socket: string
}

export interface Supervisor {
  /** The running host, started if need be. */
  readonly demand: (spec: HostSpec) => Effect.Effect<StartedHost, ServiceError>
  /** The same; one that had failed gets another chance. */
  readonly start: (spec: HostSpec) => Effect.Effect<HostStatus, ServiceError>
  /** Completes when nothing of it is left. */
  readonly stop: (id: string) => Effect.Effect<void>
  readonly status: Effect.Effect<ReadonlyArray<HostStatus>>
  readonly changes: Stream.Stream<HostStatus>
}

export interface SupervisorOptions {
  /** Delay after the first death; doubles with each further one within a minute. Default 100 milliseconds. */
  readonly firstDelayMillis?: number
  /** Default 5 seconds. */
  readonly longestDelayMillis?: number
}

const deathWindowMillis = 60_000
const deathLimit = 3

interface Supervised {
  spec: HostSpec
  state: HostStatus["state"]
  error: string | null
  running: StartedHost | null
  deaths: ReadonlyArray<number>
  /** When it may be started again, by the monotonic clock. */
  notBefore: number
  readonly line: Semaphore.Semaphore
}

/** Hosts that still run when the scope ends are stopped. */
export const makeSupervisor = (options: SupervisorOptions = {}): Effect.Effect<Supervisor, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { firstDelayMillis = 100, longestDelayMillis = 5_000 } = options
    const scope = yield* Effect.scope
    const changes = yield* PubSub.unbounded<HostStatus>()
    const hosts = new Map<string, Supervised>()

    const statusOf = ({ error, running, spec, state }: Supervised): HostStatus => ({
      id: spec.id,
      location: spec.location,
      sessionID: spec.sessionID,
      state,
      pid: running?.pid ?? null,
      error
    })
    const become = (host: Supervised, state: HostStatus["state"], error: string | null = null): void => {
      host.state = state
      host.error = error
      PubSub.publishUnsafe(changes, statusOf(host))
    }

    const ended = (host: Supervised, { inOrder, reason }: HostEnd): void => {
      host.running = null
      if (inOrder) return become(host, "stopped")
      const now = performance.now()
      host.deaths = [...host.deaths.filter((at) => now - at < deathWindowMillis), now]
      host.notBefore = now + Math.min(firstDelayMillis * 2 ** (host.deaths.length - 1), longestDelayMillis)
      if (host.deaths.length < deathLimit) return become(host, "waiting", reason)
      const lines = host.spec.lastLines()
      become(
        host,
        "failed",
        `The session host of ${host.spec.id} has died ${deathLimit} times within a minute and is not started again; the last time ` +
          `${reason}.${lines === "" ? "" : ` The end of its log:\n${lines}`}`
      )
    }

    const launch = (host: Supervised): Effect.Effect<StartedHost, ServiceError> =>
      Effect.gen(function*() {
        const wait = host.notBefore - performance.now()
        if (wait > 0) yield* Effect.sleep(wait)
        become(host, "starting")
        // Whole, so that what has been started is always known to whoever stops it.
        const started = yield* Effect.uninterruptible(Effect.tap(host.spec.start, (process) =>
          Effect.sync(() => {
            host.running = process
          }))).pipe(
            Effect.tapError((error) => Effect.sync(() => ended(host, { inOrder: false, reason: error.message })))
          )
        yield* Effect.forkIn(
          Effect.map(started.ended, (end) => ended(host, end)),
          scope,
          { startImmediately: true }
        )
        yield* Effect.tapError(started.ready, () => started.ended)
        // It may have died between the two.
        if (host.running !== started) return yield* died(host)
        become(host, "running")
        return started
      })

    const died = (host: Supervised) =>
      Effect.suspend(() =>
        Effect.fail(
          new ServiceError({
            code: "unavailable",
            message: host.error ?? `The session host of ${host.spec.id} has ended.`
          })
        )
      )

    const hostOf = (spec: HostSpec): Supervised => {
      const known = hosts.get(spec.id)
      if (known !== undefined) {
        known.spec = spec
        return known
      }
      const host: Supervised = {
        spec,
        state: "stopped",
        error: null,
        running: null,
        deaths: [],
        notBefore: 0,
        line: Semaphore.makeUnsafe(1)
      }
      hosts.set(spec.id, host)
      return host
    }

    const demand = (spec: HostSpec) =>
      Effect.suspend(() => {
        const host = hostOf(spec)
        if (host.state === "running" && host.running !== null) return Effect.succeed(host.running)
        const starting = Effect.suspend(() => {
          if (host.state === "running" && host.running !== null) return Effect.succeed(host.running)
          return host.state === "failed" ? died(host) : launch(host)
        })
        // For everybody who waits: whoever asked first may go away meanwhile.
        return Effect.flatMap(Effect.forkIn(host.line.withPermits(1)(starting), scope), Fiber.join)
      })

    const forgive = (host: Supervised): void => {
      host.deaths = []
      host.notBefore = 0
      if (host.state === "failed" || host.state === "waiting") become(host, "stopped")
    }

    const stop = (id: string) =>
      Effect.suspend(() => {
        const host = hosts.get(id)
        if (host === undefined) return Effect.void
        return host.line.withPermits(1)(Effect.suspend(() => {
          const { running } = host
          if (running === null) return Effect.sync(() => forgive(host))
          become(host, "stopping")
          return running.stop
        }))
      })

    yield* Effect.addFinalizer(() =>
      Effect.forEach([...hosts.values()], ({ running }) => running?.stop ?? Effect.void, {
        concurrency: "unbounded",
        discard: true
      })
    )
    return {
      demand,
      start: (spec) =>
        Effect.suspend(() => {
          const host = hostOf(spec)
          forgive(host)
          return Effect.map(demand(spec), () => statusOf(host))
        }),
      stop,
      status: Effect.sync(() => [...hosts.values()].map(statusOf)),
      changes: Stream.fromPubSub(changes)
    }
  })
