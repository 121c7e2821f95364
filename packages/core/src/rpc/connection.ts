/**
 * A client's connection to a host: facades, the session that is shown, and the person's side of interactions.
 *
 * It reconnects by itself, with growing delays. While it is down, facades keep their last values as stale and calls fail
 * with `disconnected`; nothing queues and nothing is repeated. Back again, values are replaced from fresh snapshots and
 * open requests are offered anew. Everything ends with the scope that made it.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { MutableRemoteState, ServiceErrorCode } from "../service/index.ts"
import type { Facade, Interaction, RemoteService, RemoteState, ServiceError } from "../service/index.ts"
import { Asking } from "./asking.ts"
import type { RequestAnswers, RequestPort } from "./asking.ts"
import type { Fork } from "./demand.ts"
import { duplex } from "./duplex.ts"
import type { EndpointShape } from "./endpoint.ts"
import { FacadeEntry } from "./facade.ts"
import type { FacadeAddress, Host } from "./facade.ts"
import { makeLink } from "./link.ts"
import type { Link } from "./link.ts"
import { Mismatch, mismatchTexts, pluginMismatches } from "./mismatch.ts"
import { Observing } from "./observing.ts"
import { disconnected } from "./transport.ts"
import type { Transport } from "./transport.ts"
import { Catalogue, decoding, Hello, protocolVersion } from "./wire.ts"
import type { Control, PluginVersion } from "./wire.ts"

const ConnectionStatus = Schema.Struct({
  status: Schema.Literals(["connecting", "connected", "disconnected"]),
  /** Why it is not connected, as far as anybody said so. */
  reason: Schema.optionalKey(Schema.Struct({ code: ServiceErrorCode, message: Schema.String })),
  /** What this side and the host have in different versions; each is also logged once per connection. */
  mismatches: Schema.optionalKey(Schema.Array(Mismatch))
})
export type ConnectionStatus = typeof ConnectionStatus.Type

export interface ConnectionOptions {
  /**
   * Opens a transport; it is closed when its scope ends. Called again after each loss. As a function it is told the session
   * that is shown, and then each session is reached over a transport of its own, as where each has its own host.
   */
  readonly connect:
    | Effect.Effect<Transport, ServiceError, Scope.Scope>
    | ((sessionID: string | null) => Effect.Effect<Transport, ServiceError, Scope.Scope>)
  /** With a `connect` that takes a session: where it leads before one is shown. */
  readonly firstSession?: string
  /** What this client is, for people. */
  readonly label: string
  /** The plugins of this side, which are compared with the host's. */
  readonly manifest?: Effect.Effect<ReadonlyArray<PluginVersion>>
  /** What the other side is, for people: `the coordinator`. `the host` if left out. */
  readonly peer?: string
  /** What this side provides to the host, over the same transport. */
  readonly serve?: EndpointShape
  /** First and longest delay between attempts: 100 milliseconds and 5 seconds if left out. */
  readonly retry?: { readonly first: Duration.Input; readonly longest: Duration.Input }
  /** How often it is checked that no frame was lost between the two sides: 10 seconds if left out. */
  readonly check?: Duration.Input
  /** How long a subscription stays open after its last user left: 30 seconds if left out. */
  readonly idle?: Duration.Input
}

/** A session that the connection is attached to, whichever one is shown. */
export interface AttachedSession {
  readonly sessionID: string
  /** As of the connection, for this session; services of the whole host are found here too. */
  readonly use: ConnectionShape["use"]
}

export interface ConnectionShape {
  readonly state: RemoteState<ConnectionStatus>
  /** The session that is shown; facades of session services are of this one. */
  readonly session: RemoteState<string | null>
  /**
   * Attaches to a session and shows it; null leaves it. With `resume: false` this alone does not start its work, and the same
   * session selected without that does.
   */
  readonly select: (
    sessionID: string | null,
    options?: { readonly resume?: boolean }
  ) => Effect.Effect<void, ServiceError>
  /**
   * Attaches to a session beside the one that is shown, for the length of the scope, also across reconnects. What it asks
   * is asked here too. With `resume: false` this alone does not start its work.
   */
  readonly attach: (
    sessionID: string,
    options?: { readonly resume?: boolean }
  ) => Effect.Effect<AttachedSession, ServiceError, Scope.Scope>
  /**
   * The facade of a service: the same object for every user in the process. The scope is the demand: while one is open,
   * the states of the service are followed.
   */
  readonly use: <S extends RemoteService.Any>(
    token: S,
    options?: { readonly key?: string }
  ) => Effect.Effect<Facade<S>, never, Scope.Scope>
  /**
   * Runs one effect per live instance of a keyed service, those already open included, and interrupts it when that
   * instance closes. A key that is used again is another instance.
   */
  readonly observe: <S extends RemoteService.Any>(
    token: S,
    effect: (instance: Facade<S>, key: string) => Effect.Effect<void, unknown, Scope.Scope>
  ) => Effect.Effect<void, never, Scope.Scope>
  readonly interactions: {
    /** Handles an interaction for the length of the scope. A failure of the handler hands the request on. */
    readonly handle: <Q, R>(
      interaction: Interaction<Q, R>,
      handler: (request: Q) => Effect.Effect<R | "declined", unknown, Scope.Scope>
    ) => Effect.Effect<void, never, Scope.Scope>
    /** Takes what no handler of this side is for, to be answered by people elsewhere. One port at a time. */
    readonly handOn: (port: RequestPort) => Effect.Effect<RequestAnswers, never, Scope.Scope>
  }
  /** Ids of the services that the host has. */
  readonly catalogue: Effect.Effect<ReadonlyArray<string>, ServiceError>
  /** Closes the transport that is open now; a new one is opened as after any loss. */
  readonly drop: Effect.Effect<void>
}

const decodeHello = decoding(Hello, "invalid_result", "The host's greeting is malformed")
const decodeCatalogue = decoding(Catalogue, "invalid_result", "The host's catalogue is malformed")

export class Connection extends Context.Service<Connection, ConnectionShape>()("bezel/rpc/Connection") {
  static readonly make = (options: ConnectionOptions): Effect.Effect<ConnectionShape, never, Scope.Scope> =>
    Effect.gen(function*() {
      const scope = yield* Effect.scope
      const context = yield* Effect.context<never>()
      const connection = new ClientConnection(options, forkInto(scope, Context.omit(Tracer.ParentSpan)(context)))
      connection.start()
      return connection
    })

  static readonly layer = (options: ConnectionOptions): Layer.Layer<Connection> =>
    Layer.effect(Connection, Connection.make(options))
}

const attachTo = (session: string, resume: boolean) =>
  resume ? { type: "attach", session } as const : { type: "attach", session, resume } as const

const selectOf = (session: string | null, resume: boolean) =>
  resume ? { type: "select", session } as const : { type: "select", session, resume } as const

const forkInto = (scope: Scope.Scope, context: Context.Context<never>): Fork => {
  const run = Effect.runForkWith(context)
  const own = Fiber.runIn(scope)
  return (effect) => own(run(effect))
}

class ClientConnection implements ConnectionShape {
  readonly state = MutableRemoteState.makeUnsafe(ConnectionStatus, { status: "connecting" })
  readonly session = MutableRemoteState.makeUnsafe(Schema.NullOr(Schema.String), null)
  readonly interactions: ConnectionShape["interactions"]
  private readonly options: ConnectionOptions
  private readonly fork: Fork
  private readonly host: Host
  private readonly asking: Asking
  private readonly observing: Observing
  private readonly facades = new Map<string, FacadeEntry>()
  /** Of sessions that are attached beside the one that is shown. */
  private readonly beside = new Map<string, FacadeEntry>()
  /** How often each of those is attached, and whether one of them starts its work. */
  private readonly held = new Map<string, { readonly count: number; readonly resume: boolean }>()
  private readonly tokens = new Map<string, RemoteService.Any>()
  private readonly linked = Latch.makeUnsafe(false)
  private readonly selecting = Semaphore.makeUnsafe(1)
  private link: Link | null = null
  private pending: string | null = null
  /** Whether the work of the session that is shown is not to be started by this connection. */
  private atRest = false
  /** The session that the way of this link was asked for. */
  private routed: string | null = null
  /** That of the next link, if it is another session that ends this one. */
  private next: string | null = null
  private epoch: string | null = null
  private contracts: { readonly [service: string]: number } = {}
  private mismatches: ReadonlyArray<Mismatch> = []
  private reason: ServiceError | null = null

  constructor(options: ConnectionOptions, fork: Fork) {
    this.options = options
    this.fork = fork
    const connected: Effect.Effect<Link> = Effect.suspend(() =>
      this.link === null ? Effect.andThen(this.linked.await, connected) : Effect.succeed(this.link)
    )
    this.host = {
      link: () => this.link,
      connected,
      session: () => this.session.value,
      shows: (session) => session === this.session.value || session === this.pending,
      fork,
      idleMillis: Duration.toMillis(options.idle ?? 30_000),
      missing: disconnected
    }
    this.observing = new Observing(this.host, () => this.epoch)
    this.asking = new Asking(fork, () => this.link, () => this.epoch)
    this.interactions = {
      handle: (interaction, handler) => this.asking.handle(interaction, handler),
      handOn: (port) => this.asking.handOn(port)
    }
  }

  start(): void {
    this.fork(this.stayConnected)
  }

  readonly use: ConnectionShape["use"] = (token, options) => this.useOf(token, options?.key, null)

  private useOf<S extends RemoteService.Any>(token: S, key: string | undefined, session: string | null) {
    return Effect.suspend(() => {
      const entry = this.entry(token, {
        service: token.id,
        ...(key === undefined ? {} : { key }),
        ...(session === null ? {} : { session })
      })
      // The erasure point of facades: an entry was made for this token.
      return Effect.as(entry.hasStates ? entry.demand : Effect.void, entry.facade as Facade<S>)
    })
  }

  readonly attach: ConnectionShape["attach"] = (sessionID, { resume = true } = {}) =>
    Effect.as(
      Effect.acquireRelease(
        this.inTurn(() => this.hold(sessionID, resume)),
        // Where the connection itself ends, there is nothing to leave.
        () => Effect.catchCause(this.inTurn(() => this.unhold(sessionID)), () => Effect.void)
      ),
      { sessionID, use: (token, options) => this.useOf(token, options?.key, sessionID) }
    )

  private hold(session: string, resume: boolean): Effect.Effect<void, ServiceError> {
    const held = this.held.get(session)
    const link = this.link
    if (link === null) return Effect.fail(disconnected())
    return Effect.andThen(
      held !== undefined && (held.resume || !resume) ? Effect.void : link.control(attachTo(session, resume)),
      Effect.sync(() => {
        const now = this.held.get(session)
        this.held.set(session, { count: (now?.count ?? 0) + 1, resume: resume || now?.resume === true })
      })
    )
  }

  private unhold(session: string): Effect.Effect<void, ServiceError> {
    const held = this.held.get(session)
    if (held !== undefined && held.count > 1) {
      this.held.set(session, { ...held, count: held.count - 1 })
      return Effect.void
    }
    this.held.delete(session)
    for (const [id, entry] of this.beside) if (entry.session === session) this.beside.delete(id)
    return Effect.asVoid(this.link?.control({ type: "detach", session }) ?? Effect.void)
  }

  /** In a fiber of the connection: an interrupted caller must not leave the two sides with different sessions. */
  private inTurn(work: () => Effect.Effect<void, ServiceError>): Effect.Effect<void, ServiceError> {
    return Effect.suspend(() => Fiber.join(this.fork(Semaphore.withPermits(this.selecting, 1)(Effect.suspend(work)))))
  }

  readonly observe: ConnectionShape["observe"] = (token, effect) => this.observing.observe(token, effect)

  readonly select: ConnectionShape["select"] = (sessionID, { resume = true } = {}) =>
    this.inTurn(() => {
      const link = this.link
      if (link === null) return Effect.fail(disconnected())
      const { connect } = this.options
      if (typeof connect === "function" && sessionID !== null && sessionID !== this.routed) {
        return this.reroute(link, sessionID, resume, connect(sessionID))
      }
      this.pending = sessionID
      return link.control(selectOf(sessionID, resume)).pipe(
        Effect.andThen(Effect.suspend(() => {
          this.atRest = !resume && (this.atRest || sessionID !== this.session.value)
          return this.show(sessionID)
        })),
        Effect.ensuring(Effect.sync(() => {
          this.pending = null
        }))
      )
    })

  /** Goes over to another transport, once a first one to there has shown that the session can be had. */
  private reroute(
    link: Link,
    sessionID: string,
    resume: boolean,
    connect: Effect.Effect<Transport, ServiceError, Scope.Scope>
  ): Effect.Effect<void, ServiceError> {
    const tried = Effect.scoped(Effect.gen({ self: this }, function*() {
      const trial = yield* makeLink(yield* connect)
      const select: Control = selectOf(sessionID, false)
      yield* Effect.mapError(
        Effect.andThen(
          trial.control({ type: "hello", label: this.options.label, protocol: protocolVersion }),
          trial.control(select)
        ),
        (error) => trial.farewell() ?? error
      )
    }))
    return tried.pipe(
      Effect.andThen(Effect.suspend(() => {
        this.next = sessionID
        this.atRest = !resume
        return link.close
      })),
      Effect.andThen(Stream.runHead(Stream.filter(this.session.changes, (shown) => shown === sessionID))),
      Effect.andThen(this.host.connected),
      Effect.andThen(Effect.suspend(() => this.session.value === sessionID ? Effect.void : Effect.fail(disconnected())))
    )
  }

  readonly catalogue: ConnectionShape["catalogue"] = Effect.suspend(() =>
    this.link === null ? Effect.fail(disconnected()) : this.link.control({ type: "catalogue" })
  ).pipe(Effect.flatMap((answer) => decodeCatalogue(answer)))

  readonly drop: ConnectionShape["drop"] = Effect.suspend(() => this.link?.close ?? Effect.void)

  private entry(token: RemoteService.Any, address: FacadeAddress): FacadeEntry {
    const { session } = address
    const id = JSON.stringify([address.service, address.key ?? null, session ?? null])
    const known = this.facades.get(id) ?? this.beside.get(id)
    if (known !== undefined) return known
    const entry = new FacadeEntry(
      token,
      address,
      session === undefined
        ? this.host
        : { ...this.host, session: () => session, shows: (shown) => shown === session }
    )
    const facades = session === undefined ? this.facades : this.beside
    facades.set(id, entry)
    this.tokens.set(token.id, token)
    if (this.link !== null) this.fork(this.compareContract(token))
    return entry
  }

  private show(session: string | null): Effect.Effect<void> {
    if (session === this.session.value) return Effect.void
    return Effect.andThen(
      this.session.set(session),
      Effect.sync(() => {
        for (const entry of this.facades.values()) entry.selected(session)
      })
    )
  }

  // ------------------------------------------------------------------------------------------------------- staying connected

  private get stayConnected(): Effect.Effect<never> {
    const first = Duration.toMillis(this.options.retry?.first ?? 100)
    const longest = Duration.toMillis(this.options.retry?.longest ?? 5_000)
    let delay = first
    const attempt = Effect.gen({ self: this }, function*() {
      const { connect } = this.options
      if (this.next === null) yield* this.state.set({ status: "connecting" })
      else yield* this.show(this.next)
      this.next = null
      this.reason = null
      this.routed = this.session.value ?? this.options.firstSession ?? null
      const transport = yield* typeof connect === "function" ? connect(this.routed) : connect
      const { client, host } = this.options.serve === undefined ? { client: transport, host: null } : duplex(transport)
      const link = yield* makeLink(client)
      if (host !== null && this.options.serve !== undefined) yield* Effect.forkScoped(this.options.serve.serve(host))
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(this.options.check ?? 10_000), link.check)))
      const attached = yield* Effect.onError(this.greet(link), () => Effect.sync(() => this.reason = link.farewell()))
      delay = first
      this.link = link
      const left = attached.filter((session) => !this.held.has(session))
      yield* Effect.forEach(left, (session) => link.control({ type: "detach", session }), { discard: true })
      this.linked.openUnsafe()
      yield* this.announce("connected")
      yield* Effect.forEach([...this.tokens.values()], (token) => this.compareContract(token))
      yield* Effect.raceFirst(link.closed, Effect.andThen(this.asking.over(link), link.closed))
      this.reason = link.farewell()
    }).pipe(
      Effect.scoped,
      Effect.catchCause((cause) => {
        for (const failure of cause.reasons) if (failure._tag === "Fail") this.reason ??= failure.error
        return Effect.logDebug("The connection to the host was not made or was lost.", cause)
      }),
      Effect.ensuring(Effect.suspend(() => {
        this.link = null
        this.linked.closeUnsafe()
        return this.next === null ? this.announce("disconnected") : Effect.void
      })),
      Effect.andThen(Effect.suspend(() => {
        if (this.next !== null) return Effect.void
        const wait = delay
        delay = Math.min(delay * 2, longest)
        return Effect.sleep(wait)
      }))
    )
    return Effect.forever(attempt)
  }

  private announce(status: ConnectionStatus["status"]): Effect.Effect<void> {
    return this.state.set({
      status,
      ...(this.reason === null || status === "connected"
        ? {}
        : { reason: { code: this.reason.code, message: this.reason.message } }),
      ...(this.mismatches.length === 0 ? {} : { mismatches: this.mismatches })
    })
  }

  private compareContract(token: RemoteService.Any): Effect.Effect<void> {
    const there = Object.hasOwn(this.contracts, token.id) ? this.contracts[token.id] : undefined
    const here = token.contract.version ?? 1
    return there === undefined || there === here
      ? Effect.void
      : this.report([{ kind: "contract", id: token.id, here: `${here}`, there: `${there}` }])
  }

  private report(found: ReadonlyArray<Mismatch>): Effect.Effect<void> {
    const fresh = found.filter(({ id, kind }) =>
      !this.mismatches.some((known) => known.kind === kind && known.id === id)
    )
    if (fresh.length === 0) return Effect.void
    this.mismatches = [...this.mismatches, ...fresh]
    return Effect.andThen(
      Effect.forEach(
        mismatchTexts(fresh, this.options.peer ?? "the host"),
        (text) => Effect.logWarning(text),
        { discard: true }
      ),
      // While greeting, what was found is announced with the connection itself.
      Effect.suspend(() => this.link === null ? Effect.void : this.announce("connected"))
    )
  }

  /**
   * Says who this is, attaches to what it was attached to, which is given back, and selects what was selected before. A session
   * that is gone leaves none selected.
   */
  private greet(link: Link): Effect.Effect<ReadonlyArray<string>, ServiceError> {
    return Effect.gen({ self: this }, function*() {
      const { label } = this.options
      const manifest = yield* this.options.manifest ?? Effect.succeed([])
      const hello = yield* decodeHello(
        yield* link.control({
          type: "hello",
          label,
          protocol: protocolVersion,
          ...(manifest.length === 0 ? {} : { manifest })
        })
      )
      this.epoch = hello.epoch
      this.contracts = hello.contracts ?? {}
      this.mismatches = []
      yield* this.report(pluginMismatches(manifest, hello.manifest ?? []))
      // One that is gone, or refused by now, answers that to whoever uses it.
      const attached = [...this.held]
      for (const [session, { resume }] of attached) {
        yield* Effect.catch(
          link.control(attachTo(session, resume)),
          (error) => error.code === "disconnected" ? Effect.fail(error) : Effect.void
        )
      }
      const session = this.session.value
      if (session !== null) {
        yield* Effect.catch(
          link.control(selectOf(session, !this.atRest)),
          (error) => error.code === "disconnected" ? Effect.fail(error) : this.show(null)
        )
      }
      return attached.map(([session]) => session)
    })
  }
}
